"""Show the model a problem's working set, shared values and problems, within limits. Pure.

Each line is readable without a header. Ids, versions and clock times are left out; a line that says
how much is left out follows if not all fits. The caller escapes the prompt's own tags.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, tzinfo
from itertools import groupby
from typing import Any

from bot.memory.records.compartment_records import (
    GOAL_KEYS,
    Problem,
    SharedReference,
    WorkingSet,
)
from bot.memory.records.notation import encode_items, encode_value, encode_word, quote_text

WORKSPACE_MARK = "workspace"
"""Stands for the source of a workspace value, which is hidden: it may name a private chat."""

MAX_REFERENCE_BYTES = 1_500
"""Size limit of shared reference in a prompt, in bytes."""

_NAME = " :="
_RESERVED = frozenset({"assumed", "open", "draft", "decided"})
"""Words that begin other lines than those of constraints."""

_PRIORITY = 5


def render_context_packet(working: WorkingSet, problem_name: str, most: int) -> str:
    """Render a problem's working set in at most ``most`` characters.

    If not all fits, notes are left out one by one, and the last line counts them by kind. First go
    notes that alone take half of the room, then assumptions, least certain first, then decisions,
    questions, drafts and constraints, oldest first.
    """
    notes = [*_notes(working)]
    leaving = sorted(
        range(len(notes)),
        key=lambda at: (len(encode_value(notes[at][3], "")) <= most // 2, notes[at][1], at),
    )
    title = f"Problem at hand: {encode_value(problem_name, '')}"

    def shown(left: int) -> str:
        gone = frozenset(leaving[:left])
        kept = (note for at, note in enumerate(notes) if at not in gone)
        return "\n".join([title, *_lines(kept)])

    def told(left: int) -> str:
        counted = Counter(notes[at][0] for at in leaving[:left])
        items = (f"{times} {name}{'s' * (times > 1)}" for name, times in counted.items())
        return f"(left out: {', '.join(items)})"

    if len(whole := shown(0)) <= most:
        return whole
    # Reserves room for the longest note, so that each omission leaves more room than before.
    room = most - len(told(len(notes))) - 1
    left = bisect_left(range(len(notes)), True, key=lambda count: len(shown(count)) <= room)
    return f"{shown(left)}\n{told(left)}"[: max(0, most)]


_Note = tuple[str, tuple[int, float], str, Any]
"""Kind of a note, its rank among those to leave out, the start of its line, and its value."""


def _notes(working: WorkingSet) -> Iterator[_Note]:
    """Yield the notes in the order of their lines, in whatever shapes an imported tape holds."""
    constraints: dict[str, Any] = working.constraints
    for name, held in constraints.items():
        head = quote_text(name) if name in _RESERVED else encode_word(name, _NAME)
        for one in held if isinstance(held, list) else [held]:
            yield "constraint", (4, 0), head, one
    for one in map(_record, working.assumptions):
        sure = one.pop("confidence", None)
        known = type(sure) in (int, float)
        head = f"assumed {encode_value(sure, ':')}" if known else "assumed"
        yield "assumption", (0, max(0.0, min(1.0, sure or 0.0)) if known else 0.0), head, one
    for one in working.open_questions:
        yield "question", (2, 0), "open", one
    for name, one in working.partial_artifacts.items():
        yield "draft", (3, 0), f"draft {encode_word(name, _NAME)}", one
    for one in map(_record, working.local_decisions):
        yield "decision", (1, 0), "decided", one


def _record(one: Any) -> dict[str, Any]:
    return dict(one) if isinstance(one, dict) else {"a": one}


def _lines(notes: Iterable[_Note]) -> Iterator[str]:
    """Yield lines; constraints, assumptions and questions share one if they begin alike."""
    for (kind, head), alike in groupby(notes, lambda note: (note[0], note[2])):
        values = [note[3] for note in alike]
        if kind == "assumption":
            values = [one["a"] if one.keys() == {"a"} else one for one in values]
        if kind == "decision":
            yield from (f"{head}: {_decision(one)}" for one in values)
        elif kind == "draft":
            yield from (f"{head}: {encode_value(one, '')}" for one in values)
        else:
            yield f"{head}: {encode_items(values)}"


def _decision(one: dict[str, Any]) -> str:
    rest = {**one}
    main, why = rest.pop("d", rest.pop("a", None)), rest.pop("why", None)
    cells = [encode_value(main, "|")]
    cells += [f"why {encode_value(why, '|')}"] if why is not None else []
    return " | ".join(cells + ([encode_value(rest, "|")] if rest else []))


def render_references(
    refs: Iterable[SharedReference],
    most_bytes: int = MAX_REFERENCE_BYTES,
    timezone: tzinfo | None = None,
) -> str:
    """Render shared values as ``home: Rome (set 2026-02-10)``, in their order, in ``most_bytes`` of UTF-8.

    If not all fit, north stars and priorities take precedence, then the newest values that are not
    stale. Dates are in a time zone, by default UTC.
    """
    references = list(refs)
    lines = [_reference(one, timezone or UTC) for one in references]
    ranked = sorted(
        range(len(references)),
        key=lambda at: (
            references[at].key in GOAL_KEYS,
            not references[at].stale,
            references[at].updated_at,
        ),
        reverse=True,
    )
    room = most_bytes + 1
    if sum(map(_size, lines)) > room:
        room -= _size(_more(len(references)))
    chosen: set[int] = set()
    for at in ranked:
        if _size(lines[at]) <= room:
            room -= _size(lines[at])
            chosen.add(at)
    if not chosen:
        return ""
    shown = [line for at, line in enumerate(lines) if at in chosen]
    left = len(references) - len(chosen)
    return "\n".join([*shown, _more(left)] if left else shown)


def _reference(ref: SharedReference, timezone: tzinfo) -> str:
    said = [f"set {ref.updated_at.astimezone(timezone).date().isoformat()}"]
    if ref.updated_by == "assistant":
        said[0] += " by the assistant"
    if ref.source == WORKSPACE_MARK:
        said.append("for everyone")
    if ref.stale:
        said.append("may be out of date")
    return f"{_named(ref.key, ref.value)} ({', '.join(said)})"


def render_problems(
    problems: Iterable[Problem], active: str, timezone: tzinfo | None = None
) -> str:
    """Render problems as ``p1: Patent (paused, used 2026-02-10): file in English``.

    The active one, given by its id, comes first, the others by priority. Working sets are left out,
    because only their own problem may read them. Dates are in a time zone, by default UTC.
    """
    ranked = sorted(problems, key=lambda problem: (problem.problem_id != active, -problem.priority))
    return "\n".join(_problem(problem, active, timezone or UTC) for problem in ranked)


def _problem(problem: Problem, active: str, timezone: tzinfo) -> str:
    said: list[str] = ["worked on now" if problem.problem_id == active else problem.state]
    said.append(f"used {problem.last_active.astimezone(timezone).date().isoformat()}")
    if problem.priority != _PRIORITY:
        said.append(f"priority {problem.priority}")
    line = f"{_named(problem.problem_id, problem.name)} ({', '.join(said)})"
    return f"{line}: {encode_value(problem.summary, '')}" if problem.summary else line


def _named(name: str, value: Any) -> str:
    return f"{encode_word(name, ':|')}: {encode_value(value, '(')}"


def _size(line: str) -> int:
    return len(line.encode()) + 1


def _more(left: int) -> str:
    return f"({left} more)"
