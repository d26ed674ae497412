"""The site as the web channel uses it: implements ``bot.bus.Site``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from fastapi import APIRouter
from starlette.requests import HTTPConnection

from bot.bus import Address, Answer, BusError, RemoteCommands, Transcript, WebUser
from bot.core.i18n import _
from bot.inspector import rendering
from bot.inspector.app import build_app
from bot.inspector.dependencies import WebContext
from bot.inspector.server import bind, serve


class UnavailableCommands:
    """Refuse commands; a placeholder until the web channel runs."""

    async def run(
        self,
        session: Address,  # noqa: ARG002
        visitor: WebUser,  # noqa: ARG002
        text: str,  # noqa: ARG002
        *,
        private: bool,  # noqa: ARG002
        pressed: str | None = None,  # noqa: ARG002
        within: float = 30.0,  # noqa: ARG002
    ) -> Answer:
        """Refuse the command.

        Raises:
            BusError: Always.
        """
        raise BusError(_("the web channel is not running"))


@dataclass(frozen=True, slots=True)
class WebSite:
    """Serve the site.

    Attributes:
        web: The site's context; ``serve`` replaces its ``remote_commands``.
        listen: The address to listen on, ``HOST:PORT``.
        ready: Called when the socket is bound.
    """

    web: WebContext
    listen: str
    ready: Callable[[], Awaitable[None]]

    @property
    def transcript(self) -> Transcript:
        """The reader of conversations."""
        return self.web.transcript

    def render(self, markdown: str) -> str:
        """Return an answer as HTML; see ``rendering.render_markdown``."""
        return rendering.render_markdown(markdown)

    async def user(self, connection: HTTPConnection) -> WebUser | None:
        """Return the logged-in user of a connection who may use the bot; None for nobody."""
        return await self.web.logins.authenticator.visitor(connection)

    async def blob(self, digest: str) -> bytes | None:
        """Return a stored file's content; None if it is not there."""
        return await self.web.blob(digest)

    async def serve(self, chat: APIRouter, remote_commands: RemoteCommands) -> None:
        """Serve the site with the chat's routes until cancelled.

        Raises:
            ChannelRefused: The address cannot be used.
        """
        web = replace(self.web, remote_commands=remote_commands)
        async with AsyncExitStack() as stack:
            bound = stack.enter_context(bind(self.listen))
            if web.memory is not None:
                await stack.enter_async_context(web.memory.run())
            await self.ready()
            await serve(build_app(web, chat), bound)
