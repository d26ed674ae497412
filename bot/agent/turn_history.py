"""Read turns from the tape, newest first, with duration, usage and model calls.

Rule 1: a turn is read from its end to its start, so the newest turn costs nothing for older ones.
Rule 2: commands are not turns.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from bot.core.errors import TapeNotFound
from bot.core.i18n import _
from bot.core.reasons import parse_reason
from bot.llm.base import Usage
from bot.memory.records.conversation_entries import LOOP_STEP, NO_TURNS, TURN_END, TURN_START
from bot.memory.records.tombstones import is_erased
from bot.memory.records.turn_marks import turn_end, unfold
from bot.memory.session.state.turn_fold import TURN_RESUME, parse_usage
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

OPEN = "open"
"""Status of a turn whose end is not on the tape."""

_ALL = 1 << 62
_AHEAD = 2_000
"""Number of entries after a known entry of a turn in which its end is searched."""

_MARKS = frozenset({TURN_START, TURN_RESUME, LOOP_STEP, TURN_END})


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call whose answer is on the tape.

    Attributes:
        step: Its number within the turn, from 1.
        entry: Id of the event that records it.
        at: Id of the last entry that the request took into account.
        status: ``tool_calls`` or ``answer``.
        model: Name of the model; empty if not recorded.
        usage: Usage as the provider reported it.
        cache_reported: Whether the provider reported how much of the prompt came from its cache.
        tail_records: Records of this step only, at the end of its prompt.
        vision: Whether the model could see images; None if not recorded or if none was in view.
        images: Names of the images that it was shown; None if there was no image store.
        erased: Whether its records were erased since.
        shrunk: Characters shown of results that were shrunk, by entry id.
    """

    step: int
    entry: int
    at: int
    status: str
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    cache_reported: bool = True
    tail_records: tuple[str, ...] = ()
    vision: bool | None = None
    images: frozenset[str] | None = frozenset()
    erased: bool = False
    shrunk: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn as read from the tape.

    Attributes:
        id: The turn's id.
        first: Id of the first entry that is part of it.
        last: Id of its end, or of its newest known entry.
        start: Id of its ``turn.start``.
        started: Time of its start, ISO 8601.
        ended: Time of its end; None if it has not ended.
        status: Status of its end; ``open`` if it has not ended.
        ms: Duration in milliseconds, since it was last resumed.
        steps: Number of model calls.
        tools: Names of the tools called, in order.
        usage: Usage of all its calls; None while it is open.
        model: Name of the model that answered last; empty if not recorded.
        error: Error message, if it failed.
        calls: Model calls whose answer is on the tape.
        builders: Entry id and context builder of its start and of each resume.
    """

    id: str
    first: int
    last: int
    start: int
    started: str
    ended: str | None
    status: str
    ms: float | None
    steps: int
    tools: tuple[str, ...]
    usage: Usage | None
    model: str
    error: str | None
    calls: tuple[ModelCall, ...]
    builders: tuple[tuple[int, str], ...]

    def builder_at(self, entry: int) -> str:
        """Return the name of the context builder that was in use at an entry."""
        return [name for at, name in self.builders if at <= entry or at == self.start][-1]

    def call(self, step: int | None = None) -> ModelCall | None:
        """Return the last call, or the last one of a step; None if there is none."""
        fits = [model_call for model_call in self.calls if step is None or model_call.step == step]
        return fits[-1] if fits else None


@dataclass(slots=True)
class ScanPosition:
    """Where a scan for turns stopped.

    Attributes:
        at: Id of the oldest entry that was read; 0 if the scan was complete.
        unfinished_turn_entry: Id of the newest known entry of a turn whose start was not reached; 0
            if there is none.
    """

    at: int = 0
    unfinished_turn_entry: int = 0


async def past_turns(
    tape: TapeService,
    before: int | None = None,
    *,
    scanned: int = _ALL,
    only: str | None = None,
    reach: ScanPosition | None = None,
) -> AsyncGenerator[PastTurn, None]:
    """Yield turns, newest first.

    Args:
        tape: The session's tape.
        before: Yield only turns that began before this entry.
        scanned: Maximum number of entries to read.
        only: Yield only the turn with this id.
        reach: Receives the position where ``scanned`` stopped the scan.

    Yields:
        The turns whose start was read.

    Raises:
        TapeNotFound: The tape does not exist.
    """
    marks: dict[str, list[TapeEntry]] = {}
    found: _Begun | None = None
    begun = _ALL
    async with aclosing(tape.read_back(before)) as entries:
        async for entry in entries:
            scanned -= 1
            if found is not None:
                if found.takes(entry):
                    continue
                yield found.turn()
                found = None
            if scanned < 0:
                if reach is not None:
                    # Marks newer than a known start belong to a turn whose start is missing.
                    cut = [one[0].id for one in marks.values() if one[0].id < begun]
                    reach.at, reach.unfinished_turn_entry = entry.id + 1, max(cut, default=0)
                return
            mark = unfold(entry)[-1]
            turn = turn_id_of(mark)
            if turn is None or only not in (None, turn) or mark.data.get("status") in NO_TURNS:
                continue
            marks.setdefault(turn, []).append(mark)
            if mark.name == TURN_START:
                found = _Begun(turn, mark, marks.pop(turn)[::-1], mark.id)
                begun = mark.id
    if found is not None:
        yield found.turn()


@dataclass(slots=True)
class _Begun:
    """A turn whose start was read; the messages just before it may be part of it."""

    id: str
    start: TapeEntry
    marks: list[TapeEntry]
    first: int

    def takes(self, entry: TapeEntry) -> bool:
        """Extend the turn by an entry before its start; return False if it is not part."""
        inbound = self.start.data.get("inbound")
        own = inbound if isinstance(inbound, list) else []
        arrived = entry.kind == "message" and entry.meta.get("inbound") in own
        if arrived:
            self.first = entry.id
        return arrived or entry.kind == "system"

    def turn(self) -> PastTurn:
        """Return the finished record of the turn."""
        return _turn(self.id, self.first, self.start, self.marks)


async def past_turn(
    tape: TapeService, turn: str, near: int | None = None, *, scanned: int = _ALL
) -> PastTurn:
    """Return a turn by its id.

    Args:
        tape: The session's tape.
        turn: The turn's id.
        near: Id of an entry of the turn; if given, newer entries are skipped.
        scanned: Maximum number of entries to read.

    Raises:
        TapeNotFound: The tape or the turn does not exist, or the turn is not among these entries.
    """
    before = None
    if near is not None and near < await tape.version():
        before = await _end_from(tape, turn, near) + 1
    async with aclosing(past_turns(tape, before, scanned=scanned, only=turn)) as turns:
        async for found in turns:
            return found
    if before is not None:
        return await past_turn(tape, turn, scanned=scanned)
    raise TapeNotFound(
        _("there is no turn {turn} on tape {name}, or not near its end", turn=turn, name=tape.name)
    )


async def _end_from(tape: TapeService, turn: str, near: int) -> int:
    ahead = await tape.read_entries(near, near + _AHEAD)
    marks = filter(None, map(turn_end, ahead))
    ends = (mark.id for mark in marks if turn_id_of(mark) == turn)
    return next(ends, await tape.version())


def _turn(turn: str, first: int, start: TapeEntry, marks: Sequence[TapeEntry]) -> PastTurn:
    end = next((entry for entry in marks if entry.name == TURN_END and entry.id > start.id), None)
    done = end.data if end is not None else {}
    calls = tuple(
        _call(entry)
        for entry in marks
        if entry.name in (LOOP_STEP, TURN_END) and _number(entry, "at")
    )
    tools = tuple(str(call.get("name")) for entry in marks for call in entry.calls)
    ms = done.get("ms")
    model = done.get("model") or (calls[-1].model if calls else "")
    return PastTurn(
        turn,
        first,
        marks[-1].id,
        start.id,
        str(start.meta.get("ts", "")),
        str(end.meta.get("ts", "")) if end is not None else None,
        str(done.get("status")) if end is not None else OPEN,
        float(ms) if isinstance(ms, (int, float)) else None,
        max([call.step for call in calls], default=0),
        tools,
        parse_usage(done.get("usage")) if end is not None else None,
        str(model),
        parse_reason(done["error"]) if "error" in done else None,
        calls,
        tuple(
            (entry.id, str(entry.data.get("builder", "default")))
            for entry in marks
            if entry.name in (TURN_START, TURN_RESUME)
        ),
    )


def turn_id_of(entry: TapeEntry) -> str | None:
    """Return the id of the turn that an entry belongs to; None if it belongs to none."""
    if entry.kind == "event" and entry.name in _MARKS:
        turn = entry.data.get("turn")
    else:
        turn = entry.meta.get("turn") if entry.kind == "tool_call" else None
    return turn if isinstance(turn, str) else None


def _call(entry: TapeEntry) -> ModelCall:
    data = entry.data
    extra = data.get("extra")
    images: Any = data.get("images")
    shown = images.get("shown") if isinstance(images, dict) else []
    # The end of a turn tells of its only call, which the whole usage is of.
    only = entry.name == TURN_END
    return ModelCall(
        _number(entry, "steps" if only else "step"),
        entry.id,
        _number(entry, "at"),
        "answer" if only else str(data.get("status")),
        str(data.get("model") or ""),
        parse_usage(data.get("usage" if only else "spent")),
        data.get("cache_told") is not False,
        tuple(map(str, extra)) if isinstance(extra, list) else (),
        images.get("vision") is True if isinstance(images, dict) else None,
        frozenset(map(str, shown)) if isinstance(shown, list) else None,
        is_erased(entry),
        dict(data.get("shrunk") or ()),
    )


def _number(entry: TapeEntry, key: str) -> int:
    value = entry.data.get(key)
    return value if type(value) is int else 0
