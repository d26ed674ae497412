"""Servers for tests in processes of their own, which outlive killed bots, and their control over HTTP.

``POST /control/say`` with a JSON object of arguments calls the server's ``say`` and answers
``{"result": ...}``, or 400 with ``error``; ``/control/faults.fail`` calls a method of its faults.
Bytes are given in base64. ``GET /control/records`` returns all records.
"""

from __future__ import annotations

import base64
import inspect
import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, is_dataclass
from typing import Any, Self

import aiohttp
import anyio
from aiohttp import web
from anyio.abc import Process


def add_control(app: web.Application, server: Any, records: Callable[[], Any]) -> None:
    """Add the routes by which another process calls a server's public methods."""

    async def act(request: web.Request) -> web.Response:
        name = request.match_info["act"]
        kind, _, fault = name.rpartition(".")
        method = getattr(server.faults if kind == "faults" else server, fault, None)
        try:
            if fault.startswith("_") or not callable(method):
                raise LookupError(f"no action {name}")  # noqa: TRY301 - told like all others
            given = await request.json() if request.can_read_body else {}
            if isinstance(given.get("data"), str) and "message" not in given:
                given["data"] = base64.b64decode(given["data"], validate=True)
            result = method(**given)
            if inspect.isawaitable(result):
                result = await result
        except (ValueError, LookupError, TypeError, AssertionError, TimeoutError) as exc:
            return web.json_response({"error": f"{type(exc).__name__}: {exc}"}, status=400)
        return _json({"result": result})

    async def read(_request: web.Request) -> web.Response:
        return _json(records())

    app.router.add_get("/control/records", read)
    app.router.add_post("/control/{act}", act)


def _json(value: Any) -> web.Response:
    return web.Response(text=json.dumps(value, default=_plain), content_type="application/json")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)


async def serve(server: AbstractAsyncContextManager[Any], addresses: Callable[[], Any]) -> None:
    """Serve until the process ends; print the addresses as a line of JSON first."""
    async with server:
        sys.stdout.write(json.dumps(addresses()) + "\n")
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
