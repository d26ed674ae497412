"""Working sets, a line per kind of note: ``must: deadline fri; budget <10k``. Pure.

``assumed`` is an assumption with its confidence, ``open`` the open questions, ``draft`` a partial
artifact by name, and ``decided`` a decision. Every other name is that of a constraint. A note of an
unexpected shape follows ``=``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from math import inf
from typing import Any

from bot.memory.records.compartment_records import WorkingSet
from bot.memory.records.compression.list_header import (
    TimeNotation,
    most_common,
    parse_header,
)
from bot.memory.records.compression.notation import (
    CELL_SEPARATOR,
    LineParser,
    encode_cell,
    encode_items,
    encode_value,
    encode_word,
    join_content,
    quote_text,
    split_content,
)

_TITLE = "working sets"
_FIRST = "problem "
_RESERVED = frozenset({"problem", "assumed", "open", "draft", "decided", "packet"})
_NAME = " :="
_ITEM = "|;"
_HOURS = 2.0


@dataclass(frozen=True, slots=True)
class _Legend:
    times: TimeNotation
    lane: str | None

    def first(self, working: WorkingSet) -> str:
        """Write the first line: problem, times and lane."""
        cells = [
            f"{_FIRST}{encode_value(working.problem_id, '|')}",
            f"t {self.times.write(working.created_at)}",
        ]
        if working.expires_at != _end(working.created_at, working.ttl_hours):
            cells.append(f"ends {self.times.write(working.expires_at)}")
        if working.ttl_hours != _HOURS:
            cells.append(encode_cell("ttl", working.ttl_hours))
        if working.lane_id != self.lane:
            cells.append(encode_cell("lane", working.lane_id))
        return CELL_SEPARATOR.join(cells)

    def read(self, lines: Sequence[str]) -> WorkingSet:
        reader = LineParser(lines[0])
        reader.require_sign(_FIRST)
        problem = reader.read_value("|")
        said = reader.read_cells()
        created, hours = self.times.read(said["t"]), said.get("ttl", _HOURS)
        ends = self.times.read(said["ends"]) if "ends" in said else _end(created, hours)
        lane = said.get("lane", self.lane)
        working = WorkingSet(problem, lane, created, ends or created, ttl_hours=hours)
        packet = ""
        for line in lines[1:]:
            packet = _take(working, LineParser(line)) or packet
        return replace(working, context_packet=packet)


def encode_working(working: WorkingSet) -> str:
    """Encode a working set."""
    return "\n".join([_Legend(TimeNotation(), None).first(working), *_lines(working)])


def decode_working(text: str) -> WorkingSet:
    """Decode what ``encode_working`` wrote.

    Raises:
        ValueError: The text is not in this notation.
    """
    return _Legend(TimeNotation(), None).read(text.split("\n"))


def encode_working_sets(sets: Sequence[WorkingSet]) -> str:
    """Encode working sets below a header; empty if there are none."""
    if not sets:
        return ""
    legend = _Legend(
        TimeNotation.of([working_set.created_at for working_set in sets]),
        most_common([o.lane_id for o in sets]),
    )
    lane = [] if legend.lane is None else [encode_cell("lane", legend.lane)]
    found = [CELL_SEPARATOR.join([_TITLE, *legend.times.cells(), *lane])]
    for other in sets:
        found += [legend.first(other), *_lines(other)]
    return "\n".join(found)


def decode_working_sets(text: str) -> list[WorkingSet]:
    """Decode what ``encode_working_sets`` wrote.

    Raises:
        ValueError: The text is not in this notation.
    """
    if not text:
        return []
    said, _, lines = parse_header(text, _TITLE)
    legend = _Legend(TimeNotation(said.get("year")), said.get("lane"))
    starts = [at for at, line in enumerate(lines) if line.startswith(_FIRST)]
    return [legend.read(lines[at:end]) for at, end in pairwise([*starts, len(lines)])]


def working_lines(working: WorkingSet) -> Iterator[str]:
    """Yield the lines of a working set's notes."""
    constraints: dict[str, Any] = working.constraints
    for name, held in constraints.items():
        known = quote_text(name) if name in _RESERVED else encode_word(name, _NAME)
        yield (
            f"{known}:{_items(held)}"
            if isinstance(held, list)
            else f"{known}= {encode_value(held, '')}"
        )
    for sure, alike in groupby(working.assumptions, _sure_alone):
        if sure is None:
            yield from map(_assumption, alike)
        else:
            yield f"assumed {encode_value(sure, ':')}: {encode_items([one['a'] for one in alike], _ITEM)}"
    if working.open_questions:
        yield f"open:{_items(working.open_questions)}"
    for name, held in working.partial_artifacts.items():
        yield f"draft {encode_word(name, _NAME)}: {encode_value(held, '')}"
    yield from map(_decision, working.local_decisions)


def _lines(working: WorkingSet) -> Iterator[str]:
    yield from working_lines(working)
    if working.context_packet:
        yield f"packet: {encode_value(working.context_packet, '')}"


def _sure_alone(one: Any) -> float | None:
    """Return the confidence of an assumption of the usual shape; None for any other."""
    if not isinstance(one, dict) or one.keys() != {"a", "confidence"}:
        return None
    sure = one["confidence"]
    # Excludes zero, whose sign would be lost, and NaN, which equals nothing.
    plain = isinstance(one["a"], str) and type(sure) is float and 0 < sure < inf
    return sure if plain else None


def _assumption(one: Any) -> str:
    sure = one.get("confidence", 0) if isinstance(one, dict) else None
    if type(sure) not in (int, float) or not isinstance(one.get("a"), str):
        return f"assumed= {encode_value(one, '')}"
    main, rest = split_content(
        {k: held for k, held in one.items() if k != "confidence"}, "a", _ITEM
    )
    name = f"assumed {encode_value(sure, ':')}" if "confidence" in one else "assumed"
    return CELL_SEPARATOR.join([f"{name}: {main}", *rest])


def _decision(one: Any) -> str:
    texts = [one.get("d"), one.get("why", "")] if isinstance(one, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        return f"decided= {encode_value(one, '')}"
    main, rest = split_content({k: held for k, held in one.items() if k != "why"}, "d")
    why = [encode_cell("why", one["why"])] if "why" in one else []
    return CELL_SEPARATOR.join([f"decided: {main}", *why, *rest])


def _take(working: WorkingSet, reader: LineParser) -> str:
    """Add a line's notes to a working set; return the packet if the line holds it."""
    name, was_quoted = reader.read_text(_NAME)
    if was_quoted or name not in _RESERVED:
        listed = not reader.skip_sign("= ")
        working.constraints[name] = _listed(reader) if listed else reader.read_value("")
    elif name == "open":
        working.open_questions.extend(_listed(reader))
    elif name == "draft":
        reader.require_sign(" ")
        draft = reader.read_word(_NAME)
        reader.require_sign(": ")
        working.partial_artifacts[draft] = reader.read_value("")
    elif name == "packet":
        reader.require_sign(": ")
        return str(reader.read_value(""))
    elif reader.skip_sign("= "):
        (working.assumptions if name == "assumed" else working.local_decisions).append(
            reader.read_value("")
        )
    elif name == "assumed":
        sure = {"confidence": reader.read_value(":")} if reader.skip_sign(" ") else {}
        reader.require_sign(": ")
        texts = [reader.read_value(_ITEM)]
        while reader.skip_sign("; "):
            texts.append(reader.read_value(_ITEM))
        rest = reader.read_cells().get("")
        working.assumptions.extend(join_content(main, "a", rest) | sure for main in texts)
    else:
        working.local_decisions.append(_decided(reader))
    return ""


def _decided(reader: LineParser) -> dict[str, Any]:
    reader.require_sign(": ")
    main, said = reader.read_value("|"), reader.read_cells()
    why = {"why": said["why"]} if "why" in said else {}
    return join_content(main, "d", said.get("")) | why


def _items(values: Iterable[Any]) -> str:
    return f" {encode_items(values)}".rstrip(" ")


def _listed(reader: LineParser) -> list[Any]:
    reader.require_sign(":")
    reader.skip_sign(" ")
    return reader.read_items()


def _end(created: datetime, hours: float) -> datetime | None:
    try:
        return created + timedelta(hours=hours)
    except (OverflowError, ValueError):
        return None
