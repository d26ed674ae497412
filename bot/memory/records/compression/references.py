"""Lines of shared reference: ``home: Rome | v3 02-10T10:14 12 14``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from bot.memory.records.compartment_records import (
    GOAL_KEYS,
    SharedReference,
)
from bot.memory.records.compression.list_header import (
    EntryIdNotation,
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
)

WORKSPACE_MARK = "workspace"
"""Stands for the source of a workspace value, which is hidden: it may name a private chat."""

_TITLE = "shared (key: value | version t source entry)"


@dataclass(frozen=True, slots=True)
class _Legend:
    times: TimeNotation
    ids: EntryIdNotation
    by: str

    @classmethod
    def of(cls, refs: Sequence[SharedReference]) -> _Legend:
        return cls(
            TimeNotation.of([reference.updated_at for reference in refs]),
            EntryIdNotation.of([reference.source for reference in refs]),
            most_common([reference.updated_by for reference in refs]) or "",
        )

    def header(self) -> str:
        return CELL_SEPARATOR.join(
            [_TITLE, *self.times.cells(), *self.ids.cells(), encode_cell("by", self.by)]
        )

    def line(self, ref: SharedReference) -> str:
        """Write a reference, with cells only for what differs from the header or default."""
        when = self.times.write(ref.updated_at)
        entry = f" {ref.entry}" if ref.entry else ""
        cells = [
            f"{encode_word(ref.key, KEY_SEPARATOR)}: {encode_value(ref.value, '|')}",
            f"v{ref.version} {when} {self.ids.write(ref.source)}{entry}",
        ]
        if ref.created_at != ref.updated_at:
            cells.append(f"since {self.times.write(ref.created_at)}")
        if ref.updated_by != self.by:
            cells.append(encode_cell("by", ref.updated_by))
        return CELL_SEPARATOR.join([*cells, "stale"] if ref.stale else cells)

    def read(self, line: str) -> SharedReference:
        reader = LineParser(line)
        key = reader.read_word(KEY_SEPARATOR)
        reader.require_sign(": ")
        content = reader.read_value("|")
        reader.next_cell()
        version = reader.read_word(" ")
        reader.require_sign(" ")
        updated = self.times.read(reader.read_word(" "))
        reader.require_sign(" ")
        source, *entry = reader.read_words()
        said = reader.read_cells()
        return SharedReference(
            key,
            content,
            int(version[1:]),
            self.ids.read(*source),
            self.times.read(said["since"]) if "since" in said else updated,
            updated,
            said.get("by", self.by),
            int(entry[0][0]) if entry else 0,
            "stale" in said,
        )


def encode_references(refs: Sequence[SharedReference]) -> str:
    """Encode references, one line each below a header; empty if there are none."""
    legend = _Legend.of(refs)
    return "\n".join([legend.header(), *map(legend.line, refs)]) if refs else ""


def decode_references(text: str) -> list[SharedReference]:
    """Decode what ``encode_references`` wrote.

    Raises:
        ValueError: The text is not in this notation.
    """
    if not text:
        return []
    said, ids, lines = parse_header(text, _TITLE)
    legend = _Legend(TimeNotation(said.get("year")), ids, said.get("by", ""))
    return [legend.read(line) for line in lines]


def render_references(
    refs: Iterable[SharedReference], most_bytes: int, timezone: tzinfo = UTC
) -> str:
    """Render references for the model within a limit in UTF-8 bytes.

    Each line is readable without a header: ``home: Rome (set 2026-02-10)``. Ids, versions and clock
    times are left out; ``memory.refer`` returns them for a single value.

    The order is kept. If not all fit, north stars and priorities take precedence, then the newest
    values that are not stale; the last line says how many are left out.

    Args:
        refs: The references.
        most_bytes: Size limit in UTF-8 bytes.
        timezone: Time zone of the dates.
    """
    references = list(refs)
    lines = [_shown(reference, timezone) for reference in references]
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


def _shown(ref: SharedReference, timezone: tzinfo) -> str:
    said = [f"set {ref.updated_at.astimezone(timezone).date().isoformat()}"]
    if ref.updated_by == "assistant":
        said[0] += " by the assistant"
    if ref.source == WORKSPACE_MARK:
        said.append("for everyone")
    if ref.stale:
        said.append("may be out of date")
    return (
        f"{encode_word(ref.key, KEY_SEPARATOR)}: {encode_value(ref.value, '(')} ({', '.join(said)})"
    )


def _size(line: str) -> int:
    return len(line.encode()) + 1


def _more(left: int) -> str:
    return f"({left} more)"
