"""Shared references, a line each: ``home: Rome | v3 02-10T10:14 12 14``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from bot.memory.bus.compression.legends import Ids, Times, common, opened
from bot.memory.bus.compression.notation import CELL, KEY, Reader, cell, value, word
from bot.memory.bus.records import SharedReference
from bot.memory.gate.alignment import GOALS

WORKSPACE = "workspace"
"""Stands for the source of a value that everybody reads: whose words that are is not for everybody."""

_TITLE = "shared (key: value | version t source entry)"


@dataclass(frozen=True, slots=True)
class _Legend:
    times: Times
    ids: Ids
    by: str

    @classmethod
    def of(cls, refs: Sequence[SharedReference]) -> _Legend:
        return cls(
            Times.of([one.updated_at for one in refs]),
            Ids.of([one.source for one in refs]),
            common([one.updated_by for one in refs]) or "",
        )

    def header(self) -> str:
        return CELL.join([_TITLE, *self.times.cells(), *self.ids.cells(), cell("by", self.by)])

    def line(self, ref: SharedReference) -> str:
        """Return a reference; its own cells only where it differs from what is said once."""
        when = self.times.write(ref.updated_at)
        entry = f" {ref.entry}" if ref.entry else ""
        cells = [
            f"{word(ref.key, KEY)}: {value(ref.value, '|')}",
            f"v{ref.version} {when} {self.ids.write(ref.source)}{entry}",
        ]
        if ref.created_at != ref.updated_at:
            cells.append(f"since {self.times.write(ref.created_at)}")
        if ref.updated_by != self.by:
            cells.append(cell("by", ref.updated_by))
        return CELL.join([*cells, "stale"] if ref.stale else cells)

    def read(self, line: str) -> SharedReference:
        reader = Reader(line)
        key = reader.word(KEY)
        reader.expect(": ")
        content = reader.value("|")
        reader.next_cell()
        version = reader.word(" ")
        reader.expect(" ")
        updated = self.times.read(reader.word(" "))
        reader.expect(" ")
        source, *entry = reader.words()
        said = reader.cells()
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
    """Return references as text, a line each below a header; empty where there are none."""
    legend = _Legend.of(refs)
    return "\n".join([legend.header(), *map(legend.line, refs)]) if refs else ""


def decode_references(text: str) -> list[SharedReference]:
    """Return the references that ``encode_references`` wrote.

    Raises:
        ValueError: It did not write this.
    """
    if not text:
        return []
    said, ids, lines = opened(text, _TITLE)
    legend = _Legend(Times(said.get("year")), ids, said.get("by", ""))
    return [legend.read(line) for line in lines]


def references_text(
    refs: Iterable[SharedReference], most_bytes: int, timezone: tzinfo = UTC
) -> str:
    """Return what a model reads of references within a number of bytes of UTF-8.

    A line each, readable without a header: ``home: Rome (set 2026-02-10)``. Ids, versions and clock times
    are left out: ``memory.refer`` tells them of a value that is asked for.

    In the order given. Where not all fit, north stars and priorities come first, then the newest that do not
    rest on something superseded or erased; the last line says how many are left out.

    Args:
        refs: The references.
        most_bytes: Room there is.
        timezone: Whose days are said.
    """
    known = list(refs)
    lines = [_shown(one, timezone) for one in known]
    ranked = sorted(
        range(len(known)),
        key=lambda at: (known[at].key in GOALS, not known[at].stale, known[at].updated_at),
        reverse=True,
    )
    room = most_bytes + 1
    if sum(map(_size, lines)) > room:
        room -= _size(_more(len(known)))
    chosen: set[int] = set()
    for at in ranked:
        if _size(lines[at]) <= room:
            room -= _size(lines[at])
            chosen.add(at)
    if not chosen:
        return ""
    shown = [line for at, line in enumerate(lines) if at in chosen]
    left = len(known) - len(chosen)
    return "\n".join([*shown, _more(left)] if left else shown)


def _shown(ref: SharedReference, timezone: tzinfo) -> str:
    said = [f"set {ref.updated_at.astimezone(timezone).date().isoformat()}"]
    if ref.updated_by == "assistant":
        said[0] += " by the assistant"
    if ref.source == WORKSPACE:
        said.append("for everyone")
    if ref.stale:
        said.append("may be out of date")
    return f"{word(ref.key, KEY)}: {value(ref.value, '(')} ({', '.join(said)})"


def _size(line: str) -> int:
    return len(line.encode()) + 1


def _more(left: int) -> str:
    return f"({left} more)"
