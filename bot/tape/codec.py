"""Entries as lines of JSON, and what a file of such lines means, whatever bytes it holds.

Rule 1: one entry, one line: ``{"id", "kind", "payload", "meta"}``, and ``"more": n`` where n
    further lines follow in the same atomic append.
Rule 2: an append that was cut short is not there. Lines whose ``more`` promises a line that never
    came, and a last line without its newline, were never acknowledged. Repair closes such a last
    line with ``CANCEL``, so that it stands for no entry, whole or not.
Rule 3: an id that comes again voids the earlier line and all after it up to there: it belonged to
    an append that was cut short, and its ids were given anew. So does a line that stands where an
    append promised another one.
Rule 4: any other line that cannot be read costs itself alone.
Rule 5: what was written is read back exactly: big integers, empty lists, lone surrogates. What
    would not be is not written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bot.errors import InvalidEntry
from bot.tape.entries import KINDS, TapeEntry

# ASCII's own sign for "what came before is void"; JSON never holds it unescaped.
CANCEL = b"\x18"


@dataclass(frozen=True, slots=True)
class Line:
    """A readable line: its entry, and how many lines of its append follow it."""

    entry: TapeEntry
    more: int


def encode(entries: Sequence[TapeEntry]) -> bytes:
    """Return the lines of one atomic append.

    Raises:
        InvalidEntry: An entry would not read back as it is (a NaN, a tuple, a key that is no text,
            a kind that does not exist).
    """
    last = len(entries) - 1
    return b"".join(_encode_line(entry, last - place) for place, entry in enumerate(entries))


def _encode_line(entry: TapeEntry, more: int) -> bytes:
    record: dict[str, Any] = {
        "id": entry.id,
        "kind": entry.kind,
        "payload": entry.payload,
        "meta": entry.meta,
    }
    if more:
        record["more"] = more
    wanted = Line(entry, more)
    try:
        for raw in _spellings(record):
            if decode(raw) == wanted:
                return raw + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEntry(f"a {entry.kind} entry cannot be written as JSON: {error}") from error
    raise InvalidEntry(f"a {entry.kind} entry would not read back as it is: it is not plain JSON")


def _spellings(record: dict[str, Any]) -> Iterator[bytes]:
    """Yield the record as bytes, the most readable first."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        yield text.encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8; as an escape it is plain ASCII and reads back the same.
        yield json.dumps(record, separators=(",", ":")).encode()
        # Escapes of two halves that stand side by side would be read as one character.
        yield text.encode("utf-8", "surrogatepass")


def decode(raw: bytes) -> Line | None:
    """Return what a line says, None where it cannot be read. Never raises."""
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    number, kind = record.get("id"), record.get("kind")
    payload, meta = record.get("payload"), record.get("meta")
    more = record.get("more", 0)
    if (
        type(number) is not int
        or type(more) is not int
        or number < 1
        or more < 0
        or not isinstance(kind, str)
        or kind not in KINDS
        or not isinstance(payload, dict)
        or not isinstance(meta, dict)
    ):
        return None
    return Line(TapeEntry(number, kind, payload, meta), more)  # type: ignore[arg-type]  # in KINDS


def settle(lines: Iterable[Line | None]) -> list[TapeEntry]:
    """Return the entries that count, in order, from lines in file order (None: damaged)."""
    kept: list[Line] = []
    damaged = 0
    for line in lines:
        if line is None:
            damaged += 1
            continue
        damaged = 0
        while kept and (kept[-1].entry.id >= line.entry.id or _cut_short(kept[-1], line)):
            kept.pop()
        kept.append(line)
    return [line.entry for line in kept[: len(kept) - unfinished(kept, damaged)]]


def _cut_short(earlier: Line, later: Line) -> bool:
    """Say whether a line has an id that an earlier append promised, and is not of that append."""
    end = earlier.entry.id + earlier.more
    return later.entry.id <= end != later.entry.id + later.more


def unfinished(lines: Sequence[Line], damaged: int = 0) -> int:
    """Return how many of the last lines belong to an append whose end is missing.

    Args:
        lines: Readable lines in file order.
        damaged: Whole lines after them that cannot be read; they stood for entries.
    """
    count = 0
    while count < len(lines) and lines[-1 - count].more > count + damaged:
        count += 1
    return count
