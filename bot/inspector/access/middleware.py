"""ASGI middleware that rejects wrong hosts and adds security headers to every response."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.core.errors import HttpError
from bot.inspector.access.limits import SiteLimitMiddleware
from bot.inspector.access.origin import SiteOrigin
from bot.inspector.exception_handlers import error_response

CSP = (
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
_BROKEN = "Something inside tapebot went wrong; it is in the log."


class SecurityMiddleware:
    """Check the Host header, apply the site's limits, and add security headers.

    Args:
        app: The application.
        url: The site's public URL.
    """

    def __init__(self, app: ASGIApp, url: str) -> None:
        self._app = SiteLimitMiddleware(app)
        self._entrance = SiteOrigin(url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        guarded = self._guarded(scope["path"], send)
        if self._entrance.matches_host(scope):
            await self._answered(scope, receive, guarded)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            detail = f"this site is at {self._entrance.url}; open it there"
            refusal = JSONResponse({"error": "wrong_host", "detail": detail}, 421)
            await refusal(scope, receive, guarded)

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
                refusal = error_response(Request(scope), HttpError(500, "broken", _BROKEN))
                await refusal(scope, receive, send)
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
        if self._entrance.secure:
            headers.setdefault("Strict-Transport-Security", _HSTS)
