"""What the channel of client programs needs of the program (``bot.bus.ClientBackend``)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from starlette.requests import HTTPConnection

from bot.bus import (
    API_CHANNEL,
    Button,
    ClientHistory,
    ClientMessage,
    ClientOutcome,
    ClientPlace,
    PlainRequest,
    WebUser,
    text_with_buttons,
)
from bot.core.errors import BudgetReached, ModelError, TapebotError, TapeNotFound
from bot.core.ids import new_id
from bot.core.reasons import parse_reason
from bot.inspector.access.logins import link_identity
from bot.inspector.clients.conversations import ClientConversations, as_past, find_answer
from bot.inspector.dependencies import WebContext
from bot.llm.base import ModelReply, ModelRequest, ToolSpec
from bot.llm.call_slots import Caller, calling_for
from bot.llm.spender import Spender, spends
from bot.memory.records.conversation_entries import CLIENT_CALLS
from bot.memory.records.event_names import REPLY
from bot.memory.records.turn_marks import turn_end, turn_start
from bot.memory.session.state.turn_fold import UndeliveredAnswer, parse_usage
from bot.tape.entries import TapeEntry

logger = logging.getLogger(__name__)

MODEL = "tapebot"
"""The name of the default model; presets are ``tapebot/NAME``."""

# Answers from before it was recorded.
_CUT_OFF = "(cut off: the model reached its limit for one answer)"  # for programs
_MOST_SCANNED = 20_000


class ClientSessions:
    """Finds, reads and links the sessions of client programs."""

    def __init__(self, web: WebContext) -> None:
        self._web = web
        self._conversations = ClientConversations(web.store, web.transcript)
        self._linked: set[str] = set()

    async def user(self, connection: HTTPConnection) -> WebUser:
        """Return who calls; see ``ClientBackend.user``."""
        user = await self._web.logins.authenticator.authenticate(connection, "chat")
        if user.id not in self._linked:
            await self._link(user)
        return user

    def models(self, user: WebUser) -> list[str]:
        """Return the names of the models, the default first."""
        presets = self._web.agent.presets
        others = [
            f"{MODEL}/{preset.name}"
            for preset in (presets or ())
            if user.role == "owner" or not preset.owner_only
        ]
        return [MODEL, *others]

    async def locate(self, user: WebUser, history: ClientHistory) -> ClientPlace:
        """Return where a request belongs; see ``ClientBackend.locate``."""
        place = await self._conversations.locate(user, history)
        if history.new is not None or place.asked is not None or not place.pairs:
            return place
        told = await self._conversations.messages(place.address.session)
        outcome = await self.outcome(place.address.session, told[-1].id)
        known = {call for call, _, _ in outcome.calls}
        return replace(place, pairs=set(history.calls) <= known)

    async def past(self, session: str, inbound: str) -> tuple[ClientMessage, ...] | None:
        """Return a session's messages up to the answer to one; None without it."""
        told = await self._conversations.messages(session)
        answer = find_answer(told, inbound)
        return None if answer is None else as_past(told, answer)

    def mark_delivered(self, session: str, answer: str) -> None:
        """Remember that an answer reached its client."""
        self._conversations.mark_delivered(session, answer)

    async def is_on_tape(self, session: str, inbound: str) -> bool:
        """Return whether a session's tape holds a message."""
        return any(one.id == inbound for one in await self._conversations.messages(session))

    async def answer_to(self, session: str, inbound: str) -> str | None:
        """Return the id of the answer to a message; None if the tape has none yet."""
        return find_answer(await self._conversations.messages(session), inbound)

    async def outcome(self, session: str, answer: str, text: str | None = None) -> ClientOutcome:
        """Return an answer with its calls and its usage; see ``ClientBackend.outcome``."""
        entries: list[TapeEntry] = []
        end: TapeEntry | None = None
        try:
            async with aclosing(self._web.store.read_back(session)) as back:
                async for entry in back:
                    if end is None and entry.id and len(entries) >= _MOST_SCANNED:
                        break
                    started, ended = turn_start(entry), turn_end(entry)
                    if ended is not None and ended.data.get("turn") == answer:
                        end, entries = ended, [] if ended is entry else [entry]
                    elif started is not None and started.data.get("turn") == answer:
                        break
                    elif end is not None and ended is not None:
                        # A command has no start.
                        break
                    else:
                        entries.append(entry)
        except TapeNotFound:
            pass
        return _outcome(end, entries, text)

    async def complete(
        self, user: WebUser, request: PlainRequest, on_text: Callable[[str], None] | None = None
    ) -> ClientOutcome:
        """Pass a request to the model; see ``ClientBackend.complete``."""
        agent = self._web.agent
        identity = f"{API_CHANNEL}:{user.id}"
        spender = Spender(identity, "", "", user.role == "owner", new_id("request"))
        try:
            with spends(spender), calling_for(Caller(identity)):
                reply = await agent.model.complete(_plain(request), on_text)
        except ModelError as error:
            return ClientOutcome("", error=str(error), limited=isinstance(error, BudgetReached))
        return _of_reply(reply)

    async def _link(self, user: WebUser) -> None:
        """Have the person's clients share the memory of the channel that the token is for."""
        scopes, clock = self._web.scopes, self._web.agent.clock
        key = f"api-{user.id}"
        try:
            await link_identity(
                scopes, clock, user.id, user.name, chat="", key=key, channel=API_CHANNEL
            )
        except TapebotError as error:
            logger.warning("the memory of clients of %s is not linked yet: %s", user.id, error)
            return
        self._linked.add(user.id)


def _plain(request: PlainRequest) -> ModelRequest:
    given = dict(request.parameters)
    tools = [
        ToolSpec(str(one["name"]), str(one.get("description") or ""), one.get("parameters") or {})
        for one in given.pop("tools", ())
    ]
    return ModelRequest(
        messages=list(request.messages),
        tools=tools,
        tool_choice=str(given.pop("tool_choice", "auto")),
        max_tokens=given.pop("max_tokens", None),
        json_schema=given.pop("json_schema", None),
        parameters=given,
        purpose="summary",
    )


def _of_reply(reply: ModelReply) -> ClientOutcome:
    usage = reply.usage
    return ClientOutcome(
        reply.content,
        tuple((call.id, call.name, call.arguments) for call in reply.tool_calls),
        cut_off=reply.finish_reason == "length",
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
    )


def _outcome(end: TapeEntry | None, before: list[TapeEntry], text: str | None) -> ClientOutcome:
    """Return the outcome of a turn."""
    if end is None:
        return ClientOutcome(text or "")
    usage = parse_usage(end.data.get("usage"))
    if text is None:
        text = _text(before)
    failed = end.data.get("status") == "error"
    return ClientOutcome(
        text,
        _calls(before, str(end.data.get("turn"))) if end.data.get("status") == CLIENT_CALLS else (),
        error=(parse_reason(end.data.get("error")) or text) if failed else None,
        limited=end.data.get("limited") is True,
        cut_off=end.data.get("cut_off") is True or _CUT_OFF in text[-1_000:],
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
    )


def _text(before: list[TapeEntry]) -> str:
    said = next(
        (e for e in before if e.name == REPLY or e.payload.get("role") == "assistant"), None
    )
    if said is None:
        return ""
    answer = UndeliveredAnswer.from_entry("", said, None, ())
    return text_with_buttons(answer.text, [Button(*pair) for pair in answer.buttons])


def _calls(before: list[TapeEntry], turn: str) -> tuple[tuple[str, str, str], ...]:
    own = [entry for entry in before if entry.meta.get("turn") == turn]
    done = {entry.payload.get("call_id") for entry in own if entry.kind == "tool_result"}
    called = next((entry for entry in own if entry.kind == "tool_call"), None)
    if called is None:
        return ()
    return tuple(
        (str(call["id"]), str(call["name"]), str(call["arguments"]))
        for call in called.calls
        if call["id"] not in done
    )
