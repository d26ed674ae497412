"""Runs one consolidation: reads a fixed range, asks the model, checks its answer, records it.

Nothing is written before the answer has passed every check; then history, zone and cursor are one
append. A result whose range has meanwhile been consolidated is dropped.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import tzinfo

from pydantic import ValidationError

from bot.consolidation.policy import Range
from bot.consolidation.prompts import (
    TOOL,
    SaveMemory,
    consolidation_messages,
    save_memory_tool,
    schema,
)
from bot.errors import ConsolidationFailed, ContextOverflow, MemoryRefused
from bot.llm.base import Model, ModelReply, ModelRequest, Usage
from bot.memory.fold import SessionFold
from bot.memory.guards import check_rewrite, merge_concurrent, says_nothing
from bot.memory.snapshot import HISTORY, MemorySnapshot
from bot.memory.transcript import local_time, transcript
from bot.memory.window import WindowFold, as_heard, begins_turn, entry_tokens
from bot.memory.zone import MemoryZone
from bot.tape.entries import MEMORY_CONSOLIDATED, TapeEntry, anchor, event
from bot.tape.service import TapeService

logger = logging.getLogger(__name__)

_SPOKEN = frozenset({"message", "tool_call", "tool_result"})
_SMALLEST_PORTION = 500
_DATED = re.compile(r"\s*\[\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Consolidation:
    """A checked result.

    Attributes:
        range: What it covers.
        history: The history entry.
        base: Long-term memory as the model saw it.
        update: Long-term memory as it should be.
        messages: How many the range holds.
        tokens: What they cost.
        since: Local time of the first thing said in the range.
        until: Of the last.
        usage: Of the call.
        cleared: When memory had last been cleared, as an entry id.
    """

    range: Range
    history: str
    base: str
    update: str
    messages: int
    tokens: int
    since: str
    until: str
    usage: Usage
    cleared: int = 0


async def consolidate(
    model: Model,
    tape: TapeService,
    wanted: Range,
    fold: SessionFold,
    *,
    portion_tokens: int,
    timezone: tzinfo,
) -> Consolidation:
    """Consolidate a range, or as much of its beginning as fits the model.

    Args:
        model: Does it.
        tape: Where the range is read.
        wanted: The range.
        fold: The session's state. What was said before its memory was cleared is not learned.
        portion_tokens: How much conversation fits one request; less is tried where it does not.
        timezone: The user's.

    Raises:
        ConsolidationFailed: The answer cannot be used; the text says why.
        ModelError: There was no answer.
    """
    entries = await tape.read_entries(wanted.first, wanted.last)
    while True:
        portion = _portion(entries, portion_tokens, fold.window)
        try:
            return await _consolidate_portion(model, wanted, portion, fold, timezone)
        except ContextOverflow:
            if portion_tokens < _SMALLEST_PORTION:
                raise
            portion_tokens //= 2


async def _consolidate_portion(
    model: Model,
    wanted: Range,
    entries: list[TapeEntry],
    fold: SessionFold,
    timezone: tzinfo,
) -> Consolidation:
    covered = Range(wanted.first, entries[-1].id if entries else wanted.last)
    long_term, cleared = fold.zone.snapshot.long_term, fold.zone.cleared
    heard = as_heard(entries, fold.window)
    lines = transcript((entry for entry in heard if entry.id > cleared), timezone)
    spoken = [entry for entry in heard if entry.kind in _SPOKEN]
    since = local_time(spoken[0], timezone) if spoken else "?"
    until = local_time(spoken[-1], timezone) if spoken else "?"
    if lines:
        refused = str(fold.failure.data.get("error")) if fold.failure is not None else None
        answer, usage = await _ask(model, long_term, lines, refused)
        history, update = answer.history_entry.strip(), answer.memory_update.strip()
        if not _DATED.match(history):
            history = f"[{since}] {history}"
    else:
        history, update, usage = f"[{since}] Nothing that was to be kept.", long_term, Usage()
    return Consolidation(
        range=covered,
        history=history,
        base=long_term,
        update=update,
        messages=sum(entry.kind == "message" for entry in spoken),
        tokens=sum(entry_tokens(entry) for entry in spoken),
        since=since,
        until=until,
        usage=usage,
        cleared=cleared,
    )


async def record(zone: MemoryZone, fold: SessionFold, result: Consolidation) -> bool:
    """Write history, zone and cursor as one append; False where the range was done already."""
    wanted = result.range.first

    def change(snapshot: MemorySnapshot) -> MemorySnapshot:
        if wanted != fold.window.cursor + 1 or fold.zone.cleared != result.cleared:
            return snapshot
        text = merge_concurrent(result.base, snapshot.long_term, result.update)
        return snapshot if text == snapshot.long_term else snapshot.with_long_term(text)

    def compose(fresh: MemorySnapshot, zone_part: list[TapeEntry], version: int) -> list[TapeEntry]:
        if wanted != fold.window.cursor + 1:
            logger.info("a consolidation of entries %s came too late; dropped", result.range)
            return []
        history = event(
            HISTORY,
            {
                "entry": result.history,
                "range": [result.range.first, result.range.last],
                "from": result.since,
                "to": result.until,
                "usage": result.usage.as_json(),
            },
        )
        state = {
            "through": result.range.last,
            "history": version + 1,
            "version": fresh.version,
            "messages": result.messages,
            "tokens": result.tokens,
        }
        return [history, *zone_part, anchor(MEMORY_CONSOLIDATED, state)]

    cursor = fold.window.cursor
    await zone.edit(change, compose)
    return cursor != fold.window.cursor


async def _ask(
    model: Model, long_term: str, lines: list[str], refused: str | None
) -> tuple[SaveMemory, Usage]:
    by_grammar = model.profile.json_schema and not model.profile.tools
    request = ModelRequest(
        messages=consolidation_messages(long_term, lines, by_grammar=by_grammar, refused=refused),
        tools=() if by_grammar else (save_memory_tool(),),
        tool_choice="auto" if by_grammar else TOOL,
        json_schema=schema() if by_grammar else None,
        # A small model that loops within the grammar must come to an end.
        max_tokens=1_500 if by_grammar else None,
        purpose="consolidation",
    )
    reply = await model.complete(request)
    try:
        answer = _read(reply, by_grammar=by_grammar)
        if not long_term and says_nothing(answer.memory_update):
            return answer.model_copy(update={"memory_update": ""}), reply.usage
        check_rewrite(long_term, answer.memory_update, answer.removed)
    except MemoryRefused as error:
        text = f"its memory update was refused: {error}"
        raise ConsolidationFailed(text, usage=reply.usage.as_json()) from error
    except ConsolidationFailed as error:
        error.usage = reply.usage.as_json()
        raise
    return answer, reply.usage


def _read(reply: ModelReply, *, by_grammar: bool) -> SaveMemory:
    if reply.finish_reason == "length":
        raise ConsolidationFailed("its answer was cut off at the model's limit")
    if by_grammar:
        text = reply.content
    else:
        calls = [call for call in reply.tool_calls if call.name == TOOL]
        if not calls:
            said = reply.content.strip()[:60]
            what = f"answered in prose ({said!r})" if said else "called no tool"
            raise ConsolidationFailed(f"it {what} instead of calling {TOOL}")
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
    """Return the turns at the beginning that fit; always one, however long it is."""
    counted = {entry.id for entry in as_heard(entries, window)}
    used = 0
    place = None
    for index, entry in enumerate(entries):
        if index and begins_turn(entry):
            if used > tokens:
                return entries[: place or index]
            place = index
        used += entry_tokens(entry) if entry.kind in _SPOKEN and entry.id in counted else 0
    return entries[:place] if used > tokens and place is not None else entries
