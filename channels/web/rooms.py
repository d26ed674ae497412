"""All conversations that pages are open on, or that something is held of."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from bot.bus import Site
from channels.web.notices import Notices
from channels.web.room import Room

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often it is looked whether something was erased from a conversation that is shown."""


class Rooms:
    """All conversations that something is held of.

    Args:
        site: As for ``Room``.
        notices: As for ``Room``.
    """

    def __init__(self, site: Site, notices: Notices) -> None:
        self._site = site
        self._notices = notices
        self._rooms: dict[str, Room] = {}
        self._users: dict[str, int] = {}

    @contextmanager
    def using(self, session: str) -> Iterator[Room]:
        """Give a conversation's room for the block; it is given up when nothing is held in it."""
        room = self._rooms.get(session)
        if room is None:
            room = self._rooms[session] = Room(session, self._site, self._notices)
        self._users[session] = self._users.get(session, 0) + 1
        try:
            yield room
        finally:
            self._users[session] -= 1
            if not self._users[session]:
                del self._users[session]
                if room.idle:
                    del self._rooms[session]

    async def watch(self) -> None:
        """Take back what was erased, from wherever that was done, until cancelled."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            for session in list(self._rooms):
                if session not in self._rooms:
                    continue
                with self.using(session) as room:
                    try:
                        await room.check()
                    except Exception as error:  # noqa: BLE001 (the next look finds it)
                        logger.info("what was erased is looked for later: %s", type(error).__name__)
