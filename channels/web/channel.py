"""The web channel: wires conversations, uploads and routes to the bus."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from fastapi import APIRouter

from bot.bus import WEB_CHANNEL, ChannelPort, WebBackend
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


@dataclass(frozen=True, slots=True)
class Beside:
    """Another channel that the site's server serves.

    Attributes:
        router: Its routes.
        run: Hands over its answers until cancelled.
    """

    router: APIRouter
    run: Callable[[], Coroutine[Any, Any, None]]


class WebChannel:
    """A chat for everybody who is logged in on the web server."""

    def __init__(
        self,
        context: ChannelContext,
        site: WebBackend,
        *,
        most_bytes: int = DEFAULT_MAX_FILE_BYTES,
        check_seconds: float = LOGIN_CHECK_SECONDS,
        beside: Sequence[Beside] = (),
    ) -> None:
        self._context = context
        self._site = site
        self._most_bytes = most_bytes
        self._check_seconds = check_seconds
        self._beside = beside

    @property
    def name(self) -> str:
        """The first part of the channel's session keys."""
        return WEB_CHANNEL

    async def run(self, port: ChannelPort) -> None:
        """Serve until cancelled.

        Raises:
            ChannelRefused: The web server cannot listen on its port.
        """
        notices = NoticeStore(self._context.data_dir / "notices")
        uploads = UploadStore(self._context.data_dir / "uploads", self._most_bytes)
        conversations = ConversationRegistry(self._site, notices)
        remote_commands = WebRemoteCommands(port)
        async with anyio.create_task_group() as tasks:
            executor = KeyedExecutor(tasks)
            intake = WebIntake(self._context, port, conversations, uploads, executor)
            connections = ConnectionContext(
                self._site,
                conversations,
                intake,
                self._context.commands,
                self._most_bytes,
                self._check_seconds,
            )
            routes = ChatRoutes(self._site, SocketServer(connections), uploads, notices).router()
            tasks.start_soon(WebDispatcher(port, conversations, remote_commands, executor).run)
            tasks.start_soon(_sweep, uploads)
            tasks.start_soon(conversations.watch_erasures)
            for one in self._beside:
                routes.include_router(one.router)
                tasks.start_soon(one.run)
            await self._site.serve(routes, remote_commands)
            tasks.cancel_scope.cancel()


async def _sweep(uploads: UploadStore) -> None:
    while True:
        try:
            await uploads.remove_expired()
        except OSError as error:
            logger.warning("old uploads could not be removed: %s", error.strerror)
        await anyio.sleep(UPLOAD_LIFETIME_SECONDS / 10)
