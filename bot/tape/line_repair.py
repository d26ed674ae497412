"""Repair single-bit errors in a tape's lines, verified by the lines' digests. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.tape.codec import CANCEL, decode_line, split_joined

_LONGEST = 8_192
"""Bytes of the longest line that is repaired, since each of its bits is tried."""


def repair_line(raw: bytes) -> bytes | None:
    """Return a damaged line as it was written, or None if no single-bit error explains the damage.

    The digest verifies the result, so a line from before the chain is never repaired.
    """
    if len(raw) > _LONGEST:
        return None
    line = bytearray(raw)
    for place in range(len(line)):
        for bit in range(8):
            line[place] ^= 1 << bit
            if _is_proved(bytes(line)):
                return bytes(line)
            line[place] ^= 1 << bit
    return None


def repair_lines(lines: Sequence[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """Yield a file's lines as they were written, as far as their digests prove it.

    Args:
        lines: The lines without their newlines.

    Yields:
        The line's number, from 1; the line; whether it was repaired. A damaged newline joins two
        lines: both are yielded. A character damaged into a newline splits one: the whole line is
        yielded.
    """
    place = 0
    while place < len(lines):
        raw = lines[place]
        number = place + 1
        place += 1
        if raw.endswith(CANCEL) or decode_line(raw) is not None:
            yield number, raw, False
            continue
        following = lines[place] if place < len(lines) else b""
        joined = (
            _join(raw, following) if place < len(lines) and decode_line(following) is None else None
        )
        if joined is not None:
            place += 1
            yield number, joined, True
            continue
        pieces = split_joined(raw)
        for piece in pieces:
            mended = piece if decode_line(piece) is not None else repair_line(piece)
            yield number, piece if mended is None else mended, len(pieces) > 1 or mended is not None


def _join(first: bytes, second: bytes) -> bytes | None:
    """Join a line that was split where a bit error turned a character into a newline."""
    candidates = (first + bytes([ord("\n") ^ 1 << bit]) + second for bit in range(8))
    return next((data for data in candidates if _is_proved(data)), None)


def _is_proved(raw: bytes) -> bool:
    line = None if b"\n" in raw else decode_line(raw)
    return line is not None and line.link is not None
