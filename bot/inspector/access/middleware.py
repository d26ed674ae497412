"""ASGI middleware of the site: its own host only, limits, and security headers on every response.

A slow client must send its form or JSON quickly. Uploads are limited by the upload route.
"""

from __future__ import annotations

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.core.errors import HttpError
from bot.core.http.errors import refusal
from bot.core.http.limits import RequestSlots, read_whole
from bot.core.i18n import N_, _, use_language
from bot.inspector.access.origin import SiteOrigin
from bot.inspector.errors import error_response

CSP = (
    # for programs
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""Content Security Policy of pages: nothing from other hosts, no inline script or style."""

_ALWAYS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_HSTS = "max-age=31536000"
_STATIC = "/static/"
_BROKEN = N_("Something went wrong; the log has details.")

REQUESTS = 64
SOCKETS = 128
LARGEST = 256_000
"""Bytes of a form or JSON body; the framework reads these whole, before authentication."""

_WAIT = 10.0
_LONGEST = 300.0
"""Seconds that a request may take; an upload over a mobile connection is slow."""

_BODY = 15.0
"""Seconds within which a form or JSON body must arrive."""

CLIENTS = "/v1/"
"""Begin of the paths of client programs. Their routes read a body only once its sender is known."""

LARGEST_OF_CLIENTS = 32_000_000
_LONGEST_OF_CLIENTS = 3_600.0
_BODY_OF_CLIENTS = 120.0

UPLOADS = "/chat/uploads"
"""Path of uploads; their bodies are streamed, and limited by the route."""


class SecurityMiddleware:
    """Check the Host header, apply the site's limits, and add security headers."""

    def __init__(self, app: ASGIApp, url: str) -> None:
        self._app = LimitMiddleware(app)
        self._origin = SiteOrigin(url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        guarded = self._guarded(scope["path"], send)
        if self._origin.matches_host(scope):
            await self._answered(scope, receive, guarded)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            detail = _("this site is at {url}; open it there", url=self._origin.url)
            await refusal(421, "wrong_host", detail)(scope, receive, guarded)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception:
            # The framework's own error response lacks our headers and a readable text.
            if scope["type"] == "http" and not begun:
                # It left the part of the application that knows the language.
                with use_language(scope.get("state", {}).get("language", "en")):
                    response = error_response(Request(scope), HttpError(500, "broken", _(_BROKEN)))
                await response(scope, receive, send)
            raise

    def _guarded(self, path: str, send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(path, MutableHeaders(scope=message))
            await send(message)

        return guarded

    def _add(self, path: str, headers: MutableHeaders) -> None:
        for name, value in _ALWAYS.items():
            # A route may set a stricter value itself.
            headers.setdefault(name, value)
        page = headers.get("content-type", "").startswith("text/html")
        # With no-referrer, browsers also hide the Origin of forms.
        headers.setdefault("Referrer-Policy", "same-origin" if page else "no-referrer")
        if not path.startswith(_STATIC):
            headers.setdefault("Cache-Control", "no-store")
        if self._origin.secure:
            headers.setdefault("Strict-Transport-Security", _HSTS)


class LimitMiddleware:
    """Limit concurrent requests and WebSockets, request time and body size."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._requests = RequestSlots(anyio.Semaphore(REQUESTS), "site", _WAIT, _LONGEST, "busy")
        self._clients = RequestSlots(
            anyio.Semaphore(REQUESTS), "site", _WAIT, _LONGEST_OF_CLIENTS, "busy"
        )
        self._sockets = RequestSlots(anyio.Semaphore(SOCKETS), "site")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or one WebSocket for as long as it is open."""
        if scope["type"] == "websocket":
            await self._sockets.run(self._app, scope, receive, send)
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        elif too_long := _too_long(scope):
            await too_long(scope, receive, send)
        else:
            slots, receive = self._requests, _in_time(scope, receive)
            if scope["path"].startswith(CLIENTS):
                slots = self._clients
            elif scope["path"] != UPLOADS:
                # Others read a body, or take a slot for long, only of whom they know.
                receive = await read_whole(receive)
            await slots.run(self._app, scope, receive, send)


def _in_time(scope: Scope, receive: Receive) -> Receive:
    """Wrap ``receive`` so that a body that is not there in time becomes a disconnect."""
    if scope["path"] == UPLOADS:
        return receive
    seconds = _BODY_OF_CLIENTS if scope["path"].startswith(CLIENTS) else _BODY
    until, whole = anyio.current_time() + seconds, False

    async def bounded() -> Message:
        nonlocal whole
        if whole:
            return await receive()
        with anyio.move_on_after(until - anyio.current_time()):
            message = await receive()
            whole = not message.get("more_body", False)
            return message
        return {"type": "http.disconnect"}

    return bounded


def _too_long(scope: Scope) -> JSONResponse | None:
    """Return the refusal of a body that is too long or of unknown length."""
    headers, close = dict(scope["headers"]), {"Connection": "close"}
    if scope["path"] == UPLOADS:
        return None
    if b"transfer-encoding" in headers:
        return refusal(411, "no_length", "send the header Content-Length", close)  # for programs
    length = headers.get(b"content-length", b"0")
    largest = LARGEST_OF_CLIENTS if scope["path"].startswith(CLIENTS) else LARGEST
    if not length.isdigit() or int(length[:20]) > largest:
        # for programs
        return refusal(413, "too_long", f"the request is longer than {largest} bytes", close)
    return None
