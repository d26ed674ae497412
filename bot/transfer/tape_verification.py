"""Verify a tape of any store, by itself and against its copy in another store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256

from bot.core.errors import TapeError
from bot.core.i18n import _
from bot.tape.batches import read_batches
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore
from bot.tape.verification import TapePart, TapeVerifier
from bot.transfer.storage import TapeMetadata, read_tape_metadata

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
    """The result of comparing a tape in two stores.

    Attributes:
        entries: How many entries the first one has.
        digest: SHA-256 over the lines of those entries, as ``bot.tape.codec`` writes them.
        difference: The first difference, to be displayed; None if the tapes are the same.
    """

    entries: int
    digest: str
    difference: str | None


async def compare_tape(here: TapeStore, there: TapeStore, tape: str) -> TapeComparison:
    """Read a tape from both stores in batches and compare everything.

    Raises:
        TapeNotFound: A store has no such tape.
    """
    ours, theirs = await read_tape_metadata(here, tape), await read_tape_metadata(there, tape)
    difference = _shapes(ours, theirs)
    digest, count = sha256(), 0
    for first in range(1, max(ours.version, theirs.version) + 1, _PAGE):
        last = first + _PAGE - 1
        entries = await here.read(tape, first, last)
        lines = [encode_entries([entry]) for entry in entries]
        digest.update(b"".join(lines))
        count += len(entries)
        if difference is None:
            difference = _first(entries, lines, await there.read(tape, first, last))
    return TapeComparison(count, digest.hexdigest(), difference)


def _shapes(ours: TapeMetadata, theirs: TapeMetadata) -> str | None:
    if ours.version != theirs.version:
        return _(
            "it ends with entry {version} here and with {version2} there",
            version=ours.version,
            version2=theirs.version,
        )
    if ours.title != theirs.title:
        return _(
            "its title is {title!r} here and {title2!r} there",
            title=ours.title,
            title2=theirs.title,
        )
    if ours.segments != theirs.segments:
        return _(
            "it has the segments {named} here and {named2} there",
            named=_named(ours),
            named2=_named(theirs),
        )
    return None


def _named(tape_metadata: TapeMetadata) -> str:
    return ", ".join(segment.name for segment in tape_metadata.segments) or "(none)"


def _first(
    ours: Sequence[TapeEntry], lines: Sequence[bytes], theirs: Sequence[TapeEntry]
) -> str | None:
    """Return the first difference between the entries of an id range."""
    for place, (entry, line) in enumerate(zip(ours, lines, strict=True)):
        if place == len(theirs):
            return _("entry {id} is missing there", id=entry.id)
        other = theirs[place]
        if other.id != entry.id:
            return _("entry {id} is in one place only", id=min(entry.id, other.id))
        # Lines differ where values are equal: 1 and 1.0, a surrogate pair and its character.
        if encode_entries([other]) != line:
            return _("entry {id} differs in its {part}", id=entry.id, part=_part(entry, other))
    if len(theirs) > len(ours):
        return _("entry {id} is missing here", id=theirs[len(ours)].id)
    return None


def _part(entry: TapeEntry, other: TapeEntry) -> str:
    if entry.kind != other.kind:
        return _("kind: {kind} here, {kind2} there", kind=entry.kind, kind2=other.kind)
    return "payload" if entry.payload != other.payload else _("meta, or in how it is written")
