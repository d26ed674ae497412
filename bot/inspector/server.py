"""Serve the site: its socket, its static files, and its shutdown."""

from __future__ import annotations

import socket

from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from bot.core.errors import ChannelRefused
from bot.core.http import server as serving
from bot.core.http import sockets
from bot.core.i18n import _

CONNECTIONS = 256
_USER_TIMEOUT = 60
"""Seconds for which sent data may stay unacknowledged before the connection counts as dead."""

_GRACE = 1
"""Seconds that responses in progress have at shutdown."""

_LARGEST_FRAME = 1_000_000
"""Bytes of a WebSocket message."""

_BUSY = PlainTextResponse(
    "The site is busy; try again in a second.",  # for programs
    503,
    {"Retry-After": "1", "Connection": "close"},
)


class CachedStaticFiles(StaticFiles):
    """Static files that browsers cache: a versioned URL changes with the content."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file with its ``Cache-Control`` header."""
        response = await super().get_response(path, scope)
        # Modules import each other without a version, so browsers must revalidate them.
        versioned = scope["query_string"].startswith(b"v=")
        kept = "public, max-age=31536000, immutable" if versioned else "no-cache"  # for programs
        if response.status_code in (200, 304):
            response.headers["Cache-Control"] = kept
        return response


def bind(address: str) -> socket.socket:
    """Return a socket that listens on ``HOST:PORT``.

    Raises:
        ChannelRefused: The address cannot be used; most often another program has the port.
    """
    try:
        return sockets.bind(address, backlog=CONNECTIONS, user_timeout=_USER_TIMEOUT)
    except OSError as error:
        raise ChannelRefused(
            _(
                "Web: cannot listen on {address} ({error}); stop the program that does, or set "
                "TAPEBOT_WEB_LISTEN to another address, or to off",
                address=address,
                error=error.strerror,
            )
        ) from error


async def serve(app: ASGIApp, bound: socket.socket) -> None:
    """Serve until cancelled; responses in progress then have one more second."""
    config = serving.server_config(
        app,
        grace=_GRACE,
        http=serving.connection_class(CONNECTIONS, _BUSY),
        ws="websockets-sansio",
        ws_max_size=_LARGEST_FRAME,
    )
    await serving.serve(config, bound)
