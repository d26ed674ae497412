"""Runs one consolidation: reads a fixed range, asks the model, checks its answer, records it.

Nothing is written before the answer has been checked. Then the facts change, under a key made of the
range; and history, zone and cursor are one append. A kill between the two is mended by doing it again.
A result whose range has meanwhile been consolidated is dropped.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from pydantic import ValidationError

from bot.agent.consolidation.claim_judge import judge_claims
from bot.agent.consolidation.evidence_checker import CheckedOperation, EvidenceChecker
from bot.agent.consolidation.policy import EntryRange
from bot.agent.consolidation.prompts import (
    SAVE_MEMORY_TOOL_NAME,
    FactOperation,
    SaveMemory,
    consolidation_messages,
    save_memory_schema,
    save_memory_tool,
)
from bot.core.errors import ConsolidationFailed, ContextOverflow, MemoryRefused
from bot.language.clauses import split_sentences
from bot.llm.base import Model, ModelReply, ModelRequest, Usage
from bot.memory.context_window import WindowFold, visible_entries
from bot.memory.conversation_entries import (
    CONVERSATION_KINDS,
    entry_tokens,
    starts_turn,
    switched_problem,
)
from bot.memory.facts.evidence import MEMORY_PAUSED
from bot.memory.facts.fact import Fact
from bot.memory.facts.proposals import Proposal, ProposalBatch
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.long_term_memory import LongTermMemory
from bot.memory.transcript import format_entry_time, message_lines, recorded_at
from bot.memory.zone_snapshot import HISTORY_EVENT, MemorySnapshot
from bot.tape.entries import MEMORY_CONSOLIDATED, TapeEntry, anchor, event
from bot.tape.search import GENERAL_PROBLEM, problem_of

logger = logging.getLogger(__name__)

_SMALLEST_PORTION = 500
_DATED = re.compile(r"\s*\[\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """A checked result.

    Attributes:
        range: What it covers.
        history: The history entry.
        proposals: What is to change of the facts, each with what it rests on or why it does not hold.
        messages: How many the range holds.
        tokens: What they cost.
        since: Local time of the first thing said in the range.
        until: Of the last.
        usage: Of the call.
        cleared: When memory had last been cleared, as an entry id.
        facts: The scope whose facts the model was shown.
        emptied: When that had last been cleared, as an entry id.
        problem: The one that was worked on in the range.
        model: The name of the model; empty where none was asked.
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


async def consolidate(
    model: Model,
    memory: LongTermMemory,
    wanted: EntryRange,
    *,
    portion_tokens: int,
    timezone: tzinfo,
    judging: Model | None = None,
) -> ConsolidationResult:
    """Consolidate a range, or as much of its beginning as fits the model.

    Args:
        model: Does it.
        memory: The session's. What was said before it was cleared, or while it was paused, is not
            learned.
        wanted: The range.
        portion_tokens: How much conversation fits one request; less is tried where it does not.
        timezone: The user's.
        judging: Says whether people's words carry what is to be learned; None leaves that to rules.

    Raises:
        ConsolidationFailed: The answer cannot be used; the text says why.
        ModelError: There was no answer.
    """
    entries = await memory.tape.read_entries(wanted.first, wanted.last)
    while True:
        portion = _portion(entries, portion_tokens, memory.fold.window)
        try:
            heard = visible_entries(portion, memory.fold.window, entries[len(portion) :])
            covered = EntryRange(wanted.first, portion[-1].id if portion else wanted.last)
            return await _consolidate_portion(
                model, memory, covered, heard, timezone=timezone, judging=judging
            )
        except ContextOverflow:
            if portion_tokens < _SMALLEST_PORTION:
                raise
            portion_tokens //= 2


async def _consolidate_portion(
    model: Model,
    memory: LongTermMemory,
    covered: EntryRange,
    heard: list[TapeEntry],
    *,
    timezone: tzinfo,
    judging: Model | None,
) -> ConsolidationResult:
    fold, home = memory.fold, memory.home
    scope, emptied = home.name, home.fold.cleared_at
    cleared = fold.zone.cleared
    clearing = await home.find_batch(emptied)
    before = recorded_at(clearing) if clearing is not None else None
    lines = message_lines(_to_learn_from(heard, cleared, before), timezone)
    spoken = [entry for entry in heard if entry.kind in CONVERSATION_KINDS]
    since = format_entry_time(spoken[0], timezone) if spoken else "?"
    until = format_entry_time(spoken[-1], timezone) if spoken else "?"
    proposals: tuple[Proposal, ...] = ()
    if lines:
        facts = memory.facts()
        answer, usage = await _ask(
            model, facts, [line for _, line in lines], fold.consolidation_failure
        )
        history = _without_orders(answer.history_entry)
        if not _DATED.match(history):
            history = f"[{since}] {history}"
        said = [entry for entry, _ in lines]
        checker = EvidenceChecker(memory.tape.name, said, {one.id: one for one in facts}, timezone)
        proposals, cost = await make_proposals(checker, answer.operations, judging)
        usage += cost
    else:
        history, usage = f"[{since}] Nothing that was to be kept.", Usage()
    return ConsolidationResult(
        range=covered,
        history=history,
        proposals=proposals,
        messages=sum(entry.kind == "message" for entry in spoken),
        tokens=sum(entry_tokens(entry) for entry in spoken),
        since=since,
        until=until,
        usage=usage,
        cleared=cleared,
        facts=scope,
        emptied=emptied,
        problem=problem_of(spoken[0]) if spoken else GENERAL_PROBLEM,
        model=model.name if lines else "",
    )


async def make_proposals(
    checker: EvidenceChecker, operations: Sequence[FactOperation], judging: Model | None
) -> tuple[tuple[Proposal, ...], Usage]:
    """Return a model's operations as proposals, checked and judged, and what the judge cost.

    Args:
        checker: Checks them.
        operations: What the model wants.
        judging: The judge; None leaves all to the checker's rules.
    """
    if judging is None:
        return tuple(map(checker.check_by_rules, operations)), Usage()
    checked: list[CheckedOperation] = [checker.check(one) for one in operations]
    judgements, usage = await judge_claims(
        judging, [one.question for one in checked], checker.timezone
    )
    made = (one.apply_judgement(said) for one, said in zip(checked, judgements, strict=True))
    return tuple(made), usage


async def record_result(memory: LongTermMemory, result: ConsolidationResult) -> bool:
    """Change the facts; write history, zone and cursor. False where the range was done already."""
    fold, zone, wanted = memory.fold, memory.zone, result.range
    if wanted.first != fold.window.consolidated_through + 1:
        logger.info("Memory consolidation: entries %s came too late, and are dropped", wanted.text)
        return False
    # Another process may have parted them while the model was at it.
    await memory.update_identities()
    home = memory.home
    if result.facts != home.name:
        # The numbers in it are of other facts; the range stays open, and is done again.
        logger.info(
            "facts of %s belong elsewhere now; its consolidation is dropped", memory.tape.name
        )
        return False
    cleared = (fold.zone.cleared, home.fold.cleared_at) != (result.cleared, result.emptied)
    if not cleared and not memory.paused and result.proposals:
        key = f"range:{memory.tape.name}:{wanted.first}-{wanted.last}"
        await _apply(memory, ProposalBatch(key, "consolidation", result.proposals))

    def compose(fresh: MemorySnapshot, zone_part: list[TapeEntry], version: int) -> list[TapeEntry]:
        if wanted.first != fold.window.consolidated_through + 1:
            return []
        history = event(
            HISTORY_EVENT,
            {
                "entry": result.history,
                "range": [wanted.first, wanted.last],
                "from": result.since,
                "to": result.until,
                "usage": result.usage.as_json(),
                **({"model": result.model} if result.model else {}),
            },
            problem=result.problem,
        )
        state = {
            "through": wanted.last,
            "history": version + 1,
            "version": fresh.version,
            "messages": result.messages,
            "tokens": result.tokens,
        }
        return [history, *zone_part, anchor(MEMORY_CONSOLIDATED, state)]

    # Before the zone is written: it stays in the prompt as it is then.
    await memory.bus.semantic.decay_all()
    cursor = fold.window.consolidated_through
    await zone.edit(memory.with_current_facts, compose)
    return cursor != fold.window.consolidated_through


async def _apply(memory: LongTermMemory, batch: ProposalBatch) -> None:
    try:
        await memory.apply(batch)
    except MemoryRefused as error:
        # What it would end stays; what is new is believed all the same.
        kept = tuple(
            replace(one, objection=str(error)) if one.op == "retire" else one
            for one in batch.proposals
        )
        await memory.apply(replace(batch, proposals=kept))


def failed_attempts(failure: TapeEntry | None) -> int:
    """Return how often the next range has failed in a row."""
    found = failure.data.get("attempt") if failure is not None else 0
    return found if type(found) is int else 0


def _without_orders(history: str) -> str:
    """Return a history entry without what gives orders: it is told to the model again after ``/new``."""
    kept = [one.strip() for one in split_sentences(history) if not contains_instructions(one)]
    return " ".join(kept) or "What was said is on the tape."


def _to_learn_from(
    heard: Sequence[TapeEntry], cleared: int, emptied: datetime | None
) -> list[TapeEntry]:
    """Return what may be learned from: nothing from before a clearing, or said while paused.

    Args:
        heard: What was said.
        cleared: Id of the entry that last cleared memory in this chat.
        emptied: When that was last done in any chat of the same scope.
    """
    found = []
    paused = False
    for entry in heard:
        if entry.kind == "message" and entry.payload.get("role") == "user":
            paused = entry.meta.get(MEMORY_PAUSED) is True
        moment = recorded_at(entry) if emptied is not None else None
        gone = moment is not None and emptied is not None and moment < emptied
        if entry.id > cleared and not paused and not gone:
            found.append(entry)
    return found


async def _ask(
    model: Model, facts: Sequence[Fact], lines: list[str], failure: TapeEntry | None
) -> tuple[SaveMemory, Usage]:
    by_grammar = model.profile.json_schema and not model.profile.tools
    refused = str(failure.data.get("error")) if failure is not None else None
    request = ModelRequest(
        messages=consolidation_messages(facts, lines, by_grammar=by_grammar, refused=refused),
        tools=() if by_grammar else (save_memory_tool(),),
        tool_choice="auto" if by_grammar else SAVE_MEMORY_TOOL_NAME,
        json_schema=save_memory_schema() if by_grammar else None,
        # A small model that loops within the grammar must come to an end.
        max_tokens=1_500 if by_grammar else None,
        purpose="consolidation",
    )
    reply = await model.complete(request)
    try:
        return _read(reply, by_grammar=by_grammar), reply.usage
    except ConsolidationFailed as error:
        error.usage = reply.usage.as_json()
        raise


def _read(reply: ModelReply, *, by_grammar: bool) -> SaveMemory:
    if reply.finish_reason == "length":
        raise ConsolidationFailed("its answer was cut off at the model's limit")
    if by_grammar:
        text = reply.content
    else:
        calls = [call for call in reply.tool_calls if call.name == SAVE_MEMORY_TOOL_NAME]
        if not calls:
            said = reply.content.strip()[:60]
            what = f"answered in prose ({said!r})" if said else "called no tool"
            raise ConsolidationFailed(f"it {what} instead of calling {SAVE_MEMORY_TOOL_NAME}")
        text = calls[0].arguments
    try:
        answer = SaveMemory.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        raise ConsolidationFailed(f"its {where} cannot be used: {first['msg']}") from error
    if not answer.history_entry.strip():
        raise ConsolidationFailed("its history entry is empty")
    return answer


def _portion(entries: list[TapeEntry], tokens: int, window: WindowFold) -> list[TapeEntry]:
    """Return the turns at the beginning that fit; always one, however long it is.

    All of them are of one problem: what is told of it is told to nobody who works on another.
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
