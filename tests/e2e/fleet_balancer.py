"""A balancer before the gateways' webhooks: it alternates, and now and then it fails as balancers do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Literal, Self

import aiohttp
import anyio
from aiohttp import web

Way = Literal["one", "again", "lost", "both"]

_PATIENCE = aiohttp.ClientTimeout(total=2)


class Balancer:
    """An async context manager; listens on loopback."""

    def __init__(self, chance: random.Random, gateways: Callable[[], Sequence[int]]) -> None:
        self.port = 0
        self.weights: dict[Way, float] = {"one": 0.86, "again": 0.06, "lost": 0.04, "both": 0.04}
        self.passed: Counter[str] = Counter()
        self._chance = chance
        self._gateways = gateways
        self._turn = 0
        self._session: aiohttp.ClientSession
        app = web.Application()
        app.router.add_post("/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=_PATIENCE)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {
            name: value for name, value in request.headers.items() if name.startswith("X-Telegram")
        }
        ports = self._next()
        way: Way = self._chance.choices([*self.weights], [*self.weights.values()])[0]
        taken: list[int] = []

        async def post(port: int) -> None:
            url = f"http://127.0.0.1:{port}{request.path}"
            try:
                async with self._session.post(url, data=body, headers=headers) as answer:
                    taken.append(answer.status)
            except (aiohttp.ClientError, TimeoutError):
                self.passed["unreachable"] += 1

        if way == "both":
            async with anyio.create_task_group() as tasks:
                for port in ports:
                    tasks.start_soon(post, port)
        elif ports:
            await post(ports[0])
        if way == "again" and 200 in taken:
            await post(ports[-1])
        self.passed[way] += 1
        if way == "lost" or 200 not in taken:
            return web.Response(status=502)
        return web.Response()

    def _next(self) -> list[int]:
        """Return the gateways, beginning with the one whose turn it is."""
        ports = [*self._gateways()]
        self._turn += 1
        start = self._turn % len(ports) if ports else 0
        return ports[start:] + ports[:start]
