"""Servers for tests in processes of their own, which outlive killed bots, and their control over HTTP.

``POST /control/say`` with a JSON object of arguments calls the server's ``say`` and answers
``{"result": ...}``, or 400 with ``error``; ``/control/faults.fail`` calls a method of its faults.
"""

from __future__ import annotations

import inspect
import json
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from typing import Any, Self

import aiohttp
import anyio
from aiohttp import web
from anyio.abc import Process


def add_control(app: web.Application, server: Any) -> None:
    """Add the routes by which another process calls a server's public methods."""

    async def act(request: web.Request) -> web.Response:
        name = request.match_info["act"]
        kind, _, fault = name.rpartition(".")
        method = getattr(server.faults if kind == "faults" else server, fault, None)
        try:
            if fault.startswith("_") or not callable(method):
                raise LookupError(f"no action {name}")  # noqa: TRY301 - told like all others
            given = await request.json() if request.can_read_body else {}
            result = method(**given)
            if inspect.isawaitable(result):
                result = await result
        except (ValueError, LookupError, TypeError, AssertionError, TimeoutError) as exc:
            return web.json_response({"error": f"{type(exc).__name__}: {exc}"}, status=400)
        return _json({"result": result})

    async def read(_request: web.Request) -> web.Response:
        names = [each.name for each in fields(server.records) if each.name[0] != "_"]
        return _json({name: getattr(server.records, name) for name in names})

    app.router.add_get("/control/records", read)
    app.router.add_post("/control/{act}", act)


def _json(value: Any) -> web.Response:
    def plain(one: Any) -> Any:
        return asdict(one) if is_dataclass(one) and not isinstance(one, type) else str(one)

    return web.json_response(value, dumps=partial(json.dumps, default=plain))


async def serve(server: AbstractAsyncContextManager[Any], *addresses: str) -> None:
    """Serve until the process ends; print these attributes as a line of JSON first."""
    async with server:
        sys.stdout.write(json.dumps({name: getattr(server, name) for name in addresses}) + "\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


class ServerProcess:
    """A server in a process, run as a module; ``urls`` are the addresses that it prints."""

    module: str

    def __init__(self) -> None:
        self.urls: dict[str, str] = {}
        self._process: Process
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-m", self.module]
        self._process = await anyio.open_process(command, stderr=None)
        line = b""
        assert self._process.stdout is not None
        try:
            with anyio.fail_after(30):
                while not line.endswith(b"\n"):
                    line += await self._process.stdout.receive()
        except BaseException:
            self._process.kill()
            raise
        self.urls = json.loads(line)
        self._session = aiohttp.ClientSession(self.urls["url"])
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self._session.close()
        if self._process.returncode is None:
            self._process.kill()
        with anyio.CancelScope(shield=True):
            await self._process.wait()
            await self._process.aclose()

    async def do(self, act: str, **arguments: Any) -> Any:
        """Call the server's method of this name, such as ``say`` or ``faults.fail``."""
        async with self._session.post(f"/control/{act}", json=arguments) as response:
            answer = await response.json()
        if response.status != 200:
            raise RuntimeError(f"{act}: {answer['error']}")
        return answer["result"]

    async def records(self) -> dict[str, Any]:
        async with self._session.get("/control/records") as response:
            records: dict[str, Any] = await response.json()
        return records
