"""Turns of the past, as the tape has them: when, how long, what they took.

Rule 1: a turn is read from its end to its beginning, so finding the newest costs nothing of the others.
Rule 2: commands are no turns.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from bot.core.errors import TapeNotFound
from bot.llm.base import Usage
from bot.memory.conversation_entries import LOOP_STEP, TURN_END, TURN_START
from bot.memory.forgetting.tombstones import is_erased
from bot.memory.turn_fold import TURN_RESUME, parse_usage
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

OPEN = "open"
"""The status of a turn whose end is not on the tape."""

_ALL = 1 << 62
_AHEAD = 2_000
"""Entries behind one of a turn among which its end is looked for."""

_MARKS = frozenset({TURN_START, TURN_RESUME, LOOP_STEP, TURN_END})


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call whose answer is on the tape.

    Attributes:
        step: Its number within the turn, from 1.
        entry: Id of the event that records it.
        at: The last entry that the model knew of.
        status: ``tool_calls`` or ``answer``.
        model: Name of the model; empty where the tape does not say.
        usage: As the provider counted.
        cache_reported: Whether the provider said how much of the prompt its cache served.
        tail_records: Records of this step alone, at the end of its prompt.
        vision: Whether the model saw images; None where the tape does not say, or none was in view.
        images: Names of the images that it was shown; None where there were none to show.
        erased: Whether its records were erased since.
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


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn.

    Attributes:
        id: Its id.
        first: Id of the first entry that is part of it.
        last: Id of its end, or of the newest thing known of it.
        start: Id of its ``turn.start``.
        started: When it began, ISO 8601.
        ended: When it ended; None where it has not.
        status: How it ended; ``open`` where it has not.
        ms: Milliseconds that it took, since it was last taken up.
        steps: Model calls.
        tools: Names of the tools called, in order.
        usage: Of all its calls; None while it is open.
        model: Name of the model that answered last; empty where the tape does not say.
        error: What went wrong.
        calls: Those whose answer is on the tape.
        builders: Ids of its beginnings, with the context builder of each.
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
        """Return the name of the context builder that was used at an entry."""
        return [name for at, name in self.builders if at <= entry or at == self.start][-1]

    def call(self, step: int | None = None) -> ModelCall | None:
        """Return the last call, or that of a step; None where there is none."""
        fits = [one for one in self.calls if step is None or one.step == step]
        return fits[-1] if fits else None


@dataclass(slots=True)
class ScanPosition:
    """How far back turns were read, where there is more.

    Attributes:
        at: Id of the oldest entry that was read; 0 where nothing is left.
        unfinished_turn_entry: Id of the newest entry known of a turn whose beginning was not read; 0 where there is none.
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
    """Yield turns, the newest first.

    Args:
        tape: The session's.
        before: Only those that began before this entry.
        scanned: Entries that are read at most.
        only: Only the turn of this id.
        reach: Learns where it ended, if it was for these.

    Raises:
        TapeNotFound: There is no such tape.
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
                    # What is newer than a beginning has lost its own.
                    cut = [one[0].id for one in marks.values() if one[0].id < begun]
                    reach.at, reach.unfinished_turn_entry = entry.id + 1, max(cut, default=0)
                return
            turn = turn_id_of(entry)
            if turn is None or only not in (None, turn) or entry.data.get("status") == "command":
                continue
            marks.setdefault(turn, []).append(entry)
            if entry.name == TURN_START:
                found = _Begun(turn, entry, marks.pop(turn)[::-1], entry.id)
                begun = entry.id
    if found is not None:
        yield found.turn()


@dataclass(slots=True)
class _Begun:
    """A turn whose beginning was read; what was said just before is part of it."""

    id: str
    start: TapeEntry
    marks: list[TapeEntry]
    first: int

    def takes(self, entry: TapeEntry) -> bool:
        """Take in an entry before the beginning; False where it is no part of the turn."""
        inbound = self.start.data.get("inbound")
        own = inbound if isinstance(inbound, list) else []
        arrived = entry.kind == "message" and entry.meta.get("inbound") in own
        if arrived:
            self.first = entry.id
        return arrived or entry.kind == "system"

    def turn(self) -> PastTurn:
        """Return the turn."""
        return _turn(self.id, self.first, self.start, self.marks)


async def past_turn(
    tape: TapeService, turn: str, near: int | None = None, *, scanned: int = _ALL
) -> PastTurn:
    """Return a turn by its id.

    Args:
        tape: The session's.
        turn: The id.
        near: Id of an entry of it; what is newer is not read, where it is known.
        scanned: Entries that are read at most to find it.

    Raises:
        TapeNotFound: There is no such tape or turn, or it was not found among these entries.
    """
    before = None
    if near is not None and near < await tape.version():
        before = await _end_from(tape, turn, near) + 1
    async with aclosing(past_turns(tape, before, scanned=scanned, only=turn)) as turns:
        async for found in turns:
            return found
    if before is not None:
        return await past_turn(tape, turn, scanned=scanned)
    raise TapeNotFound(f"there is no turn {turn} on tape {tape.name}, or not near its end")


async def _end_from(tape: TapeService, turn: str, near: int) -> int:
    ahead = await tape.read_entries(near, near + _AHEAD)
    ends = (one.id for one in ahead if one.name == TURN_END and turn_id_of(one) == turn)
    return next(ends, await tape.version())


def _turn(turn: str, first: int, start: TapeEntry, marks: Sequence[TapeEntry]) -> PastTurn:
    end = next((one for one in marks if one.name == TURN_END and one.id > start.id), None)
    done = end.data if end is not None else {}
    calls = tuple(_call(one) for one in marks if one.name == LOOP_STEP and _number(one, "at"))
    tools = tuple(str(call.get("name")) for one in marks for call in one.calls)
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
        str(done["error"]) if "error" in done else None,
        calls,
        tuple(
            (one.id, str(one.data.get("builder", "default")))
            for one in marks
            if one.name in (TURN_START, TURN_RESUME)
        ),
    )


def turn_id_of(entry: TapeEntry) -> str | None:
    """Return the turn that an entry tells of; None where it tells of none."""
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
    return ModelCall(
        _number(entry, "step"),
        entry.id,
        _number(entry, "at"),
        str(data.get("status")),
        str(data.get("model") or ""),
        parse_usage(data.get("spent")),
        data.get("cache_told") is not False,
        tuple(map(str, extra)) if isinstance(extra, list) else (),
        images.get("vision") is True if isinstance(images, dict) else None,
        frozenset(map(str, shown)) if isinstance(shown, list) else None,
        is_erased(entry),
    )


def _number(entry: TapeEntry, key: str) -> int:
    value = entry.data.get(key)
    return value if type(value) is int else 0
