"""The web channel: a chat on the program's own site."""

from __future__ import annotations

import logging

import anyio

from bot.bus import WEB, ChannelPort, ChannelRefused, Site
from channels.base import Platform
from channels.lanes import Lanes
from channels.web.desk import WebDesk
from channels.web.notices import Notices
from channels.web.rooms import Rooms
from channels.web.routes import chat_routes
from channels.web.saying import Saying
from channels.web.showing import Showing
from channels.web.socket import CHECK_SECONDS, Lobby, Sockets
from channels.web.uploads import KEPT_SECONDS, Uploads

logger = logging.getLogger(__name__)

MOST_BYTES = 20_000_000
"""Bytes of a file that is sent, where the program says nothing else."""


class WebChannel:
    """A chat for everybody who is logged in on the site.

    Args:
        platform: What the program gives a channel.
        site: Serves the pages, and knows who is logged in.
        most_bytes: The most that a file may have.
        check_seconds: How often it is asked whether the login of an open page still counts.
    """

    def __init__(
        self,
        platform: Platform,
        site: Site,
        *,
        most_bytes: int = MOST_BYTES,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self._platform = platform
        self._site = site
        self._most_bytes = most_bytes
        self._check_seconds = check_seconds

    @property
    def name(self) -> str:
        """The first part of its sessions' keys."""
        return WEB

    async def run(self, port: ChannelPort) -> None:
        """Serve until cancelled.

        Raises:
            ChannelRefused: The site cannot listen where it should.
        """
        notices = Notices(self._platform.folder / "notices")
        uploads = Uploads(self._platform.folder / "uploads", self._most_bytes)
        rooms = Rooms(self._site, notices)
        desk = WebDesk(port)
        refused: ChannelRefused | None = None
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(tasks)
            saying = Saying(self._platform, port, rooms, uploads, lanes)
            lobby = Lobby(
                self._site,
                rooms,
                saying,
                self._platform.commands,
                self._most_bytes,
                self._check_seconds,
            )
            routes = chat_routes(self._site, Sockets(lobby), uploads, notices)
            tasks.start_soon(Showing(port, rooms, desk, lanes).run)
            tasks.start_soon(_sweep, uploads)
            tasks.start_soon(rooms.watch)
            try:
                await self._site.serve(routes, desk)
            except ChannelRefused as error:
                # Out of a group it would come as one, and end the program's other channels.
                refused = error
            tasks.cancel_scope.cancel()
        if refused is not None:
            raise refused


async def _sweep(uploads: Uploads) -> None:
    while True:
        try:
            await uploads.sweep()
        except OSError as error:
            logger.warning("old uploads could not be removed: %s", error.strerror)
        await anyio.sleep(KEPT_SECONDS / 10)
