"""Verify a tape of any store with the rules for tape files."""

from __future__ import annotations

from bot.core.errors import InvalidEntry, TapeError
from bot.tape.batches import read_chained_lines
from bot.tape.codec import TapeLine, encode_line
from bot.tape.store import TapeStore
from bot.tape.verification import TapePart, TapeVerifier
from bot.transfer.tape_comparison import read_tape_metadata

_PAGE = 500
_TRIES = 20


async def verify_tape(store: TapeStore, tape: str) -> TapeVerifier:
    """Verify a tape; other processes may write to it meanwhile.

    Raises:
        TapeNotFound: There is no such tape.
        TapeError: It was archived or reset again and again during verification.
    """
    for _ in range(_TRIES):
        seen = await read_tape_metadata(store, tape)
        check = TapeVerifier(tape)
        begin = 1
        for one in seen.segments:
            check.begin_part(TapePart(one.name, (one.first_id, one.last_id)))
            await _lines(store, tape, check, one.first_id, one.last_id)
            check.end_part(cut=False)
            begin = one.last_id + 1
        check.begin_part(TapePart("what is live"))
        first = await _lines(store, tape, check, begin, seen.version)
        check.end_part(cut=False)
        check.finish()
        same = (await read_tape_metadata(store, tape)).segments == seen.segments
        if same and (first is None or await store.read(tape, first, first)):
            return check
    raise TapeError(f"tape {tape} was turned over again and again while it was checked; try again")


async def _lines(
    store: TapeStore, tape: str, check: TapeVerifier, first: int, last: int
) -> int | None:
    """Verify an id range; return the first existing id."""
    found, offset = None, 0
    while first <= last:
        upto = min(last, first + _PAGE - 1)
        for one in await read_chained_lines(store, tape, first, upto):
            found = one.entry.id if found is None else found
            line = await _encoded(store, tape, one)
            check.check_line(offset, line[:-1])
            offset += len(line)
        first += _PAGE
    return found


async def _encoded(store: TapeStore, tape: str, line: TapeLine) -> bytes:
    """Encode a line as in a file; one that does not match its digest becomes unreadable."""
    try:
        return encode_line(line)
    except InvalidEntry:
        # It may have been erased between reading the entry and its link.
        again = await read_chained_lines(store, tape, line.entry.id, line.entry.id)
    try:
        return b"".join(map(encode_line, again))
    except InvalidEntry:
        return b"\xff\n"
