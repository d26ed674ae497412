"""A Discord server for tests on loopback: gateway and REST API, version 10.

The unmodified discord.py runs against it (see ``DiscordServer.used_by_discord_py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from aiohttp import web

from testkit.discord.backend import DiscordBackend
from testkit.discord.faults import DiscordFaults
from testkit.discord.gateway import PRIVILEGED, Gateway
from testkit.discord.interactions import InteractionServer
from testkit.discord.rest_router import API, RestRouter
from testkit.discord.rest_routes import RestRoutes
from testkit.discord.user_actions import DiscordUserActions
from testkit.discord.world import DiscordWorld
from testkit.loopback import LoopbackServer

TEST_TOKEN = "MTA.test.discord-token"  # noqa: S105 - a server that knows no secrets
"""Default token of the bot."""


class DiscordServer(DiscordUserActions, LoopbackServer):
    """The server; an async context manager."""

    def __init__(self, *, token: str = TEST_TOKEN, portal_intents: int = PRIVILEGED) -> None:
        world = DiscordWorld.create("tapebot", portal_intents)
        gateway = Gateway(world, lambda: self.token)
        hub = DiscordBackend(world, gateway, DiscordFaults(gateway))
        door = RestRouter(hub, lambda: self.token)
        interactions = InteractionServer(hub, door)
        super().__init__(hub, interactions)
        self.token, self.port = token, 0
        self.faults = hub.faults
        app = self.application()
        for path in ("/gateway/", "/gateway", "/gateway/resume"):
            app.router.add_get(path, gateway.handle)
        app.router.add_get("/attachments/{channel}/{file}/{name}", self._attachment)
        RestRoutes(hub, door).register(app.router)
        interactions.register(app.router)
        door.unknown(app.router)

    @property
    def api_url(self) -> str:
        """The base URL of REST calls, for ``discord.http.Route.BASE``."""
        return self.url + API

    @property
    def gateway_url(self) -> str:
        """The gateway's URL, for ``discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY``."""
        return f"ws://127.0.0.1:{self.port}/gateway"

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.hub.base, self.hub.gateway.address = self.url, self.gateway_url
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self.faults.refuse_gateway(math.inf)
        self.hub.gateway.drop()
        await super().__aexit__()

    @contextmanager
    def used_by_discord_py(self) -> Iterator[None]:
        """Point every discord.py client in this process to this server within the block."""
        import yarl
        from discord.gateway import DiscordWebSocket
        from discord.http import Route

        before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
        Route.BASE = self.api_url
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(self.gateway_url)
        try:
            yield
        finally:
            Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before

    async def _attachment(self, request: web.Request) -> web.Response:
        number = request.match_info["file"]
        self.records.note(self.records.downloads, request.path, number)
        for message in self.records.messages.values():
            for upload in message.uploads:
                if str(upload.id) == number and message.deleted is None:
                    return web.Response(body=upload.data, content_type=upload.mime)
        return web.Response(status=404, text="This content is no longer available.")
