"""Read tapes in pages; each is one statement, so it shows one moment of the tape.

Names are stored as bytes, since a text of PostgreSQL holds neither NUL nor lone surrogates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import anyio.to_thread

from bot.core.database.connections import Database, Row
from bot.core.errors import TapeNotFound, TapeUnavailable
from bot.core.i18n import _
from bot.tape.codec import decode_line
from bot.tape.entries import TapeEntry
from bot.tape.state_reads import TapeState, current_reads
from bot.tape.store import Segment

MAX_ROW_ID = 2**62
"""Larger than any tape's id, and within the range of the id columns."""

_FIRST_PAGE = 32
_LAST_PAGE = 1024
# Bytes of lines from which on they are decoded in a worker thread.
_MUCH = 64 * 1024

_STATES = """
select name, version, live, erasures, title from tapebot.tape
where workspace = %s and (%s::bytea[] is null or name = any(%s))
"""
# The entries are in one partition, which is known once the tape's row is found.
_PAGE = """
select tape.version, tape.live, found.id, found.line
from tapebot.tape left join lateral (
    select id, line from tapebot.entry
    where entry.tape = tape.id and id >= %s and id <= %s order by id limit %s
) as found on true
where workspace = %s and name = %s order by found.id
"""
_PAGE_BACK = """
select tape.version, tape.live, found.id, found.line
from tapebot.tape left join lateral (
    select id, line from tapebot.entry
    where entry.tape = tape.id and id < %s order by id desc limit %s
) as found on true
where workspace = %s and name = %s order by found.id desc
"""
_THESE = """
select tape.version, tape.live, found.id, found.line
from tapebot.tape left join lateral (
    select id, line from tapebot.entry where entry.tape = tape.id and id = any(%s)
) as found on true
where workspace = %s and name = %s order by found.id
"""
_ANCHORS = """
select tape.version, tape.live, found.id, found.line
from tapebot.tape left join lateral (
    select id, line from tapebot.entry where entry.tape = tape.id and kind = 'anchor'
) as found on true
where workspace = %s and name = %s order by found.id
"""
_ERASED = "select name, erasures from tapebot.tape where workspace = %s and erasures > 0"
_REWRITES = """
select erasures, number, ids
from tapebot.tape left join tapebot.rewrite on rewrite.tape = tape.id and number > %s
where workspace = %s and name = %s order by number
"""
_SEGMENTS = """
select segment.name, first_id, last_id
from tapebot.tape left join tapebot.segment on segment.tape = tape.id
where workspace = %s and tape.name = %s order by first_id
"""


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Some entries of a tape at one moment.

    Attributes:
        version: Id of the tape's last entry.
        live: Id of the live part's header.
        entries: The readable entries.
        last_row: Id of the last row, readable or not; None without rows.
        rows: Number of rows.
    """

    version: int
    live: int
    entries: list[TapeEntry]
    last_row: int | None
    rows: int


class TapeReader:
    """Read the tapes of one workspace.

    Args:
        database: The database.
        workspace: The workspace's name, encoded.
    """

    def __init__(self, database: Database, workspace: bytes) -> None:
        self._database = database
        self._workspace = workspace
        self._damaged: defaultdict[str, set[int]] = defaultdict(set)

    @property
    def damaged(self) -> int:
        """How many unreadable entries were found."""
        return sum(map(len, self._damaged.values()))

    def damaged_of(self, tape: str) -> int:
        """Return how many unreadable entries of a tape were found."""
        return len(self._damaged.get(tape, ()))

    async def names(self) -> list[str]:
        """Return the names of all tapes, sorted."""
        with map_read_errors(self._database, "the list of tapes"):
            rows = await self._database.fetch(
                "select name from tapebot.tape where workspace = %s order by name",
                [self._workspace],
            )
        return [bytea_to_text(name) for (name,) in rows]

    async def state(self, tape: str) -> TapeState:
        """Return the state of a tape.

        Raises:
            TapeNotFound: There is no such tape.
        """
        reads = current_reads()
        if reads is None:
            found = (await self.states([tape])).get(tape)
        else:
            found = await reads.state(tape, self.states)
        if found is None:
            raise TapeNotFound(_("there is no tape {tape}", tape=tape))
        return found

    async def states(self, tapes: Sequence[str] | None) -> dict[str, TapeState]:
        """Return the states of those of some tapes that exist; None for all tapes."""
        names = None if tapes is None else [text_to_bytea(tape) for tape in tapes]
        what = f"tape {tapes[0]}" if tapes else "the list of tapes"
        with map_read_errors(self._database, what):
            rows = await self._database.fetch(_STATES, [self._workspace, names, names])
        return {
            bytea_to_text(name): TapeState(
                version, live, erasures, None if title is None else bytea_to_text(title)
            )
            for name, version, live, erasures, title in rows
        }

    async def erased(self) -> dict[str, int]:
        """Return the tapes with erasures and resets, and how many there were."""
        with map_read_errors(self._database, "the list of tapes"):
            rows = await self._database.fetch(_ERASED, [self._workspace])
        return {bytea_to_text(name): count for name, count in rows}

    async def rewrites(self, tape: str, after: int) -> tuple[int, list[list[int] | None]]:
        """Return how many erasures a tape has had, and what those after a number replaced.

        Each is a list of ids; None for a reset, which drops all entries.
        """
        rows = await self._ask(tape, _REWRITES, after)
        return rows[0][0], [ids for _unused, number, ids in rows if number is not None]

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        rows = await self._ask(tape, _SEGMENTS)
        return [Segment(name, first, last) for name, first, last in rows if name is not None]

    async def read_page(self, tape: str, first: int, last: int, most: int) -> EntryPage:
        """Return the first entries of an id range, up to ``most``."""
        return await self._page(tape, _PAGE, clamp_id(first), clamp_id(last), most)

    async def read_by_ids(self, tape: str, ids: Sequence[int]) -> EntryPage:
        """Return the existing entries among these ids."""
        return await self._page(tape, _THESE, [other for other in ids if other <= MAX_ROW_ID])

    async def anchors(self, tape: str) -> list[TapeEntry]:
        """Return the anchor entries, oldest first."""
        return (await self._page(tape, _ANCHORS)).entries

    async def read(self, tape: str, first: int, last: int) -> list[TapeEntry]:
        """Return the entries of an id range in one consistent state, however many."""
        while True:
            page = await self.read_page(tape, first, last, _LAST_PAGE)
            entries, live, newest = page.entries, page.live, page.version
            while page.rows == _LAST_PAGE and page.last_row is not None and page.live == live:
                page = await self.read_page(tape, page.last_row + 1, min(last, newest), _LAST_PAGE)
                entries += page.entries
            if page.live == live:
                return entries
            # Archived or reset meanwhile: entries still to read may have been dropped.

    async def read_back(self, tape: str, before: int | None) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first; pages grow for callers that read much."""
        ceiling = MAX_ROW_ID if before is None else clamp_id(before)
        most = _FIRST_PAGE
        while True:
            page = await self._page(tape, _PAGE_BACK, ceiling, most)
            for entry in page.entries:
                yield entry
            if page.rows < most or page.last_row is None:
                return
            ceiling, most = page.last_row, min(most * 2, _LAST_PAGE)

    async def _page(self, tape: str, sql: str, *values: Any) -> EntryPage:
        rows = await self._ask(tape, sql, *values)
        version, live, number, *_unused = rows[0]
        held = [] if number is None else rows
        if sum(len(row[3]) for row in held) > _MUCH:
            entries = await anyio.to_thread.run_sync(_decoded, held)
        else:
            entries = _decoded(held)
        if len(entries) < len(held):
            readable = {entry.id for entry in entries}
            self._damaged[tape] |= {row[2] for row in held} - readable
        return EntryPage(version, live, entries, held[-1][2] if held else None, len(held))

    async def _ask(self, tape: str, sql: str, *values: Any) -> list[Row]:
        """Return a statement's rows; it must have at least one row for an existing tape."""
        reads = current_reads()
        if reads is not None and tape in reads.names:
            # Often there is none, and the states of others are wanted next.
            await self.state(tape)
        with map_read_errors(self._database, f"tape {tape}"):
            rows = await self._database.fetch(sql, [*values, self._workspace, text_to_bytea(tape)])
        if not rows:
            if reads is not None:
                reads.remember(tape)
            raise TapeNotFound(_("there is no tape {tape}", tape=tape))
        return rows


def map_read_errors(database: Database, what: str) -> AbstractContextManager[None]:
    """Raise errors of a read as ``TapeUnavailable``."""
    return database.errors_as(
        lambda why: TapeUnavailable(_("{what} could not be read: {why}", what=what, why=why))
    )


def text_to_bytea(text: str) -> bytes:
    """Encode text for storage."""
    return text.encode("utf-8", "surrogatepass")


def bytea_to_text(raw: bytes) -> str:
    """Decode stored text."""
    return raw.decode("utf-8", "surrogatepass")


def clamp_id(number: int) -> int:
    """Return the nearest number that can be compared with an id."""
    return max(0, min(number, MAX_ROW_ID))


def entry_of(number: int, raw: bytes) -> TapeEntry | None:
    """Return a row's entry; None if its line does not match its CRC."""
    line = decode_line(raw)
    return None if line is None else replace(line.entry, id=number)


def _decoded(rows: Sequence[Row]) -> list[TapeEntry]:
    found = (entry_of(number, line) for _unused, _unused, number, line in rows)
    return [entry for entry in found if entry is not None]
