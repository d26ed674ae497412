"""Run one consolidation: read a fixed range, ask the model, check its answer, record it.

Nothing is written before the answer has been checked. Then the facts change, under an idempotency
key made from the range; history, zone and cursor follow in one append. After a crash between the
two, the consolidation is repeated. A result whose range was consolidated meanwhile is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, tzinfo

import anyio.to_thread

from bot.agent.cached_prompt import CachedPrompt
from bot.agent.consolidation.answer_tool import UnusableAnswer, answers_by_grammar
from bot.agent.consolidation.continued_consolidation import ContinuedConsolidation
from bot.agent.consolidation.policy import EntryRange
from bot.agent.consolidation.prompts import (
    SAVE_MEMORY_TOOL,
    SaveMemory,
    consolidation_messages,
)
from bot.agent.fact_changes import OwnWords, propose_changes
from bot.agent.refusals import complete
from bot.core.errors import ConsolidationFailed, ContextOverflow, MemoryRefused
from bot.core.folding import split_sentences
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason, parse_reason, reason_of
from bot.llm.base import Model, ModelReply, ModelRequest, Usage
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.records.conversation_entries import (
    CONVERSATION_KINDS,
    entry_tokens,
    is_caused,
    starts_turn,
    switched_problem,
)
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.evidence import MEMORY_PAUSED, is_local_only
from bot.memory.records.fact import Fact
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.records.transcript import format_entry_time, message_lines, recorded_at
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.context_window import WindowFold, visible_entries
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.tape.entries import MEMORY_CONSOLIDATED, TapeEntry, anchor, event
from bot.tape.search import GENERAL_PROBLEM, problem_of

logger = logging.getLogger(__name__)

_SMALLEST_PORTION = 500
_PLAIN_FROM = 2
"""Failures in a row after which the answer is asked for without a tool."""

_DATED = LazyPattern(r"\s*\[\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """A checked result.

    Attributes:
        range: Entries that it covers.
        history: The history entry.
        proposals: Changes of facts, each with its evidence or an objection.
        messages: Number of messages in the range.
        tokens: Estimated tokens of the range.
        since: Local time of the first message in the range.
        until: Local time of the last one.
        usage: Usage of the model calls.
        cleared: Id of the entry that last cleared the chat's memory.
        facts: Name of the scope whose facts the model was shown.
        emptied: Id of the entry that last cleared that scope.
        problem: Id of the problem that was active in the range.
        model: Name of the model; empty if none was asked.
        continued: Whether the model answered at the end of the conversation's prompt; None if it
            was not asked there.
    """

    range: EntryRange
    history: str
    proposals: tuple[Proposal, ...]
    messages: int
    tokens: int
    since: str
    until: str
    usage: Usage
    cleared: int = 0
    facts: str = ""
    emptied: int = 0
    problem: str = GENERAL_PROBLEM
    model: str = ""
    continued: bool | None = None


async def consolidate(
    model: Model,
    memory: LongTermMemory,
    entry_range: EntryRange,
    *,
    portion_tokens: int,
    timezone: tzinfo,
    private_model: Model | None = None,
    imported: datetime | None = None,
    cached: CachedPrompt | None = None,
) -> ConsolidationResult:
    """Consolidate a range, or as much of its beginning as fits the model.

    Args:
        model: The model that consolidates.
        memory: The session's long-term memory. Nothing is learned from messages before it was
            cleared, or while it was paused.
        entry_range: The range.
        portion_tokens: Maximum tokens of conversation in one request; halved if the model rejects
            it.
        timezone: The user's time zone.
        private_model: The model that sums up what was said in a private problem, of which no facts
            are learned; None leaves it without a summary.
        imported: When the messages were imported, if they were: what was cleared before that does
            not concern them.
        cached: The conversation's prompt, if a cache serves it; it is continued where that is cheaper.

    Raises:
        ConsolidationFailed: The answer cannot be used; the text says why.
        ModelError: The model gave no answer.
    """
    entries = await memory.tape.read_entries(entry_range.first, entry_range.last)
    # What fails is not asked in the same way again.
    failed = failed_attempts(memory.fold.consolidation_failure)
    portion_tokens = max(min(portion_tokens, _SMALLEST_PORTION), portion_tokens >> failed)
    while True:
        portion = _portion(entries, portion_tokens, memory.fold.window)
        try:
            heard = [
                entry
                for entry in visible_entries(portion, memory.fold.window, entries[len(portion) :])
                if entry.id not in memory.fold.refused.entries
            ]
            covered = EntryRange(entry_range.first, portion[-1].id if portion else entry_range.last)
            learn = _Learner(memory, timezone, model, imported=imported, cached=cached)
            if any(map(is_local_only, portion)):
                learn = _Learner(memory, timezone, private_model, history_only=True)
            return await _consolidate_portion(learn, covered, heard)
        except ContextOverflow:
            if portion_tokens < _SMALLEST_PORTION:
                raise
            portion_tokens //= 2


@dataclass(frozen=True, slots=True)
class _Learner:
    """Asks a model about messages.

    Attributes:
        memory: The session's long-term memory.
        timezone: The user's time zone.
        model: The model; None asks none.
        history_only: Whether only the history entry is wanted, for a private problem.
        imported: When the messages were imported; None if they were not.
        cached: The conversation's prompt; None if no cache serves it.
    """

    memory: LongTermMemory
    timezone: tzinfo
    model: Model | None
    history_only: bool = False
    imported: datetime | None = None
    cached: CachedPrompt | None = None


async def _consolidate_portion(
    learn: _Learner, covered: EntryRange, entries: list[TapeEntry]
) -> ConsolidationResult:
    memory, timezone, model = learn.memory, learn.timezone, learn.model
    fold, home = memory.fold, memory.home
    scope, emptied, cleared = home.name, home.fold.cleared_at, fold.zone.cleared
    clearing = await home.find_batch(emptied)
    before = recorded_at(clearing) if clearing is not None else None
    if learn.imported is not None and before is not None and learn.imported > before:
        before = None
    learned = _to_learn_from(entries, cleared, before)
    lines = message_lines(learned, timezone)
    continued = None
    if learn.cached is not None:
        in_view = list(learn.cached.entries)
        # Else the conversation shows what nothing may be learned from.
        if _to_learn_from(in_view, cleared, before) == in_view and learned == entries:
            continued = ContinuedConsolidation(learn.cached, covered)
    spoken = [entry for entry in entries if entry.kind in CONVERSATION_KINDS]
    since = format_entry_time(spoken[0], timezone) if spoken else "?"
    found = _CheckedAnswer("Nothing that was to be kept.")
    if lines and model is not None:
        found = await _learn(learn, model, lines, continued)
    history = found.history
    return ConsolidationResult(
        range=covered,
        history=history if _DATED.match(history) else f"[{since}] {history}",
        proposals=found.proposals,
        messages=sum(entry.kind == "message" and not is_caused(entry) for entry in spoken),
        tokens=sum(entry_tokens(entry) for entry in spoken if not is_caused(entry)),
        since=since,
        until=format_entry_time(spoken[-1], timezone) if spoken else "?",
        usage=found.usage,
        cleared=cleared,
        facts=scope,
        emptied=emptied,
        problem=problem_of(spoken[0]) if spoken else GENERAL_PROBLEM,
        model=model.name if lines and model is not None else "",
        continued=found.continued,
    )


@dataclass(frozen=True, slots=True)
class _CheckedAnswer:
    """A model's answer, with checked proposals; see ``ConsolidationResult``."""

    history: str
    proposals: tuple[Proposal, ...] = ()
    usage: Usage = field(default_factory=Usage)
    continued: bool | None = None


async def _learn(
    learn: _Learner,
    model: Model,
    lines: Sequence[tuple[TapeEntry, str]],
    continued: ContinuedConsolidation | None,
) -> _CheckedAnswer:
    """Ask the model about messages; return the history entry and checked proposals."""
    memory = learn.memory
    facts = [] if learn.history_only else memory.facts()
    failure = memory.fold.consolidation_failure
    newer = _said_later(facts, memory.tape.name, lines[-1][0])
    today = memory.zone.today()
    answer, usage, continues = None, Usage(), None
    entries = [entry for entry, _ in lines]
    if continued is not None and failure is None and continued.suits(model, entries):
        answer, usage = await continued.ask(
            model, facts, newer, lines, tape=memory.tape.name, today=today
        )
        continues = answer is not None
    if answer is None:
        # An answer of the assistant is shown without its time if that repeats.
        sources = {
            text: (memory.tape.name, entry.id)
            for entry, line in lines
            for text in (line.partition("] ")[2], line)
        }
        try:
            told = [line for _, line in lines]
            request = _request(model, facts, newer, told, failure=failure, today=today)
            answer, more = await _ask(model, replace(request, sources=sources))
        except ConsolidationFailed as error:
            error.usage = (usage + Usage(**error.usage)).as_json() if error.usage else None
            raise
        usage += more
    history = _without_orders(answer.history_entry)
    if learn.history_only:
        return _CheckedAnswer(history, usage=usage)
    # Many quotes in long messages would block the event loop.
    proposals = await anyio.to_thread.run_sync(
        propose_changes,
        answer.changes,
        OwnWords(memory.tape.name, entries),
        {fact.id: fact for fact in facts},
        abandon_on_cancel=True,
    )
    return _CheckedAnswer(history, tuple(proposals), usage, continues)


async def record_result(memory: LongTermMemory, result: ConsolidationResult) -> bool:
    """Change the facts and write history, zone and cursor; False if the range was done already."""
    fold, zone, entry_range = memory.fold, memory.zone, result.range
    if entry_range.first != fold.window.consolidated_through + 1:
        logger.info(
            "Memory consolidation: entries %s came too late, and are dropped", entry_range.text
        )
        return False
    # Another process may have separated identities while the model worked.
    await memory.update_identities()
    home = memory.home
    if result.facts != home.name:
        # Its fact numbers refer to another scope; the range stays open and is consolidated again.
        logger.info(
            "facts of %s belong elsewhere now; its consolidation is dropped", memory.tape.name
        )
        return False
    cleared = (fold.zone.cleared, home.fold.cleared_at) != (result.cleared, result.emptied)
    if not cleared and not memory.paused and result.proposals:
        key = f"range:{memory.tape.name}:{entry_range.first}-{entry_range.last}"
        await _apply(memory, ProposalBatch(key, "consolidation", result.proposals))

    def compose(fresh: MemorySnapshot, zone_part: list[TapeEntry], version: int) -> list[TapeEntry]:
        if entry_range.first != fold.window.consolidated_through + 1:
            return []
        done = _consolidated_anchor(result, history=version + 1, zone=fresh.version)
        return [_history_event(result), *zone_part, done]

    # Before the zone is written, since the prompt keeps that state.
    await memory.bus.semantic.decay_all()
    cursor = fold.window.consolidated_through
    await zone.edit(memory.with_current_facts, compose)
    return cursor != fold.window.consolidated_through


def consolidation_entries(result: ConsolidationResult, version: int) -> list[TapeEntry]:
    """Return what marks a range of an imported tape of this version as consolidated."""
    return [
        _history_event(result),
        _consolidated_anchor(result, history=version + 1, zone=0),
    ]


def _history_event(result: ConsolidationResult) -> TapeEntry:
    data = {
        "entry": result.history,
        "range": [result.range.first, result.range.last],
        "from": result.since,
        "to": result.until,
        "usage": result.usage.as_json(),
        **({"model": result.model} if result.model else {}),
    }
    return event(HISTORY_EVENT, data, problem=result.problem)


def _consolidated_anchor(result: ConsolidationResult, *, history: int, zone: int) -> TapeEntry:
    """Return the anchor that ends a consolidation.

    Args:
        result: The consolidation.
        history: Id of the history event.
        zone: Version of the memory zone.
    """
    state = {
        "through": result.range.last,
        "history": history,
        "version": zone,
        "messages": result.messages,
        "tokens": result.tokens,
    }
    return anchor(MEMORY_CONSOLIDATED, state)


async def _apply(memory: LongTermMemory, batch: ProposalBatch) -> None:
    try:
        await memory.apply(batch)
    except MemoryRefused as error:
        # Facts that it would end stay; new facts are saved all the same.
        proposals = tuple(
            replace(proposal, objection=reason_of(error)) if proposal.op == "retire" else proposal
            for proposal in batch.proposals
        )
        await memory.apply(replace(batch, proposals=proposals))


def failed_attempts(failure: TapeEntry | None) -> int:
    """Return how many times in a row the next range has failed."""
    found = failure.data.get("attempt") if failure is not None else 0
    return found if type(found) is int else 0


def _without_orders(history: str) -> str:
    """Return a history entry without instructions, since it enters the prompt after ``/new``."""
    kept = [
        sentence.strip()
        for sentence in split_sentences(history)
        if not contains_instructions(sentence)
    ]
    return " ".join(kept) or "What was said is on the tape."


def _to_learn_from(
    entries: Sequence[TapeEntry], cleared: int, emptied: datetime | None
) -> list[TapeEntry]:
    """Return the entries to learn from: after the last clearing, and not said while paused.

    Args:
        entries: Visible entries of the range.
        cleared: Id of the entry that last cleared memory in this chat.
        emptied: Time when memory was last cleared in any chat of the same scope.
    """
    found = []
    paused = False
    for entry in entries:
        if entry.kind == "message" and entry.payload.get("role") == "user":
            paused = entry.meta.get(MEMORY_PAUSED) is True
        moment = recorded_at(entry) if emptied is not None else None
        gone = moment is not None and emptied is not None and moment < emptied
        if entry.id > cleared and not paused and not gone:
            found.append(entry)
    return found


def _said_later(facts: Sequence[Fact], tape: str, last: TapeEntry) -> set[int]:
    """Return the numbers of the facts that rest on what was said after a message."""
    until = str(last.meta.get("ts", ""))
    return {
        fact.id
        for fact in facts
        for evidence in fact.evidence
        if (evidence.entry > last.id if evidence.tape == tape else evidence.when > until)
    }


def _request(
    model: Model,
    facts: Sequence[Fact],
    newer: Collection[int],
    lines: Sequence[str],
    *,
    failure: TapeEntry | None,
    today: date,
) -> ModelRequest:
    failed = failed_attempts(failure)
    plain = failed >= _PLAIN_FROM
    by_grammar = plain or answers_by_grammar(model)
    refused = str(parse_reason(failure.data.get("error"))) if failure is not None else None
    messages = consolidation_messages(
        facts,
        lines,
        by_grammar=by_grammar,
        today=today,
        newer=newer,
        refused=refused,
        attempt=failed + 1,
    )
    # A small model that loops within the grammar must be stopped.
    return SAVE_MEMORY_TOOL.request(
        model, messages, "consolidation", grammar_tokens=1_500, plain=plain
    )


async def _ask(model: Model, request: ModelRequest) -> tuple[SaveMemory, Usage]:
    reply = await complete(model, request)
    try:
        return _read(reply), reply.usage
    except ConsolidationFailed as error:
        error.usage = reply.usage.as_json()
        raise


def _read(reply: ModelReply) -> SaveMemory:
    if reply.finish_reason == "length":
        raise ConsolidationFailed(Reason("answer_cut_off"))
    arguments = SAVE_MEMORY_TOOL.arguments(reply)
    if arguments is None:
        said = reply.content.strip()[:60]
        tool = SAVE_MEMORY_TOOL.name
        raise ConsolidationFailed(
            Reason("answered_in_prose", said=said, tool=tool)
            if said
            else Reason("called_no_tool", tool=tool)
        )
    try:
        answer = SAVE_MEMORY_TOOL.read(arguments)
    except UnusableAnswer as error:
        raise ConsolidationFailed(reason_of(error)) from error
    if not answer.history_entry.strip():
        raise ConsolidationFailed(Reason("history_empty"))
    return answer


def _portion(entries: list[TapeEntry], tokens: int, window: WindowFold) -> list[TapeEntry]:
    """Return the first turns that fit; always at least one, however long.

    All of them belong to one problem, so that its content does not leak into others.
    """
    counted = {entry.id for entry in visible_entries(entries, window)}
    used = 0
    place = None
    for index, entry in enumerate(entries):
        if used and switched_problem(entry) is not None:
            return entries[:index]
        if used and starts_turn(entry):
            if used > tokens:
                return entries[: place or index]
            place = index
        used += (
            entry_tokens(entry) if entry.kind in CONVERSATION_KINDS and entry.id in counted else 0
        )
    return entries[:place] if used > tokens and place is not None else entries
