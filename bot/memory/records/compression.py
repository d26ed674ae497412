"""Write the compartments' records as short lines, and read them back exactly. Pure.

A list begins with a header: its name, the columns of a line, and what most records have in common.
A line holds what a record is known by, its content, and cells for what is not usual::

    patterns (id conf t: c) | type fact
    17 .9 2026-02-10T10:14: The user lives in Rome. | ev telegram:7#12 15
    18 .8 11:02: The user sails. | ev 40

Rule 1: a cell is left out if its value is the usual one, or that of the header.
Rule 2: a time omits what it shares with the one that the line begins with, or the line before;
    ``=`` is the same time.
Rule 3: an entry's id omits its tape if the id before it has the same one.
Rule 4: whatever a value contains, it is read back as it was, and stays in its cell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar, get_args

from bot.core.patterns import LazyPattern
from bot.memory.records.compartment_records import (
    EpisodeEntry,
    EpisodeType,
    Problem,
    SharedReference,
    SynthesizedPattern,
    WorkingSet,
)
from bot.memory.records.notation import LineParser, encode_value, encode_word, quote_text

T = TypeVar("T")
_Row = dict[str, Any]
_Kind = Literal["value", "word", "words", "time", "id", "ids"]

_ID = LazyPattern(r"(.*)#(0|[1-9][0-9]*)", re.DOTALL)
_SHORT_ID = LazyPattern(r"[0-9]+")
_ALWAYS = object()
"""Default of a cell that is never left out."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A field of a record; its default may be a function of the fields before it."""

    name: str
    label: str = ""
    kind: _Kind = "value"
    default: Any = _ALWAYS
    common: bool = False


@dataclass(slots=True)
class _Before:
    """The time and the tape that were written or read last."""

    moment: datetime | None = None
    tape: str | None = None

    def write(self, kind: _Kind, value: Any, stops: str) -> str:
        if kind in ("words", "ids"):
            one: _Kind = "word" if kind == "words" else "id"
            return " ".join(self.write(one, item, " |") for item in value)
        if kind == "time":
            return self._time(value)
        if kind == "id":
            return self._id(value)
        if kind == "word":
            # The last word of a record's name is followed by a colon.
            return quote_text(value) if value.endswith(":") else encode_word(value, " |")
        return encode_value(value, stops)

    def read_cell(self, kind: _Kind, reader: LineParser) -> Any:
        if kind == "value":
            return reader.read_value("|")
        if kind not in ("words", "ids"):
            return self.read(kind, *reader.read_text(" |"))
        found = []
        while not reader.at_end and not reader.line.startswith("|", reader.at):
            found.append(self.read("word" if kind == "words" else "id", *reader.read_text(" |")))
            reader.skip_sign(" ")
        return found

    def read(self, kind: _Kind, text: str, quoted: bool) -> Any:
        if kind == "value":
            return LineParser(text).read_value("")
        if kind == "time":
            return self._read_time(text)
        if kind == "id":
            return self._read_id(text, quoted)
        return text

    def _time(self, moment: datetime) -> str:
        last, self.moment = self.moment, moment.astimezone(UTC)
        exact = bool(moment.second or moment.microsecond)
        text = self.moment.replace(tzinfo=None).isoformat(timespec="auto" if exact else "minutes")
        text = text.rstrip("0") if moment.microsecond else text
        if last is None or last.year != self.moment.year:
            return text
        if last == self.moment:
            return "="
        return text[11:] if last.date() == self.moment.date() else text[5:]

    def _read_time(self, text: str) -> datetime:
        known = "" if self.moment is None else self.moment.date().isoformat()
        if text == "=" and self.moment is not None:
            return self.moment
        whole = f"{known}T{text}" if "T" not in text else f"{known[:5]}{text}"
        whole = text if text.count("-") == 2 else whole
        self.moment = datetime.fromisoformat(whole).replace(tzinfo=UTC)
        return self.moment

    def _id(self, entry: str) -> str:
        if (hit := _ID.fullmatch(entry)) is None:
            return (
                quote_text(entry) if _SHORT_ID.fullmatch(entry) else self.write("word", entry, "")
            )
        last, self.tape = self.tape, hit[1]
        return hit[2] if last == hit[1] else self.write("word", entry, "")

    def _read_id(self, text: str, quoted: bool) -> str:
        if not quoted and _SHORT_ID.fullmatch(text):
            if self.tape is None:
                raise ValueError(f"not in this notation, no tape is named for {text}")
            return f"{self.tape}#{text}"
        if hit := _ID.fullmatch(text):
            self.tape = hit[1]
        return text


@dataclass(frozen=True, slots=True)
class _Table(Generic[T]):
    """One kind of records.

    Attributes:
        title: Begins the header.
        keys: What a line begins with.
        main: Name of the content, any JSON.
        cells: The rest, in order.
        row: Returns a record's fields by name.
        record: Returns the record of such fields.
    """

    title: str
    keys: tuple[_Column, ...]
    main: str
    cells: tuple[_Column, ...]
    row: Callable[[T], _Row]
    record: Callable[[_Row], T]

    def encode(self, records: Sequence[T]) -> str:
        """Return the records as text; empty if there are none."""
        if not records:
            return ""
        rows, before, header = [*map(self.row, records)], _Before(), [self.title]
        common: _Row = {}
        for column in filter(lambda column: column.common, self.cells):
            usual = Counter(row[column.name] for row in rows).most_common(1)[0][0]
            if usual != column.default:
                common[column.name] = usual
                header.append(f"{column.label} {encode_value(usual, '|')}")
        return "\n".join([" | ".join(header), *(self._line(row, common, before) for row in rows)])

    def decode(self, text: str) -> list[T]:
        """Return the records in a text of ``encode``."""
        if not text:
            return []
        header, *lines = text.split("\n")
        reader, before = LineParser(header), _Before()
        reader.require_sign(self.title)
        common: _Row = {}
        self._read_cells(reader, common, before)
        return [self.record(self._read(LineParser(line), common, before)) for line in lines]

    def _line(self, row: _Row, common: _Row, before: _Before) -> str:
        keys = " ".join(before.write(one.kind, row[one.name], " |") for one in self.keys)
        cells = [f"{keys}: {encode_value(row[self.main], '|')}"]
        for one in self.cells:
            if row[one.name] != common.get(one.name, _default(one, row)):
                beside = replace(before)
                cells.append(f"{one.label} {beside.write(one.kind, row[one.name], '|')}")
                before.tape = beside.tape
        return " | ".join(cells)

    def _read(self, reader: LineParser, common: _Row, before: _Before) -> _Row:
        row: _Row = {}
        for one in self.keys:
            text, quoted = reader.read_text(" ")
            if (last := one is self.keys[-1]) and not quoted:
                text, reader.at = text[:-1], reader.at - 1
            reader.require_sign(": " if last else " ")
            row[one.name] = before.read(one.kind, text, quoted)
        row[self.main] = reader.read_value("|")
        self._read_cells(reader, row, before)
        for one in self.cells:
            if one.name not in row:
                row[one.name] = common.get(one.name, _default(one, row))
        return row

    def _read_cells(self, reader: LineParser, row: _Row, before: _Before) -> None:
        columns = {one.label: one for one in self.cells}
        while not reader.at_end:
            reader.skip_sign(" ")
            reader.require_sign("| ")
            label, _ = reader.read_text(" ")
            reader.require_sign(" ")
            if (one := columns.get(label)) is None:
                raise ValueError(f"not in this notation, {label!r} is no cell: {reader.line}")
            beside = replace(before)
            row[one.name] = beside.read_cell(one.kind, reader)
            before.tape = beside.tape


def _default(column: _Column, row: _Row) -> Any:
    return column.default(row) if callable(column.default) else column.default


def _row(record: Any) -> _Row:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def _split(row: _Row, key: str) -> _Row:
    """Move the text of a record's content to ``c``; the rest of it, if there is a text, to ``rest``."""
    content = row.pop("content")
    if not isinstance(content.get(key), str):
        return row | {"c": content, "rest": {}}
    return row | {"c": content[key], "rest": {k: v for k, v in content.items() if k != key}}


def _joined(row: _Row, key: str) -> _Row:
    """Return the content that ``_split`` split."""
    main, rest = row.pop("c"), row.pop("rest")
    return main if isinstance(main, dict) else {key: main, **rest}


def _none(_: _Row) -> list[Any]:
    return []


def _nothing(_: _Row) -> dict[str, Any]:
    return {}


_PATTERNS = _Table(
    "patterns (id conf t: c)",
    (
        _Column("id", kind="word"),
        _Column("confidence"),
        _Column("last_validated", kind="time"),
    ),
    "c",
    (
        _Column("evidence_ids", "ev", "ids", _none),
        _Column("pattern_type", "type", default="fact", common=True),
        _Column("created_at", "since", "time", itemgetter("last_validated")),
        _Column("decay_rate", "decay", default=0.01, common=True),
        _Column("protected", "protected", default=False),
        _Column("status", "is", default="active"),
        _Column("reason", "why", default=""),
        _Column("rest", "more", default=_nothing),
    ),
    lambda one: _split(_row(one), "text"),
    lambda row: SynthesizedPattern(content=_joined(row, "text"), **row),
)
_REFERENCES = _Table(
    "shared (key version t source: value)",
    (
        _Column("key", kind="word"),
        _Column("version"),
        _Column("updated_at", kind="time"),
        _Column("source", kind="id"),
    ),
    "value",
    (
        _Column("entry", "entry", default=0),
        _Column("created_at", "since", "time", itemgetter("updated_at")),
        _Column("updated_by", "by", default="person", common=True),
        _Column("stale", "stale", default=False),
    ),
    _row,
    lambda row: SharedReference(**row),
)
_NAMED = {"turn": ("role", "content"), "tool": ("tool", "result")}
"""Keys of who said it and of the text in an episode's content, by type."""
_TOOL = "tool:"
_TYPES: tuple[EpisodeType, ...] = get_args(EpisodeType)


def _episode_row(episode: EpisodeEntry) -> _Row:
    """Return the fields of an episode, with who speaks, which tool, or else its type as ``who``."""
    row, kind, content = _row(episode), episode.entry_type, episode.content
    by, key = _NAMED.get(kind, ("", ""))
    who = content.get(by)
    taken = kind == "turn" and (who in _TYPES or str(who).startswith(_TOOL))
    if taken or not isinstance(who, str) or not isinstance(content.get(key), str):
        return _split(row | {"who": kind}, _text_key(kind))
    row["content"] = {name: value for name, value in content.items() if name != by}
    return _split(row | {"who": who if kind == "turn" else _TOOL + who}, key)


def _episode(row: _Row) -> EpisodeEntry:
    who = row.pop("who")
    kind: EpisodeType = who if who in _TYPES else "tool" if who.startswith(_TOOL) else "turn"
    by, key = _NAMED.get(kind, ("", "")) if who != kind else ("", _text_key(kind))
    named = {by: who.removeprefix(_TOOL if kind == "tool" else "")} if by else {}
    return EpisodeEntry(entry_type=kind, content=named | _joined(row, key), **row)


def _text_key(kind: str) -> str:
    return "summary" if kind == "summary" else "text"


_EPISODES = _Table(
    "episodes (id t who: c)",
    (_Column("id", kind="id"), _Column("timestamp", kind="time"), _Column("who", kind="word")),
    "c",
    (
        _Column("tags", "tags", "words", _none),
        _Column("problem_id", "problem", default=None, common=True),
        _Column("hrm_layer", "layer", default="", common=True),
        _Column("supersedes", "supersedes", "id", None),
        _Column("rest", "more", default=_nothing),
    ),
    _episode_row,
    _episode,
)


def _end(row: _Row) -> Any:
    try:
        return row["created_at"] + timedelta(hours=row["ttl_hours"])
    except (OverflowError, ValueError):
        return row["created_at"]


_WORKING_SETS = _Table(
    "working sets (problem t: constraints)",
    (_Column("problem_id", kind="word"), _Column("created_at", kind="time")),
    "constraints",
    (
        _Column("ttl_hours", "ttl", default=2.0),
        _Column("expires_at", "ends", "time", _end),
        _Column("lane_id", "lane", default=None, common=True),
        _Column("assumptions", "assumed", default=_none),
        _Column("open_questions", "open", default=_none),
        _Column("partial_artifacts", "drafts", default=_nothing),
        _Column("local_decisions", "decided", default=_none),
        _Column("context_packet", "packet", default=""),
    ),
    _row,
    lambda row: WorkingSet(**row),
)
_PROBLEMS = _Table(
    "problems (id state t: name)",
    (
        _Column("problem_id", kind="word"),
        _Column("state", kind="word"),
        _Column("last_active", kind="time"),
    ),
    "name",
    (
        _Column("created_at", "since", "time", itemgetter("last_active")),
        _Column("priority", "pri", default=5),
        _Column("lane_id", "lane", default=None, common=True),
        _Column("summary", "sum", default=""),
        _Column("resumable_entry_ids", "view", default=()),
        _Column("resumable_size", "weight", default=(0, 0)),
        _Column("private", "private", default=False),
        _Column("working_set", "working", default=None),
    ),
    lambda one: _row(one) | {"working_set": one.working_set is not None or None},
    lambda row: Problem(
        **row | {name: tuple(row[name]) for name in ("resumable_entry_ids", "resumable_size")}
    ),
)

encode_patterns, decode_patterns = _PATTERNS.encode, _PATTERNS.decode
encode_references, decode_references = _REFERENCES.encode, _REFERENCES.decode
encode_episodes, decode_episodes = _EPISODES.encode, _EPISODES.decode
encode_working_sets, decode_working_sets = _WORKING_SETS.encode, _WORKING_SETS.decode


def encode_problems(problems: Sequence[Problem]) -> str:
    """Return the problems as text, and below them the working sets that they have."""
    working = [one.working_set for one in problems if one.working_set is not None]
    return "\n".join(filter(None, (_PROBLEMS.encode(problems), encode_working_sets(working))))


def decode_problems(text: str) -> list[Problem]:
    """Return the problems in a text of ``encode_problems``."""
    told, sign, below = text.partition(f"\n{_WORKING_SETS.title}")
    working = iter(decode_working_sets(sign[1:] + below))
    return [
        replace(one, working_set=next(working)) if one.working_set else one
        for one in _PROBLEMS.decode(told)
    ]
