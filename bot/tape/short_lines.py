"""Write the most frequent lines of a tape's file shorter, and read them back byte for byte. Pure.

Rule 1: a short line stands for a full one. Digests, other stores and exports know only full lines.
Rule 2: a name, ``user``, ``assistant`` or ``delivery``, stands for the kind, and has the text or the data. What the
    ``meta`` has follows on the same level: first ``ts``, in milliseconds since 1970; ``sent`` is in milliseconds after
    ``ts``.
Rule 3: a line that would not read back to the same bytes is written in full. A full line begins with its kind.
Rule 4: a short line says the same to any reader of JSON: each key of it is the format's or of ``meta``, never both.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from bot.core.clock import from_milliseconds, to_milliseconds
from bot.tape.entries import TapeEntry

_OPENINGS = {
    b'"user":': b'"kind":"message","payload":{"role":"user","content":',
    b'"assistant":': b'"kind":"message","payload":{"role":"assistant","content":',
    b'"delivery":': b'"kind":"event","payload":{"name":"delivery","data":',
}
"""What stands before the text or the data in a full line, by the name in a short one."""
_FORMAT_KEYS = frozenset(
    ("id", "kind", "payload", "meta", "more", "chain", "user", "assistant", "delivery")
)
"""Keys of lines that stand for something else than a key of ``meta``."""
_META = b'},"meta":{"ts":"'
_TS, _SENT, _MORE = b',"ts":', b',"sent":', b',"more":'
_TIME_SIZE = len("2026-02-10T10:00:00.000+00:00")
# Only one spelling of a number: other bytes are another line.
_NUMBER = re.compile(rb"(?:0|-?[1-9][0-9]{0,14})(?![0-9])")
_START = re.compile(rb'\{"id":[0-9]+,(?!"kind":)')


def shorten(entry: TapeEntry, content: bytes) -> bytes:
    """Return a line's content as it is written; unchanged if no short form fits.

    Args:
        entry: The entry.
        content: Its full line from the kind to the meta.
    """
    meta = entry.meta
    if (
        # More in the payload would be taken for a part of the meta, and a number for a time.
        len(entry.payload) != 2
        or next(iter(meta), "") != "ts"
        or not isinstance(meta.get("sent", ""), str)
        or not _FORMAT_KEYS.isdisjoint(meta)
    ):
        return content
    short = _shorten(content, has_sent="sent" in meta)
    return content if short is None or _expand(short) != content else short


def expand_line(line: bytes) -> bytes | None:
    """Return the full line of a short one, both without their link and the brace behind it.

    Full lines are returned unchanged, and so is what is no line; None for a name that is not known.
    """
    start = _START.match(line)
    if start is None:
        return line
    end = line.rfind(_MORE)
    if end < 0 or not line[end + len(_MORE) :].isdigit():
        end = len(line)
    content = _expand(line[start.end() : end])
    return None if content is None else b"%b%b%b" % (start[0], content, line[end:])


def _shorten(content: bytes, *, has_sent: bool) -> bytes | None:
    for name, opening in _OPENINGS.items():
        if content.startswith(opening):
            text, _found, meta = content[len(opening) :].partition(_META)
            moment = _milliseconds(meta[:_TIME_SIZE])
            # What is nested in payload or meta may look like the meta, or have ``sent`` of its own.
            if moment is None or _META in meta or meta.count(_SENT + b'"') != has_sent:
                return None
            told = meta[_TIME_SIZE + 1 : -1]
            before, _sent, rest = told.partition(_SENT + b'"')
            if (arrived := _milliseconds(rest[:_TIME_SIZE])) is not None:
                told = b"%b%b%d%b" % (before, _SENT, arrived - moment, rest[_TIME_SIZE + 1 :])
            return b"%b%b%b%d%b" % (name, text, _TS, moment, told)
    return None


def _expand(short: bytes) -> bytes | None:
    name = short[: short.find(b":") + 1]
    opening = _OPENINGS.get(name)
    if opening is None:
        return None
    text, _found, meta = short[len(name) :].partition(_TS)
    stamp = _NUMBER.match(meta)
    if stamp is None:
        return None
    moment = int(stamp[0])
    before, sent, rest = meta[stamp.end() :].partition(_SENT)
    if (delay := _NUMBER.match(rest)) is not None:
        rest = b'"%b"%b' % (_time(moment + int(delay[0])), rest[delay.end() :])
    return b"".join((opening, text, _META, _time(moment), b'"', before, sent, rest, b"}"))


def _milliseconds(text: bytes) -> int | None:
    """Return a time since 1970; None if it is none."""
    try:
        return to_milliseconds(datetime.fromisoformat(text.decode("ascii")))
    except (ValueError, TypeError, OverflowError):
        return None


def _time(milliseconds: int) -> bytes:
    """Return a time as entries have it; nothing that is a time if there is no such one."""
    seconds, rest = divmod(milliseconds, 1_000)
    return b"%b.%03d+00:00" % (_second(seconds), rest)


@lru_cache(256)
def _second(seconds: int) -> bytes:
    """Return the part of a time before the point: lines that are read together share it."""
    try:
        return from_milliseconds(seconds * 1_000).isoformat()[: -len("+00:00")].encode()
    except OverflowError:
        return b""
