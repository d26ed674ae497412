"""Verify a tape of any store, by itself and against its copy in another store."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest

from bot.core.errors import TapeError
from bot.core.i18n import _
from bot.tape.batches import read_batches
from bot.tape.codec import encode_entries
from bot.tape.store import TapeStore
from bot.tape.verification import TapePart, TapeVerifier
from bot.transfer.home_data import read_tape_metadata

_PAGE = 500
_TRIES = 20


async def verify_tape(store: TapeStore, tape: str) -> TapeVerifier:
    """Verify a tape; other processes may write to it meanwhile.

    Raises:
        TapeNotFound: There is no such tape.
        TapeError: It was archived or reset again and again during verification.
    """
    for _unused in range(_TRIES):
        seen = await read_tape_metadata(store, tape)
        check = TapeVerifier(tape)
        begin = 1
        for segment in seen.segments:
            check.begin_part(TapePart(segment.name, (segment.first_id, segment.last_id)))
            await _entries(store, tape, check, segment.first_id, segment.last_id)
            check.end_part()
            begin = segment.last_id + 1
        check.begin_part(TapePart(_("live entries")))
        first = await _entries(store, tape, check, begin, seen.version)
        check.end_part()
        check.finish()
        same = (await read_tape_metadata(store, tape)).segments == seen.segments
        if same and (first is None or await store.read(tape, first, first)):
            return check
    raise TapeError(_("tape {tape} kept changing during the check; try again", tape=tape))


async def _entries(
    store: TapeStore, tape: str, check: TapeVerifier, first: int, last: int
) -> int | None:
    """Verify an id range; return the first existing id."""
    found = None
    async with aclosing(read_batches(store, tape, first, last)) as pages:
        async for page in pages:
            for entry in page:
                found = entry.id if found is None else found
                check.check_entry(entry)
    return found


@dataclass(frozen=True, slots=True)
class TapeComparison:
    """How many entries the first store has, the SHA-256 of their lines, and what differs, if anything."""

    entries: int
    digest: str
    difference: str | None


async def compare_tape(here: TapeStore, there: TapeStore, tape: str) -> TapeComparison:
    """Read a tape from both stores in batches and compare everything."""
    ours, theirs = await read_tape_metadata(here, tape), await read_tape_metadata(there, tape)
    digest, count, difference = sha256(), 0, None
    for first in range(1, max(ours.version, theirs.version) + 1, _PAGE):
        last = first + _PAGE - 1
        entries, others = await here.read(tape, first, last), await there.read(tape, first, last)
        count += len(entries)
        for entry, other in zip_longest(entries, others):
            # Lines differ where values are equal: 1 and 1.0, a surrogate pair and its character.
            line = b"" if entry is None else encode_entries([entry])
            digest.update(line)
            if difference is None and (other is None or encode_entries([other]) != line):
                number = min(one.id for one in (entry, other) if one is not None)
                difference = _("entry {id} is not the same there", id=number)
    if difference is None and ours != theirs:
        difference = _("its title, its segments or its end are not the same there")
    return TapeComparison(count, digest.hexdigest(), difference)
