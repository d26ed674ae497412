"""Listening sockets, without the libraries of a server."""

from __future__ import annotations

import socket


def bind(address: str, *, backlog: int | None = None, user_timeout: int = 0) -> socket.socket:
    """Return a socket that is bound to ``HOST:PORT``.

    Args:
        address: A name or an address, an IPv6 one in brackets, and the port; 0 for any free one.
        backlog: With it, the socket listens at once, which detects a second listener on the port
            before the first request; None to not listen yet.
        user_timeout: Seconds that sent data may stay unacknowledged before a connection counts as dead,
            where the system supports it; 0 for the system's default.

    Raises:
        OSError: It cannot be bound; most often another program uses the port.
    """
    host, _, port = address.rpartition(":")
    family, kind, protocol, _, place = socket.getaddrinfo(
        host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if user_timeout and hasattr(socket, "TCP_USER_TIMEOUT"):
            # Accepted sockets inherit it; else a sleeping client holds its connection for hours.
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, user_timeout * 1_000)
        bound.bind(place)
        if backlog is not None:
            bound.listen(backlog)
    except OSError:
        bound.close()
        raise
    return bound


def address_of(bound: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
