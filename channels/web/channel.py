"""The web channel: wires conversations, uploads and routes to the bus."""

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
from channels.web.routes import ChatRoutes
from channels.web.socket import LOGIN_CHECK_SECONDS, ConnectionContext, SocketServer
from channels.web.uploads import UPLOAD_LIFETIME_SECONDS, UploadStore

logger = logging.getLogger(__name__)

DEFAULT_MAX_FILE_BYTES = 20_000_000
"""The default for the most bytes of an uploaded file."""


class WebChannel:
    """A chat for everybody who is logged in on the web server.

    Args:
        platform: The channel's context.
        site: The backend that serves the pages and knows who is logged in.
        most_bytes: The most bytes of an uploaded file.
        check_seconds: Seconds between two checks that an open page is still logged in.
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
        """The first part of the channel's session keys."""
        return WEB_CHANNEL

    async def run(self, port: ChannelPort) -> None:
        """Serve until cancelled.

        Raises:
            ChannelRefused: The web server cannot listen on its port.
        """
        notices = NoticeStore(self._platform.data_dir / "notices")
        uploads = UploadStore(self._platform.data_dir / "uploads", self._most_bytes)
        rooms = ConversationRegistry(self._site, notices)
        remote_commands = WebRemoteCommands(port)
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
            routes = ChatRoutes(self._site, SocketServer(lobby), uploads, notices).router()
            tasks.start_soon(WebDispatcher(port, rooms, remote_commands, lanes).run)
            tasks.start_soon(_sweep, uploads)
            tasks.start_soon(rooms.watch_erasures)
            try:
                await self._site.serve(routes, remote_commands)
            except ChannelRefused as error:
                # Raised after the task group, which would wrap it in an exception group.
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
