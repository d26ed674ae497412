"""Problem lines, with working sets below: ``p1: Patent | active 02-10T10:14 | pri 7``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import groupby

from bot.memory.records.compartment_records import Problem
from bot.memory.records.compression.list_header import (
    TimeNotation,
    most_common,
    parse_header,
)
from bot.memory.records.compression.notation import (
    CELL_SEPARATOR,
    KEY_SEPARATOR,
    LineParser,
    encode_cell,
    encode_value,
    encode_word,
    encode_words,
)
from bot.memory.records.compression.working_sets import decode_working, encode_working

_TITLE = "problems (id: name | state t)"
_PRIORITY = 5
_NO_WEIGHT = (0, 0)
_INSIDE = "\t"
"""Prefix of the lines of a problem's working set."""


@dataclass(frozen=True, slots=True)
class _Legend:
    times: TimeNotation
    lane: str | None

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> _Legend:
        return cls(
            TimeNotation.of([problem.last_active for problem in problems]),
            most_common([problem.lane_id for problem in problems]),
        )

    def header(self) -> str:
        lane = [] if self.lane is None else [encode_cell("lane", self.lane)]
        return CELL_SEPARATOR.join([_TITLE, *self.times.cells(), *lane])

    def line(self, problem: Problem) -> str:
        """Write a problem, with cells only for what differs from the header or default."""
        cells = [
            f"{encode_word(problem.problem_id, KEY_SEPARATOR)}: {encode_value(problem.name, '|')}",
            f"{problem.state} {self.times.write(problem.last_active)}",
        ]
        if problem.created_at != problem.last_active:
            cells.append(f"since {self.times.write(problem.created_at)}")
        if problem.priority != _PRIORITY:
            cells.append(encode_cell("pri", problem.priority))
        if problem.lane_id != self.lane:
            cells.append(encode_cell("lane", problem.lane_id))
        if problem.summary:
            cells.append(encode_cell("sum", problem.summary))
        cells += encode_words("view", _runs(problem.resumable_entry_ids))
        if problem.resumable_size != _NO_WEIGHT:
            cells.append(encode_cell("weight", problem.resumable_size))
        if problem.private:
            cells.append(encode_cell("private", True))
        inside = encode_working(problem.working_set).split("\n") if problem.working_set else []
        return "\n".join([CELL_SEPARATOR.join(cells), *(f"{_INSIDE}{line}" for line in inside)])

    def read(self, line: str) -> Problem:
        reader = LineParser(line)
        problem = reader.read_word(KEY_SEPARATOR)
        reader.require_sign(": ")
        name = reader.read_value("|")
        reader.next_cell()
        state = reader.read_word(" ")
        reader.require_sign(" ")
        used = self.times.read(reader.read_word(" "))
        said = reader.read_cells()
        return Problem(
            problem,
            name,
            state,  # type: ignore[arg-type]
            said.get("lane", self.lane),
            self.times.read(said["since"]) if "since" in said else used,
            used,
            None,
            said.get("pri", _PRIORITY),
            said.get("sum", ""),
            _numbers(text for text, _ in said.get("view", ())),
            tuple(said.get("weight", _NO_WEIGHT)),
            said.get("private", False),
        )


def encode_problems(problems: Sequence[Problem]) -> str:
    """Encode problems, one line each below a header; empty if there are none."""
    legend = _Legend.of(problems)
    return "\n".join([legend.header(), *map(legend.line, problems)]) if problems else ""


def decode_problems(text: str) -> list[Problem]:
    """Decode what ``encode_problems`` wrote.

    Raises:
        ValueError: The text is not in this notation.
    """
    if not text:
        return []
    said, _, lines = parse_header(text, _TITLE)
    legend = _Legend(TimeNotation(said.get("year")), said.get("lane"))
    problems: list[Problem] = []
    for inside, group in groupby(lines, lambda line: line.startswith(_INSIDE)):
        if inside and problems:
            working = decode_working("\n".join(line[len(_INSIDE) :] for line in group))
            problems[-1] = replace(problems[-1], working_set=working)
        else:
            problems += map(legend.read, group)
    return problems


def render_problems(
    problems: Iterable[Problem], active: str, timezone: tzinfo | None = None
) -> str:
    """Render all problems for the model, the active one first, then by priority.

    Each line is readable without a header: ``p1: Patent (paused, used 2026-02-10): file in
    English``. Working sets are left out, because only their own problem may read them, and so are
    resumable entries, ids, and all times but the day of the last use.

    Args:
        problems: The problems.
        active: Id of the active problem.
        timezone: Time zone of the dates; UTC by default.
    """
    ranked = sorted(problems, key=lambda problem: (problem.problem_id != active, -problem.priority))
    return "\n".join(_shown(problem, active, timezone or UTC) for problem in ranked)


def _shown(problem: Problem, active: str, timezone: tzinfo) -> str:
    said: list[str] = ["worked on now" if problem.problem_id == active else problem.state]
    said.append(f"used {problem.last_active.astimezone(timezone).date().isoformat()}")
    if problem.priority != _PRIORITY:
        said.append(f"priority {problem.priority}")
    line = f"{encode_word(problem.problem_id, KEY_SEPARATOR)}: {encode_value(problem.name, '(')} ({', '.join(said)})"
    return f"{line}: {encode_value(problem.summary, '')}" if problem.summary else line


def _runs(numbers: Sequence[int]) -> list[str]:
    """Write numbers as words, with runs of consecutive ones as ``3-9``."""
    found = []
    for _, group in groupby(enumerate(numbers), lambda one: one[1] - one[0]):
        run = [number for _, number in group]
        long = len(run) > 2 and run[0] >= 0
        found += [f"{run[0]}-{run[-1]}"] if long else [str(one) for one in run]
    return found


def _numbers(texts: Iterable[str]) -> tuple[int, ...]:
    found: list[int] = []
    for text in texts:
        first, sign, last = text[1:].partition("-")
        first = text[:1] + first
        found += range(int(first), int(last) + 1) if sign else [int(first)]
    return tuple(found)
