"""The web channel: a chat on the program's own site."""

from __future__ import annotations

import logging

import anyio

from bot.bus import WEB_CHANNEL, ChannelPort, ChannelRefused, WebBackend
from channels.base import ChannelContext
from channels.keyed_executor import KeyedExecutor
from channels.web.conversation import ConversationRegistry
from channels.web.dispatcher import WebDispatcher
from channels.web.intake import WebIntake
from channels.web.notices import NoticeStore
from channels.web.remote_commands import WebRemoteCommands
from channels.web.routes import chat_routes
from channels.web.socket import LOGIN_CHECK_SECONDS, ConnectionContext, SocketServer
from channels.web.uploads import UPLOAD_LIFETIME_SECONDS, UploadStore

logger = logging.getLogger(__name__)

DEFAULT_MAX_FILE_BYTES = 20_000_000
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
        platform: ChannelContext,
        site: WebBackend,
        *,
        most_bytes: int = DEFAULT_MAX_FILE_BYTES,
        check_seconds: float = LOGIN_CHECK_SECONDS,
    ) -> None:
        self._platform = platform
        self._site = site
        self._most_bytes = most_bytes
        self._check_seconds = check_seconds

    @property
    def name(self) -> str:
        """The first part of its sessions' keys."""
        return WEB_CHANNEL

    async def run(self, port: ChannelPort) -> None:
        """Serve until cancelled.

        Raises:
            ChannelRefused: The site cannot listen where it should.
        """
        notices = NoticeStore(self._platform.data_dir / "notices")
        uploads = UploadStore(self._platform.data_dir / "uploads", self._most_bytes)
        rooms = ConversationRegistry(self._site, notices)
        desk = WebRemoteCommands(port)
        refused: ChannelRefused | None = None
        async with anyio.create_task_group() as tasks:
            lanes = KeyedExecutor(tasks)
            saying = WebIntake(self._platform, port, rooms, uploads, lanes)
            lobby = ConnectionContext(
                self._site,
                rooms,
                saying,
                self._platform.commands,
                self._most_bytes,
                self._check_seconds,
            )
            routes = chat_routes(self._site, SocketServer(lobby), uploads, notices)
            tasks.start_soon(WebDispatcher(port, rooms, desk, lanes).run)
            tasks.start_soon(_sweep, uploads)
            tasks.start_soon(rooms.watch_erasures)
            try:
                await self._site.serve(routes, desk)
            except ChannelRefused as error:
                # Out of a group it would come as one, and end the program's other channels.
                refused = error
            tasks.cancel_scope.cancel()
        if refused is not None:
            raise refused


async def _sweep(uploads: UploadStore) -> None:
    while True:
        try:
            await uploads.remove_expired()
        except OSError as error:
            logger.warning("old uploads could not be removed: %s", error.strerror)
        await anyio.sleep(UPLOAD_LIFETIME_SECONDS / 10)
