"""Routing for the Discord test server's REST API.

Every call is recorded, authorised, counted against rate limits, and subject to injected faults. See
https://discord.com/developers/docs/reference.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from testkit.discord.backend import DiscordBackend
from testkit.discord.messages import DiscordApiError, MessagePayload
from testkit.discord.rate_limits import RestFault, json_answer
from testkit.discord.records import DiscordUpload, RestCall
from testkit.loopback import endless

API = "/api/v10"

Answer = Awaitable[Any]
Route = Callable[["RestRequest"], Answer]
NO_CONTENT = object()
"""Return value of a route for status 204."""


class RestRequest:
    """An accepted call."""

    def __init__(self, request: web.Request, body: Any, uploads: tuple[DiscordUpload, ...]) -> None:
        self.request, self.body, self.uploads = request, body, uploads

    def number(self, name: str) -> int:
        """Return an id from the path."""
        text = self.request.match_info[name]
        if not text.isdigit():
            raise DiscordApiError(400, 50035, "Invalid Form Body", {name: {"_errors": []}})
        return int(text)

    def text(self, name: str) -> str:
        """Return a text parameter from the path."""
        return self.request.match_info[name]

    @property
    def draft(self) -> MessagePayload:
        """The call's message payload."""
        return MessagePayload(self.body or {}, self.uploads)


class RestRouter:
    """Registers routes, and checks each call before it reaches them."""

    def __init__(self, hub: DiscordBackend, token: Callable[[], str]) -> None:
        self.hub, self._token = hub, token

    def route(
        self, router: web.UrlDispatcher, method: str, path: str, do: Route, *, public: bool = False
    ) -> None:
        """Add a route."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            return await self._guard(request, do, public)

        router.add_route(method, API + path, guarded)

    def unknown(self, router: web.UrlDispatcher) -> None:
        """Answer 404 like Discord for unknown routes."""

        async def nothing(_call: RestRequest) -> Any:
            raise DiscordApiError(404, 0, "404: Not Found")

        async def guarded(request: web.Request) -> web.StreamResponse:
            return await self._guard(request, nothing, True)

        router.add_route("*", "/api/{rest:.*}", guarded)

    async def _guard(self, request: web.Request, do: Route, public: bool) -> web.StreamResponse:
        began = time.monotonic()
        path = request.path.removeprefix(API)
        fault = self.hub.faults.take(request.method, path)
        body: Any = None
        response: web.Response | None = None
        code, status = 0, 500  # recorded for a route that fails unexpectedly
        try:
            if fault is not None and fault.kind == "endless":
                return await endless(request, packed=fault.packed)
            if fault is not None and fault.kind == "slow":
                await fault.pause()
            if fault is not None and fault.kind in {"status", "limit"}:
                response = fault.answer()
            elif fault is None or fault.kind != "break":
                body, uploads = await _read(request)
                response, code = await self._pass(RestRequest(request, body, uploads), do, public)
            status = 0 if response is None or _is_lost(fault) else response.status
        finally:
            took = time.monotonic() - began
            entry = RestCall(request.method, path, status, began, took, code, body)
            self.hub.world.records.calls.append(entry)
            self.hub.world.records.touch()
        if response is None or _is_lost(fault):
            return _broken(request)
        return response

    async def _pass(self, call: RestRequest, do: Route, public: bool) -> tuple[web.Response, int]:
        if not public and call.request.headers.get("Authorization") != f"Bot {self._token()}":
            return json_answer({"message": "401: Unauthorized", "code": 0}, 401), 0
        try:
            result = await do(call)
        except DiscordApiError as error:
            return json_answer(error.to_json(), error.status), error.code
        if result is NO_CONTENT:
            return web.Response(status=204), 0
        status, data = result if isinstance(result, tuple) else (200, result)
        return json_answer(data, status), 0


async def _read(request: web.Request) -> tuple[Any, tuple[DiscordUpload, ...]]:
    if not request.can_read_body:
        return None, ()
    if not request.content_type.startswith("multipart/"):
        raw = await request.read()
        try:
            return (json.loads(raw) if raw else None), ()
        except ValueError:
            return {}, ()
    body: Any = {}
    uploads: list[DiscordUpload] = []
    form = await request.post()
    for name, part in form.items():
        if isinstance(part, web.FileField):
            uploads.append(DiscordUpload(part.filename, part.file.read(), part.content_type))
        elif name == "payload_json":
            body = json.loads(part)
    return body, tuple(uploads)


def _is_lost(fault: RestFault | None) -> bool:
    return fault is not None and fault.kind == "lose"


def _broken(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
