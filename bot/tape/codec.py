"""Encode entries as lines of JSON, and decide which lines of a file count. Pure.

Rule 1: one entry is one line: ``{"id", "kind", "payload", "meta"}``. In a file a line also has ``"more": n`` if n
    further lines of the same append follow it, and ends with ``"crc"``, the CRC-32 of the bytes before it.
Rule 2: an append whose end is missing does not exist: it was never acknowledged. This can be so only at the end of
    a file; opening the file cuts it off.
Rule 3: a line that does not match its CRC loses only itself; its id stays used, so that a gap in the ids shows it.
Rule 4: entries read back exactly as they were written: big integers, empty lists, lone surrogates. An entry that
    would not is rejected, and so is one that is nested deeper than every version of Python reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

from pydantic_core import from_json, to_json

from bot.core.errors import InvalidEntry
from bot.core.nesting import nesting_levels
from bot.tape.entries import ENTRY_KINDS, TapeEntry

MAX_ENTRY_BYTES = 16_000_000
"""Bytes of the longest line that a store writes."""

MAX_DEPTH = 200
"""Levels of lists and objects in an entry. Python 3.11 reads fewer than 1,000, less what its stack has, 3.14 tens of
thousands; what one writes another must read."""

MAX_JSON_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""

BEGINNING = b'{"id":'
"""How a line begins."""

CRC_FIELD = b',"crc":"'
_CRC = CRC_FIELD + b'%08x"}'
_FIELDS = 4
_CRC_LENGTH = len(_CRC % 0)
_SEAM = re.compile(rb',"crc":"[0-9a-f]{8}"\}.(?=\{"id":)', re.DOTALL)
_MOST_SEAMS = 16
"""How many places of a line are tried as a damaged newline."""

_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
# What this refuses (lone surrogates, depth), Python's own may read; it takes a third longer, and writing four times as
# long.
_read = partial(from_json, allow_inf_nan=False, cache_strings="keys")


class TapeLine(NamedTuple):
    """A readable line of a tape's file.

    Attributes:
        entry: The line's entry.
        more: How many lines of the same append follow.
    """

    entry: TapeEntry
    more: int


def encode_entries(entries: Sequence[TapeEntry]) -> bytes:
    """Return the entries' lines as they travel: without CRC, and without saying what is one append.

    Raises:
        InvalidEntry: An entry would not read back exactly (a NaN, a tuple, a key that is not a string, an unknown
            kind), or is too large, or nested too deeply.
    """
    return b"".join(b"%b}\n" % _encode_open(entry, 0) for entry in entries)


def encode_append(entries: Sequence[TapeEntry]) -> bytes:
    """Return the lines of one atomic append as a file has them.

    Raises:
        InvalidEntry: As for ``encode_entries``.
    """
    last = len(entries) - 1
    return b"".join(encode_line(entry, last - place) for place, entry in enumerate(entries))


def encode_line(entry: TapeEntry, more: int = 0) -> bytes:
    """Return an entry's line as a file has it; ``more`` lines of its append follow.

    Raises:
        InvalidEntry: As for ``encode_entries``.
    """
    text = _encode_open(entry, more)
    return b"%b%b\n" % (text, _CRC % crc32(text))


def decode_entry(raw: bytes) -> TapeEntry | None:
    """Decode a line without CRC; return None if it is none. Never raises."""
    line = _decode(raw)
    return None if line is None or line.more else line.entry


def decode_line(raw: bytes) -> TapeLine | None:
    """Decode a line of a file; return None if it does not match its CRC. Never raises."""
    text = raw.removesuffix(b"\n")[:-_CRC_LENGTH]
    return _decode(text + b"}") if raw.startswith(_CRC % crc32(text), len(text)) else None


def decode_lines(raw: bytes) -> list[TapeLine]:
    """Decode what is between two newlines: one line, or none, or two whose newline was damaged."""
    line = decode_line(raw)
    if line is not None:
        return [line]
    ends = [seam.end() for seam in islice(_SEAM.finditer(raw), _MOST_SEAMS)]
    for end in (*ends, len(raw)):
        found = [decode_line(raw[: end - 1]), decode_line(raw[end:])]
        if any(found):
            return [line for line in found if line is not None]
    return []


def quick_id(raw: bytes) -> int:
    """Return the id at the start of a line, which may be damaged; 0 if there is none."""
    digits, comma, _rest = raw[len(BEGINNING) : 30].partition(b",")
    return int(digits) if comma and digits.isdigit() and raw.startswith(BEGINNING) else 0


def _encode_open(entry: TapeEntry, more: int) -> bytes:
    """Return an entry's line without its closing brace."""
    record: dict[str, Any] = {
        "id": entry.id,
        "kind": entry.kind,
        "payload": entry.payload,
        "meta": entry.meta,
    }
    if more:
        record["more"] = more
    try:
        raw = to_json(record)
        read = _read(raw)
        plain = raw if read == record and _is_line(read) else None
    except (ValueError, TypeError):
        plain = None
    if plain is not None:
        _check_size(record, plain)
        return plain[:-1]
    try:
        for text, raw in _spellings(record):
            _check_size(record, raw)
            read = json.loads(text)
            if read == record and _is_line(read):
                return raw[:-1]
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEntry(f"a {entry.kind} entry cannot be written as JSON: {error}") from error
    raise InvalidEntry(f"a {entry.kind} entry would not read back as it is: it is not plain JSON")


def _check_size(record: dict[str, Any], raw: bytes) -> None:
    """Check that a line is neither too long nor nested too deeply.

    Raises:
        InvalidEntry: It is.
    """
    if len(raw) > MAX_ENTRY_BYTES:
        raise InvalidEntry(
            f"a {record['kind']} entry of {len(raw):,} bytes was not written: a tape takes at most "
            f"{MAX_ENTRY_BYTES:,}"
        )
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and nesting_levels(record) > MAX_DEPTH + 1:
        raise InvalidEntry(
            f"a {record['kind']} entry is nested too deeply: a tape takes at most {MAX_DEPTH} levels"
        )


def _spellings(record: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield encodings of a record, as text and as bytes, the most readable first."""
    text = _write(record)
    try:
        yield text, text.encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8; its escape is plain ASCII and reads back the same.
        escaped = json.dumps(record, separators=(",", ":"))
        yield escaped, escaped.encode()
        # Escapes of two adjacent surrogate halves would be read as one character.
        yield text, text.encode("utf-8", "surrogatepass")


def _decode(raw: bytes) -> TapeLine | None:
    try:
        try:
            record = _read(raw)
        except ValueError:
            record = json.loads(raw.decode("utf-8", "surrogatepass"))
        if not _is_line(record):
            return None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    entry = TapeEntry(record["id"], record["kind"], record["payload"], record["meta"])
    return TapeLine(entry, record.get("more", 0))


def _is_line(record: dict[str, Any]) -> bool:
    """Return whether a value has the fields of a line, with values of their types.

    Raises:
        KeyError, TypeError: It lacks one, or is no object.
    """
    number, more = record["id"], record["more"] if len(record) > _FIELDS else 0
    return (
        len(record) <= _FIELDS + 1
        and type(number) is type(more) is int
        and number > 0
        and more >= 0
        and record["kind"] in ENTRY_KINDS
        and type(record["payload"]) is type(record["meta"]) is dict
    )
