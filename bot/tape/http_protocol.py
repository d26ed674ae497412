"""Encode and decode the tape server's HTTP requests, responses, event streams and errors. Pure.

Rule 1: entries travel as the codec's lines, so that they read back exactly; other JSON is encoded
    as carefully (``to_json``).
Rule 2: the tape's name is a percent-encoded query parameter: that can hold any text, lone
    surrogates included (as the bytes of their code points), and no proxy rewrites it.
Rule 3: an append's idempotency key is stored in its first entry's meta, so that a restarted server
    still knows what it has appended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from bot.core.errors import (
    InvalidEntry,
    InvalidSearch,
    TapeError,
    TapeExists,
    TapeNotFound,
    TapeRefused,
    TapeUnavailable,
    TapeWriteError,
)
from bot.tape.codec import decode_entry, encode_entries
from bot.tape.entries import ENTRY_KINDS, TapeEntry
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import Anchor, Segment

NDJSON_MEDIA_TYPE = "application/x-ndjson"
SSE_MEDIA_TYPE = "text/event-stream"
NEXT_PAGE_HEADER = "Tape-Next"
"""Response header with the start of the next page; absent if no entries are left."""
IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"
IDEMPOTENCY_META_KEY = "key"
"""Meta key of an append's first entry that holds its idempotency key."""
MAX_KEY_LENGTH = 128
MAX_JSON_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""
MAX_NAME_LENGTH = 4_096
"""Longest name of a tape or an anchor, in characters."""
MAX_PAGE_SIZE = 1_000
MAX_APPEND_ENTRIES = 10_000
"""Most entries of one append."""

BUSY = "busy"
CONFLICT = "conflict"

_ERRORS: tuple[tuple[type[TapeError], int, str], ...] = (
    (TapeNotFound, 404, "not_found"),
    (TapeExists, 409, "exists"),
    (InvalidEntry, 400, "invalid_entry"),
    (InvalidSearch, 400, "invalid_search"),
    (TapeWriteError, 507, "storage"),
)


def http_error(error: TapeError) -> tuple[int, str]:
    """Return the HTTP status and the error code for a store's error."""
    for kind, status, code in _ERRORS:
        if isinstance(error, kind):
            return status, code
    return 503, "unavailable"


def tape_error(status: int, code: str, detail: str) -> TapeError:
    """Return the exception for an error response."""
    for kind, _, known in _ERRORS:
        if code == known:
            return kind(detail)
    return TapeUnavailable(detail) if status >= 500 else TapeRefused(detail)


def build_url(path: str, params: Mapping[str, str | int]) -> str:
    """Return a path with its query string."""
    return f"{path}?{urlencode(params, errors='surrogatepass')}" if params else path


def query_parameter(query: bytes, name: str) -> str | None:
    """Return a parameter of a query string, or None if it is absent.

    Raises:
        ValueError: The query string is not UTF-8.
    """
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="surrogatepass")
    return next((value for key, value in reversed(pairs) if key == name), None)


def to_json(value: Any) -> bytes:
    """Return JSON that Python reads back exactly.

    Raises:
        InvalidEntry: The value is not plain JSON.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        try:
            return text.encode()
        except UnicodeEncodeError:
            # The escape of a lone surrogate is plain ASCII, but two adjacent escapes would become
            # one character.
            escaped = json.dumps(value, separators=(",", ":")).encode()
            return (
                escaped if json.loads(escaped) == value else text.encode("utf-8", "surrogatepass")
            )
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEntry(f"this cannot be written as JSON: {error}") from error


def from_json(raw: bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: The text is not JSON, or nested too deeply.
    """
    try:
        return json.loads(raw.decode("utf-8", "surrogatepass"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


# Entries.


def encode_ndjson_entry(entry: TapeEntry) -> bytes:
    """Encode an entry with its id as a line."""
    return encode_entries([entry])


def parse_entries(raw: bytes) -> list[TapeEntry]:
    """Parse entries from lines.

    Raises:
        ValueError: A line is not an entry.
    """
    return [_read_line(line) for line in raw.split(b"\n") if line]


def _read_line(raw: bytes) -> TapeEntry:
    entry = decode_entry(raw)
    if entry is None:
        raise ValueError("a line that is not an entry")
    return entry


def encode_new_entries(entries: Sequence[TapeEntry]) -> bytes:
    """Encode entries to append as lines; their ids are ignored.

    Raises:
        InvalidEntry: An entry would not read back exactly, or is nested too deeply.
    """
    return encode_entries([replace(entry, id=1) for entry in entries])


def parse_new_entries(raw: bytes) -> list[TapeEntry]:
    """Parse the entries of an append request; their ids become 0.

    Raises:
        InvalidEntry: A line is not an entry; the message says which one and why.
    """
    lines = [line for line in raw.split(b"\n") if line.strip()]
    return [_new_entry(number, line) for number, line in enumerate(lines, start=1)]


def encode_tombstones(tombstones: Sequence[TapeEntry]) -> bytes:
    """Encode tombstones as lines.

    Raises:
        InvalidEntry: A tombstone has no valid id, or would not read back exactly.
    """
    for entry in tombstones:
        if not 1 <= entry.id <= MAX_JSON_INTEGER:
            raise InvalidEntry(f"no entry has the id {entry.id}")
    return b"".join(map(encode_ndjson_entry, tombstones))


def parse_tombstones(raw: bytes) -> list[TapeEntry]:
    """Parse the tombstones of an erase request.

    Raises:
        InvalidEntry: A line is not an entry; the message says which one.
    """
    entries: list[TapeEntry] = []
    for number, line in enumerate((data for data in raw.split(b"\n") if data.strip()), start=1):
        entry = decode_entry(line)
        if entry is None:
            raise InvalidEntry(f'line {number} must be {{"id", "kind", "payload", "meta"}}')
        entries.append(entry)
    return entries


def _new_entry(number: int, raw: bytes) -> TapeEntry:
    try:
        record = from_json(raw)
    except ValueError as error:
        raise InvalidEntry(f"line {number} is not JSON: {error}") from error
    wanted = 'line {} must be {{"kind", "payload", "meta"}}: {}'
    if not isinstance(record, dict):
        raise InvalidEntry(wanted.format(number, "it is not an object"))
    if unknown := sorted(set(record) - {"id", "kind", "payload", "meta"}):
        raise InvalidEntry(wanted.format(number, f"it has {unknown[0]!a} too"))
    kind, payload, meta = record.get("kind"), record.get("payload"), record.get("meta", {})
    if not isinstance(kind, str) or kind not in ENTRY_KINDS:
        raise InvalidEntry(
            wanted.format(number, f"kind is one of {', '.join(sorted(ENTRY_KINDS))}")
        )
    if not isinstance(payload, dict) or not isinstance(meta, dict):
        raise InvalidEntry(wanted.format(number, "payload and meta are objects"))
    return TapeEntry(0, kind, payload, meta)  # type: ignore[arg-type]  # in KINDS


def encode_sse_event(entry: TapeEntry) -> bytes:
    """Encode an entry as a server-sent event (SSE)."""
    return b"id: %d\ndata: %b\n" % (entry.id, encode_ndjson_entry(entry))


class SseParser:
    """Parse server-sent events (SSE) as bytes: a text decoder would destroy lone surrogates."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[TapeEntry]:
        """Yield the entries that a chunk of the stream completes.

        Raises:
            ValueError: An event is not an entry.
        """
        *lines, rest = chunk.split(b"\n")
        if lines:
            # Join once per line, however many chunks it arrived in.
            lines[0] = b"".join([*self._begun, lines[0]])
            self._begun = []
        self._begun.append(rest)
        for line in lines:
            if line.startswith(b"data: "):
                yield _read_line(line.removeprefix(b"data: "))


# Other records.


def entry_record(entry: TapeEntry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {"id": entry.id, "kind": entry.kind, "payload": entry.payload, "meta": entry.meta}


def _entry_from(record: Any) -> TapeEntry:
    return _read_line(to_json(record))


def segment_record(segment: Segment) -> dict[str, Any]:
    """Return a segment as JSON."""
    return {"name": segment.name, "first_id": segment.first_id, "last_id": segment.last_id}


def segment_from(record: Any) -> Segment:
    """Parse a segment.

    Raises:
        KeyError, TypeError, ValueError: The record is malformed.
    """
    return Segment(str(record["name"]), int(record["first_id"]), int(record["last_id"]))


def anchor_record(anchor: Anchor) -> dict[str, Any]:
    """Return an anchor as JSON."""
    return {
        "tape": anchor.tape,
        "name": anchor.name,
        "at": anchor.at,
        "entry_id": anchor.entry_id,
        "state": anchor.state,
        "ts": anchor.ts,
    }


def anchor_from(record: Any) -> Anchor:
    """Parse an anchor.

    Raises:
        KeyError, TypeError, ValueError: The record is malformed.
    """
    return Anchor(
        str(record["tape"]),
        str(record["name"]),
        int(record["at"]),
        int(record["entry_id"]),
        dict(record["state"]),
        str(record["ts"]),
    )


def hit_record(hit: Hit) -> dict[str, Any]:
    """Return a hit as JSON."""
    return {
        "tape": hit.tape,
        "score": hit.score,
        "direct": hit.direct,
        "entry": entry_record(hit.entry),
        "before": [entry_record(entry) for entry in hit.before],
        "after": [entry_record(entry) for entry in hit.after],
    }


def hit_from(record: Any) -> Hit:
    """Parse a hit.

    Raises:
        KeyError, TypeError, ValueError: The record is malformed.
    """
    return Hit(
        str(record["tape"]),
        _entry_from(record["entry"]),
        float(record["score"]),
        tuple(map(_entry_from, record["before"])),
        tuple(map(_entry_from, record["after"])),
        direct=bool(record["direct"]),
    )


def query_record(query: SearchQuery) -> dict[str, Any]:
    """Return a query as JSON, without unset filters."""
    record: dict[str, Any] = {
        "text": query.text,
        "tapes": _listed(query.tapes),
        "kinds": _listed(query.kinds),
        "senders": _listed(query.senders),
        "problem": query.problem,
        "tags": _listed(query.tags or None),
        "layer": query.layer,
        "names": _listed(query.names),
        "since": _told(query.since),
        "until": _told(query.until),
        "first": query.first,
        "last": query.last,
        "after_anchor": query.after_anchor,
        "before_anchor": query.before_anchor,
        "limit": query.limit,
        "neighbours": query.neighbours,
        "near": None if query.near is None else [list(item) for item in query.near.items()],
        "without_assistant": query.without_assistant or None,
        "at_hand": query.at_hand or None,
        "quick": query.quick or None,
    }
    return {name: value for name, value in record.items() if value is not None}


def _listed(values: Iterable[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def _told(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
