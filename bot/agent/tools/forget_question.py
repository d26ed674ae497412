"""The work of ``memory.forget``: find what the user wants forgotten, and ask for confirmation."""

from __future__ import annotations

from bot.agent.texts import readers_language
from bot.agent.tools.registry import ToolContext, ToolOutcome, question_results
from bot.core.errors import MemoryRefused
from bot.memory.erasure.closure import ErasureRights
from bot.memory.erasure.erasure_candidates import CandidateCollector
from bot.memory.erasure.erasure_messages import ASKED_TEXT, question
from bot.memory.erasure.erasure_query import parse_query
from bot.memory.erasure.erasure_requests import FORGET_TOOL_NAME, request_event
from bot.memory.records.conversation_entries import inbound_ids
from bot.memory.records.transcript import is_owner, sender_id
from bot.memory.session.scope.identities import identity_at
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of

_NOTHING = "Nothing that may be erased holds all of these words; fewer words may find it."


async def ask_to_forget(what: str, context: ToolContext) -> ToolOutcome:
    """Find what holds the words, and ask the user whether it may go."""
    query = parse_query(what, numbers=False)
    request = _call(context)
    if query is None or request is None:
        raise MemoryRefused("name a few words that what is to be forgotten holds")
    if _asked_already(request, context):
        raise MemoryRefused(
            "the user is asked of one thing at a time: tell them to answer first, and to ask for the rest then"
        )
    senders = {sender_id(entry) for entry in context.answered_messages}
    identities = {identity_at(context.tape.name, sender) for sender in senders if sender}
    # A request of several people together counts as nobody's own.
    who = frozenset(identities if len(senders) == 1 else ())
    owner = bool(context.answered_messages) and all(map(is_owner, context.answered_messages))
    collector = CandidateCollector(
        context.memory, ErasureRights(context.may_change_memory, who), owner=owner
    )
    found = await collector.collect(query, request, inbound_ids(context.answered_messages))
    if found.is_empty and not found.near:
        return ToolOutcome(_NOTHING)
    # Messages of other problems are erased and counted too, but the model must not see their words.
    for shown in (found.listed, found.near):
        for place in [one for one in shown if problem_of(shown[one]) != context.problem]:
            del shown[place]
    with readers_language():
        text, buttons = question(request.id, found, context.zone.timezone)
    return ToolOutcome(
        ASKED_TEXT,
        extra_entries=[request_event(found, request.id, senders)],
        buttons=tuple(buttons),
        question=text,
    )


def _call(context: ToolContext) -> TapeEntry | None:
    """Return the entry that holds the call."""
    call = _id(context)
    for entry in reversed(context.memory.fold.window.entries):
        if any(str(tool_call.get("id")) == call for tool_call in entry.calls):
            return entry
    return None


def _asked_already(request: TapeEntry, context: ToolContext) -> bool:
    """Return whether the turn asks something else already: an entry holds one request."""
    named = [
        call
        for call in request.calls
        if str(call.get("name")).replace(".", "_") == FORGET_TOOL_NAME
    ]
    entries = question_results(context.memory.fold.window.entries, context.turn)
    return bool(entries) or str(named[0].get("id")) != _id(context)


def _id(context: ToolContext) -> str:
    return context.call_key.removeprefix(f"{context.tape.name}:{context.turn}:")
