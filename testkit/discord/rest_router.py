"""Routing for the Discord test server's REST API: each call is authorised, recorded, and may meet a fault."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from aiohttp import web

from testkit.discord.backend import DiscordBackend
from testkit.discord.faults import json_answer
from testkit.discord.messages import DiscordApiError, MessagePayload
from testkit.discord.records import DiscordUpload, RestCall
from testkit.loopback import endless, hang_up

API = "/api/v10"

Route = Callable[["RestRequest"], Awaitable[Any]]
Routes = Iterable[tuple[str, str, Route]]
NO_CONTENT = object()
"""Return value of a route for status 204."""


class RestRequest:
    """An accepted call."""

    def __init__(self, request: web.Request, body: Any, uploads: tuple[DiscordUpload, ...]) -> None:
        self.request, self.body, self.uploads = request, body, uploads

    def number(self, name: str) -> int:
        text = self.request.match_info[name]
        if not text.isdigit():
            raise DiscordApiError(400, 50035, "Invalid Form Body", {name: {"_errors": []}})
        return int(text)

    def text(self, name: str) -> str:
        return self.request.match_info[name]

    @property
    def draft(self) -> MessagePayload:
        return MessagePayload(self.body or {}, self.uploads)


class RestRouter:
    """Registers routes, and checks each call before it reaches them."""

    def __init__(self, hub: DiscordBackend, token: Callable[[], str]) -> None:
        self.hub, self._token = hub, token

    def serve(self, router: web.UrlDispatcher, routes: Routes, *, public: bool = False) -> None:
        for method, path, do in routes:
            router.add_route(method, API + path, partial(self._guard, do, public))

    def unknown(self, router: web.UrlDispatcher) -> None:
        """Answer 404 like Discord for unknown routes."""

        async def nothing(_call: RestRequest) -> Any:
            raise DiscordApiError(404, 0, "404: Not Found")

        router.add_route("*", "/api/{rest:.*}", partial(self._guard, nothing, True))

    async def _guard(self, do: Route, public: bool, request: web.Request) -> web.StreamResponse:
        began, path = time.monotonic(), request.path.removeprefix(API)
        fault = self.hub.faults.take(request.method, path)
        kind = None if fault is None else fault.kind
        response: web.Response | None = None
        status = 500  # recorded for a route that fails unexpectedly
        try:
            if fault is not None and kind == "endless":
                return await endless(request, packed=fault.packed)
            if fault is not None and fault.gate is not None:
                await fault.gate.wait()
            if fault is not None and kind in {"status", "limit"}:
                response = fault.answer()
            elif kind != "break":
                body, uploads = await _read(request)
                response = await self._pass(RestRequest(request, body, uploads), do, public)
            if kind == "lose":
                response = None
            status = 0 if response is None else response.status
        finally:
            entry = RestCall(request.method, path, status, began)
            self.hub.world.records.calls.append(entry)
            self.hub.world.records.touch()
        return hang_up(request) if response is None else response

    async def _pass(self, call: RestRequest, do: Route, public: bool) -> web.Response:
        if not public and call.request.headers.get("Authorization") != f"Bot {self._token()}":
            return json_answer({"message": "401: Unauthorized", "code": 0}, 401)
        try:
            result = await do(call)
        except DiscordApiError as error:
            return json_answer(error.to_json(), error.status)
        return web.Response(status=204) if result is NO_CONTENT else json_answer(result)


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
