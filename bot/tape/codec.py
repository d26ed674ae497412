"""Encode entries as lines of JSON, and decide which lines of any file count. Pure.

Rule 1: one entry is one line: ``{"id", "kind", "payload", "meta"}``, and ``"more": n`` if n further
    lines follow in the same atomic append. A line of a tape's file ends with ``"chain"``, its link
    in the chain of digests (``bot.tape.chain``); files from before the chain have none. What is appended to a
    file is written shorter where it can be (``bot.tape.short_lines``).
Rule 2: an unfinished append does not count. Lines whose ``more`` promises a line that never came,
    and a last line without its newline, were never acknowledged. Repair closes such a last line
    with ``CANCEL``, so that it stands for no entry, whole or not.
Rule 3: an id that comes again voids the earlier line and all lines between: it belonged to an
    unfinished append, and its ids were assigned anew. A line that stands where an append promised
    another one does the same.
Rule 4: any other line that is unreadable or does not match its digest loses only itself.
Rule 5: entries read back exactly as they were written: big integers, empty lists, lone surrogates.
    An entry that would not is rejected, and so is a new one that is nested deeper than every
    version of Python reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bot.core.errors import InvalidEntry
from bot.core.nesting import nesting_levels
from bot.tape.chain import (
    ChainLink,
    link_from_base64,
    make_link,
    tombstone_link,
)
from bot.tape.entries import ENTRY_KINDS, TapeEntry
from bot.tape.short_lines import expand_line, shorten

# CANCEL is ASCII's sign for "disregard what came before"; JSON never contains it unescaped.
CANCEL = b"\x18"


_KEYS = frozenset({"id", "kind", "payload", "meta", "more"})
_CHAIN = b',"chain":"'
_IDS = re.compile(rb'\{"id":([1-9]\d{0,18}),')
_LAST_MORE = re.compile(rb',"more":([1-9]\d{0,18})\Z')
_LONGEST_MORE = 32
_LENGTHS = (48, 64)
"""Characters of a link, and of a tombstone's link."""

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

_SEAM = re.compile(rb'"\}.\{"id":[1-9]', re.DOTALL)
_MOST_SEAMS = 16
"""How many places of a line are tried as a damaged newline."""

BEGINNING = b'{"id":'
"""How a line begins; one that has this again may be two, joined by a damaged newline."""

MAX_ENTRY_BYTES = 16_000_000
"""Bytes of the longest line that a store writes. Longer lines already on a tape are still read."""

MAX_DEPTH = 200
"""Levels of lists and objects in an entry that is appended. Python 3.11 reads fewer than 1,000, less what its stack
has, 3.14 tens of thousands; what one writes another must read."""


@dataclass(frozen=True, slots=True)
class TapeLine:
    """A readable line of a tape.

    Attributes:
        entry: The line's entry.
        more: How many lines of the same append follow.
        link: The entry's link in the chain of digests; None in files from before the chain.
    """

    entry: TapeEntry
    more: int
    link: ChainLink | None = None


def encode_entries(entries: Sequence[TapeEntry]) -> bytes:
    """Return the lines of one atomic append, without links.

    Raises:
        InvalidEntry: An entry would not read back exactly (a NaN, a tuple, a key that is not a
            string, an unknown kind).
    """
    last = len(entries) - 1
    return b"".join(_encode_line(entry, last - place) for place, entry in enumerate(entries))


def check_depth(entries: Sequence[TapeEntry], lines: Iterable[bytes]) -> None:
    """Check that new entries are not nested too deeply; older ones may be, and are still read and copied.

    Args:
        entries: The entries.
        lines: What they are encoded to.

    Raises:
        InvalidEntry: One has more levels than ``MAX_DEPTH``.
    """
    for entry, raw in zip(entries, lines, strict=False):
        if _depth(raw, {"payload": entry.payload, "meta": entry.meta}) > MAX_DEPTH:
            raise InvalidEntry(
                f"a {entry.kind} entry is nested too deeply: a tape takes at most {MAX_DEPTH} levels"
            )


def encode_chained(entries: Sequence[TapeEntry], previous: bytes) -> tuple[bytes, bytes]:
    """Return the lines of one atomic append as a file has them, and the value of the last link.

    Args:
        entries: Entries with their ids.
        previous: The value of the link before the first entry.

    Raises:
        InvalidEntry: An entry would not read back exactly.
    """
    lines = []
    for place, entry in enumerate(entries):
        content = digest_content(entry)
        link = make_link(previous, entry.id, len(entries) - 1 - place, content)
        lines.append(_linked(link, shorten(entry, content)))
        previous = link.value
    return b"".join(lines), previous


def encode_line(line: TapeLine) -> bytes:
    """Encode a line of another tape with its link; without a link as an append of its own.

    Raises:
        InvalidEntry: The link belongs to another entry, or the entry would not read back exactly.
    """
    if line.link is None:
        return _encode_line(line.entry, 0)
    content = digest_content(line.entry)
    if line.link.id != line.entry.id or not line.link.covers(content):
        raise InvalidEntry(f"entry {line.entry.id} does not match its digest")
    return _linked(line.link, content)


def encode_tombstone(entry: TapeEntry, replaced: TapeLine) -> bytes:
    """Return the line of a tombstone that replaces another line.

    Raises:
        InvalidEntry: The entry would not read back exactly.
    """
    if replaced.link is not None:
        content = digest_content(entry)
        return _linked(tombstone_link(replaced.link, content), content)
    return _encode_line(entry, replaced.more)


def digest_content(entry: TapeEntry) -> bytes:
    """Return the part of an entry's line that its digest covers, from its kind to its meta.

    Raises:
        InvalidEntry: The entry would not read back exactly.
    """
    return _encode_line(entry, 0)[len(_opening(entry.id)) : -2]


def _opening(number: int) -> bytes:
    return b'{"id":%d,' % number


def _more(more: int) -> bytes:
    return b',"more":%d' % more if more else b""


def _linked(link: ChainLink, content: bytes) -> bytes:
    text = link.to_base64()
    return b'%b%b%b%b%b"}\n' % (_opening(link.id), content, _more(link.more), _CHAIN, text)


def _encode_line(entry: TapeEntry, more: int) -> bytes:
    record: dict[str, Any] = {
        "id": entry.id,
        "kind": entry.kind,
        "payload": entry.payload,
        "meta": entry.meta,
    }
    if more:
        record["more"] = more
    tape_line = TapeLine(entry, more)
    try:
        for raw in _spellings(record):
            if len(raw) > MAX_ENTRY_BYTES:
                break
            if decode_line(raw) == tape_line:
                return raw + b"\n"
        else:
            raise InvalidEntry(
                f"a {entry.kind} entry would not read back as it is: it is not plain JSON"
            )
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEntry(f"a {entry.kind} entry cannot be written as JSON: {error}") from error
    raise InvalidEntry(
        f"a {entry.kind} entry of {len(raw):,} bytes was not written: a tape takes at most {MAX_ENTRY_BYTES:,}"
    )


def _spellings(record: dict[str, Any]) -> Iterator[bytes]:
    """Yield encodings of the record, the most readable first."""
    text = _to_json(record)
    try:
        yield text.encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8; its escape is plain ASCII and reads back the same.
        yield json.dumps(record, separators=(",", ":")).encode()
        # Escapes of two adjacent surrogate halves would be read as one character.
        yield text.encode("utf-8", "surrogatepass")


def _depth(raw: bytes, value: Any) -> int:
    """Return how deep what a value holds is nested; at most as many levels as its encoding has brackets."""
    brackets = raw.count(b"{") + raw.count(b"[")
    if brackets <= MAX_DEPTH:
        return brackets
    return nesting_levels(value) - 1


def decode_line(raw: bytes) -> TapeLine | None:
    """Decode a line; return None if it is unreadable or does not match its digest. Never raises."""
    raw = raw.removesuffix(b"\n")
    body, chain = _cut_chain(raw)
    if chain is not None:
        full = expand_line(body)
        if full is None:
            return None
        body = full
    try:
        text = (raw if chain is None else body + b"}").decode("utf-8", "surrogatepass")
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not record.keys() <= _KEYS:
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
        or kind not in ENTRY_KINDS
        or not isinstance(payload, dict)
        or not isinstance(meta, dict)
    ):
        return None
    entry = TapeEntry(number, kind, payload, meta)  # type: ignore[arg-type]  # in KINDS
    if chain is None:
        return TapeLine(entry, more)
    link = link_from_base64(chain, number, more)
    opening, closing = _opening(number), _more(more)
    if link is None or not (body.startswith(opening) and body.endswith(closing)):
        return None
    content = body[len(opening) : len(body) - len(closing)]
    return TapeLine(entry, more, link) if link.covers(content) else None


def decode_ids(raw: bytes) -> TapeLine | None:
    """Return a line like ``decode_line``, but perhaps with an empty entry, in less time.

    What matches its digest is as it was written, so it need not be parsed.
    """
    body, chain = _cut_chain(raw)
    full = None if chain is None else expand_line(body)
    ids = None if full is None else _IDS.match(full)
    if chain is None or full is None or ids is None:
        return decode_line(raw)
    marked = _LAST_MORE.search(full, len(full) - _LONGEST_MORE)
    number, more = int(ids[1]), int(marked[1]) if marked else 0
    link = link_from_base64(chain, number, more)
    if link is None or not link.covers(full[ids.end() : marked.start() if marked else None]):
        return None
    return TapeLine(TapeEntry(number, "event", {}), more, link)


def chain_value(raw: bytes) -> bytes | None:
    """Return the value of the link that ends a line, damaged or not; None without a link."""
    _, chain = _cut_chain(raw)
    link = None if chain is None else link_from_base64(chain, 0, 0)
    return None if link is None else link.value


def last_link(data: bytes) -> tuple[int, bytes | None]:
    """Return the id of the last of some complete lines and the value of its link."""
    start = data.rfind(b"\n", 0, -1) + 1
    comma = data.index(b",", start)
    return int(data[start + len(b'{"id":') : comma]), chain_value(data[start:-1])


def split_joined(raw: bytes) -> list[bytes]:
    """Split a line at a damaged newline into the two original lines; return other lines unchanged.

    The lines' digests find the place, so text inside a line cannot be taken for its end.
    """
    # Few lines have a second beginning, and finding that out is faster without the expression.
    if raw.find(BEGINNING, 1) < 0 or raw.endswith(CANCEL):
        return [raw]
    for seam in islice(_SEAM.finditer(raw), _MOST_SEAMS):
        head, tail = raw[: seam.start() + 2], raw[seam.start() + 3 :]
        if _cut_chain(head)[1] is not None and (decode_line(head) or decode_line(tail)):
            return [head, tail]
    return [raw]


def _cut_chain(raw: bytes) -> tuple[bytes, bytes | None]:
    """Split off the chain field; return the rest and the link's text, None without a link."""
    if raw.endswith(b'"}'):
        for length in _LENGTHS:
            at = len(raw) - 2 - length
            if raw[max(0, at - len(_CHAIN)) : at] == _CHAIN:
                return raw[: at - len(_CHAIN)], raw[at:-2]
    return raw, None


def committed_lines(lines: Iterable[TapeLine | None]) -> list[TapeLine]:
    """Return the lines that count, in order, from lines in file order (None for a damaged one)."""
    tape_lines: list[TapeLine] = []
    damaged = 0
    for line in lines:
        if line is None:
            damaged += 1
            continue
        damaged = 0
        while tape_lines and (
            tape_lines[-1].entry.id >= line.entry.id or _cut_short(tape_lines[-1], line)
        ):
            tape_lines.pop()
        tape_lines.append(line)
    return tape_lines[: len(tape_lines) - count_unfinished(tape_lines, damaged)]


def _cut_short(earlier: TapeLine, later: TapeLine) -> bool:
    """Return whether a line has an id that an earlier append promised, but is not of it."""
    end = earlier.entry.id + earlier.more
    return later.entry.id <= end != later.entry.id + later.more


def count_unfinished(lines: Sequence[TapeLine], damaged: int = 0) -> int:
    """Return how many of the last lines belong to an unfinished append.

    Args:
        lines: Readable lines in file order.
        damaged: How many complete but unreadable lines, each of one entry, follow them.
    """
    count = 0
    while count < len(lines) and lines[-1 - count].more > count + damaged:
        count += 1
    return count
