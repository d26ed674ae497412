"""Validate addresses in settings; the errors state the allowed values. Pure."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit


def web_address(url: str) -> str:
    """Return an http or https address.

    Raises:
        ValueError: It is none.
    """
    return _address(url, "http", "https")


def websocket_address(url: str) -> str:
    """Return a WebSocket address.

    Raises:
        ValueError: It is none.
    """
    return _address(url, "ws", "wss")


def _address(url: str, *schemes: str) -> str:
    url = url.strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", url):
        raise ValueError(f"an address that starts with {schemes[0]}:// or {schemes[1]}://")
    return url


def host_and_port(text: str) -> str:
    """Return ``HOST:PORT``.

    Raises:
        ValueError: It has another form.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 <= int(port) < 65_536:
        raise ValueError("HOST:PORT, such as 127.0.0.1:8081")
    return text.strip()


def is_loopback(host: str | None) -> bool:
    """Return whether a host's name or address is this machine's loopback."""
    try:
        return host == "localhost" or ip_address((host or "").strip("[]")).is_loopback
    except ValueError:
        return False
