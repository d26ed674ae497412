"""What the tape server does in place of the store's own methods: limits of a token, pages, keys, streams."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.to_thread
from starlette.responses import Response

from bot.core.errors import HttpError, TapeError
from bot.tape.entries import TapeEntry
from bot.tape.http_protocol import Statistics, to_json
from bot.tape.search import Hit, SearchQuery
from bot.tape.server.connections import EventStream
from bot.tape.server.keyed_appends import KeyedAppends
from bot.tape.server.tokens import TokenGrant, TokenStore
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

MIN_FREE_BYTES = 64_000_000
"""Free bytes below which the server reports itself unhealthy."""

_PAGE_BYTES = 1_000_000
"""Bytes of a page; it ends with the entry that exceeds them."""


@dataclass(frozen=True, slots=True)
class TapeServer:
    """What all requests share; as in ``build_app``."""

    store: TapeStore
    appends: KeyedAppends
    tokens: TokenStore
    most: int
    folder: Path | None
    stopping: anyio.Event


class Handlers:
    """The calls of one request that are more than a method of the store. Raise ``HttpError`` and ``TapeError``."""

    def __init__(self, server: TapeServer, grant: TokenGrant) -> None:
        self._server = server
        self._store = server.store
        self._grant = grant

    async def list_tapes(self) -> list[str]:
        """Return the names that the token may know."""
        return list(filter(self._grant.can_see, await self._store.list_tapes()))

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Create a tape; only an admin may reset one."""
        if replace_if_exists:
            self._grant.require("admin")
        return await self._store.create_tape(tape, title, replace_if_exists=replace_if_exists)

    async def append(
        self, tape: str, entries: Sequence[TapeEntry], expect: int | None, key: str | None
    ) -> list[TapeEntry]:
        """Append entries, once per key."""
        if not entries:
            raise HttpError(422, "invalid_request", "entries: there is nothing to append")
        return await self._server.appends.append(tape, entries, key, expect)

    async def read_page(
        self, tape: str, from_entry_id: int, to_entry_id: int, limit: int, newest_first: bool
    ) -> Response:
        """Return a page, which ends with the entry that fills it."""
        version = await self._store.newest(tape)
        first, last = max(from_entry_id, 1), min(to_entry_id, version)
        lines: list[bytes] = []
        size, following = 0, None
        read = self._backward if newest_first else self._forward
        async with aclosing(read(tape, first, last)) as entries:
            async for entry in entries:
                lines.append(to_json(entry))
                size += len(lines[-1])
                if len(lines) == limit or size >= _PAGE_BYTES:
                    further = entry.id - 1 if newest_first else entry.id + 1
                    following = further if first <= further <= last else None
                    break
        # The lines are JSON already.
        rest = to_json({"version": version, "next": following})
        page = b'{"entries":[%b],%b' % (b",".join(lines), rest[1:])
        return Response(page, media_type="application/json")

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Search the tapes that the token may access."""
        if query.after_anchor is not None or query.before_anchor is not None:
            for tape in query.tapes or ():
                self._grant.require_tape(tape)
        if query.tapes is not None or "*" not in self._grant.tapes:
            tapes = await self._store.list_tapes() if query.tapes is None else query.tapes
            query = replace(query, tapes=tuple(filter(self._grant.can_see, tapes)))
        query.validate()
        return await self._store.search(query)

    async def follow(self, tape: str, after: int | None) -> Response:
        """Stream new entries."""
        # Also tells that there is no such tape.
        newest = await self._store.newest(tape)
        events = self._events(tape, newest if after is None else after)
        return EventStream(events, self._allowed, self._server.stopping)

    def _allowed(self) -> bool:
        return self._server.tokens.is_current(self._grant)

    async def _events(self, tape: str, start: int) -> AsyncGenerator[bytes, None]:
        # A client that gets nothing else resumes at this id.
        yield b"retry: 1000\nid: %d\n\n" % start
        try:
            async with aclosing(self._store.follow(tape, start)) as entries:
                async for entry in entries:
                    if not self._allowed():
                        # The client reconnects and is refused.
                        return
                    yield b"id: %d\ndata: %b\n\n" % (entry.id, to_json(entry))
        except TapeError as error:
            # The client reconnects and gets the error, whose text names the session.
            logger.warning("a tape can no longer be followed: %s", type(error).__name__)

    async def statistics(self) -> Statistics:
        """Return counters and the limit of a body."""
        return Statistics(store=self._store.statistics(), most_bytes=self._server.most)

    async def health(self) -> str:
        """Look at the disk, without writing to it: who asks has no token."""
        problem = await anyio.to_thread.run_sync(_disk_problem, self._server.folder)
        if problem:
            raise HttpError(503, "unhealthy", problem)
        return "ok"

    async def _forward(self, tape: str, first: int, last: int) -> AsyncGenerator[TapeEntry, None]:
        # Ranges grow, so that few large entries are read at once.
        span = 16
        while first <= last:
            for entry in await self._store.read(tape, first, min(last, first + span - 1)):
                yield entry
            first, span = first + span, min(span * 2, 1_024)

    async def _backward(self, tape: str, first: int, last: int) -> AsyncGenerator[TapeEntry, None]:
        async with aclosing(self._store.read_back(tape, last + 1)) as newest_first:
            async for entry in newest_first:
                if entry.id < first:
                    return
                yield entry


def _disk_problem(folder: Path | None) -> str:
    if folder is None:
        return ""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"the tapes' folder cannot be used: {error.strerror}"
    if not os.access(folder, os.W_OK):
        return "the tapes' folder cannot be written"
    full = free < MIN_FREE_BYTES
    return f"the tapes' disk is almost full: {free // 1_000_000} MB are free" if full else ""
