"""Index entries for search behind their appends.

Rule 1: an append is not indexed. A search first indexes what is missing of the tapes that it covers, so
    it is complete whoever wrote them, and also if the writer was killed.
Rule 2: a process indexes in the background what it wrote: a tape with many new entries, or one that
    rests. Many entries at once cost far less than each by itself.
Rule 3: terms of an erased entry are never stored: the database refuses what was made of a tape
    before an erasure, and an erasure replaces what was stored before it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from bot.core.database.connections import Database
from bot.core.database.pool import Row
from bot.core.errors import TapeUnavailable
from bot.tape.stores.postgres.reader import map_read_errors
from bot.tape.stores.postgres.rows import bytea_to_text, entry_of, index_document, text_to_bytea

logger = logging.getLogger(__name__)

MANY = 64
"""New entries of a tape after which they are indexed in the background."""

_REST = 60.0
"""Seconds without an append after which a tape's new entries are indexed."""

_EVERY = 5.0
_PAGE = 500
_PAGE_BYTES = 1 << 20
"""Bytes of entries that are indexed together, so that long ones take no longer than many short ones."""

_SECONDS = 60.0
"""Seconds for one page: an entry alone may be much larger."""

_BEHIND = """
select name from tapebot.tape join tapebot.indexed on indexed.tape = tape.id
where workspace = %s and (%s::bytea[] is null or name = any(%s::bytea[])) and upto < version
"""
_MISSING = """
select tape.id, tape.erasures, state.upto, found.id, found.body
from tapebot.tape join tapebot.indexed state on state.tape = tape.id cross join lateral (
    select id, body from (
        select id, body, sum(octet_length(body)) over (order by id) - octet_length(body) as before
        from (
            select id, body from tapebot.entry
            where entry.tape = tape.id and id > state.upto order by id limit %s
        ) as page
    ) as summed where before < %s
) as found
where workspace = %s and tape.name = %s order by found.id
"""
_INDEX = "select tapebot.index_entries(%s, %s, %s, %s, %s::jsonb)"


@dataclass(slots=True)
class _Written:
    """New entries of a tape that this process wrote: how many, and when the newest."""

    count: int = 0
    at: float = 0.0


class EntryIndexer:
    """Indexes the tapes of one workspace.

    Args:
        database: The database.
        workspace: The workspace's name, encoded.
    """

    def __init__(self, database: Database, workspace: bytes) -> None:
        self._database = database
        self._workspace = workspace
        self._written: dict[str, _Written] = {}
        self._due = anyio.Event()

    def note(self, tape: str, count: int) -> None:
        """Note that this process appended entries, which are indexed later."""
        written = self._written.setdefault(tape, _Written())
        written.count += count
        written.at = anyio.current_time()
        self._due.set()

    async def run(self) -> None:
        """Index what this process writes, until cancelled."""
        while True:
            await self._due.wait()
            await anyio.sleep(_EVERY)
            rested = anyio.current_time() - _REST
            for tape, written in list(self._written.items()):
                due = written.count >= MANY or written.at <= rested
                # A search may have indexed it meanwhile.
                if due and self._written.pop(tape, None) is not None:
                    await self._index_behind(tape)
            if not self._written:
                self._due = anyio.Event()

    async def _index_behind(self, tape: str) -> None:
        try:
            await self._index(tape)
        except TapeUnavailable as error:
            # The next search of it, or the next append, makes up for it.
            logger.info("new entries are indexed later: %s", error)

    async def catch_up(self, tapes: Sequence[str] | None) -> None:
        """Index everything that was appended to these tapes, or to all, before the call.

        Raises:
            TapeUnavailable: The database cannot be reached, or refused.
        """
        names = None if tapes is None else [text_to_bytea(tape) for tape in tapes]
        with map_read_errors(self._database, "the tapes"):
            rows = await self._database.fetch(_BEHIND, [self._workspace, names, names])
        for (name,) in rows:
            tape = bytea_to_text(name)
            self._written.pop(tape, None)
            await self._index(tape)

    async def _index(self, tape: str) -> None:
        """Index a tape's new entries, a page at a time."""
        while True:
            with map_read_errors(self._database, f"tape {tape}"):
                rows = await self._database.fetch(
                    _MISSING, [_PAGE, _PAGE_BYTES, self._workspace, text_to_bytea(tape)]
                )
                if not rows:
                    return
                made = await anyio.to_thread.run_sync(_documents, tape, rows)
                number, erasures, upto, first, *_ = rows[0]
                # Where it is refused, another process indexed or erased meanwhile: look again.
                values = [number, erasures, upto, first - 1, made]
                await self._database.fetch(_INDEX, values, seconds=_SECONDS)


def _documents(tape: str, rows: Sequence[Row]) -> str:
    """Return what a search finds entries by as JSON, for the first of them up to a missing id."""
    made: list[Any] = []
    for *_, number, body in rows:
        if number != rows[0][3] + len(made):
            break
        entry = entry_of(number, bytes(body))
        made.append(None if entry is None else index_document(tape, entry))
    return json.dumps(made)
