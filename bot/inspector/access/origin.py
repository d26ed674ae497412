"""Check a request's Host and Origin, read and set its login cookie, and check its CSRF token.

Rule 1: only requests for the site's own host are answered: a page of another name that is made to
    resolve to this machine (DNS rebinding) must not read the site.
Rule 2: where a browser states a request's origin, it must be this site and this port.
Rule 3: the CSRF token is derived from the cookie's secret; only a client that can read the cookie
    can make it.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Scope

from bot.core.addresses import is_loopback
from bot.core.http.tokens import LONGEST

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""HTTP methods that change nothing."""

FORM_CONTENT_TYPE = "application/x-www-form-urlencoded"

_PORTS = {"http": 80, "https": 443}
_YEAR = 365 * 86_400
"""Seconds that a browser keeps the cookie; the server ends a login by its last use."""


class SiteOrigin:
    """The site's public URL, with the host, origin and cookie rules that follow from it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self.secure = parts.scheme == "https"
        self._host = _host_and_port(parts.netloc.lower(), parts.scheme)
        port = self._host[1] if self._host else 0
        # Cookies ignore ports: without the port in its name, one site would log out another.
        self.cookie = "__Host-tapebot" if self.secure else f"tapebot-{port}"

    def matches_host(self, scope: Scope) -> bool:
        """Return whether a request's Host header names this site."""
        names = [value for key, value in scope["headers"] if key == b"host"]
        if len(names) != 1:
            return False
        host = names[0].decode("latin-1").lower()
        if self._host is not None and _host_and_port(host, self._scheme(host)) == self._host:
            return True
        here = _host_and_port(host, "http")
        server = scope.get("server") or ("", None)
        return here is not None and is_loopback(here[0]) and here[1] == server[1]

    def is_same_origin(self, connection: HTTPConnection) -> bool:
        """Return whether a request comes from this site, as far as a browser states it.

        Programs state nothing; browsers always do for requests that change something and for
        WebSockets.
        """
        origin = connection.headers.get("origin")
        if origin is not None:
            host = connection.headers.get("host", "").lower()
            return origin.lower() == f"{self._scheme(host)}://{host}"
        return connection.headers.get("sec-fetch-site", "none") in ("same-origin", "none")

    def login_cookie(self, connection: HTTPConnection) -> str | None:
        """Return the value of the login cookie; None if there is none."""
        value = connection.cookies.get(self.cookie, "")
        return value if 0 < len(value) <= LONGEST else None

    def set_login_cookie(self, response: Response, secret: str) -> None:
        """Set the login cookie on a response."""
        # Lax, not Strict: a link in a chat must open the page, not the login form.
        response.set_cookie(
            self.cookie,
            secret,
            max_age=_YEAR,
            path="/",
            secure=self.secure,
            httponly=True,
            samesite="lax",
        )

    def delete_login_cookie(self, response: Response) -> None:
        """Delete the login cookie in the browser."""
        response.delete_cookie(
            self.cookie, path="/", secure=self.secure, httponly=True, samesite="lax"
        )

    def _scheme(self, host: str) -> str:
        """Return the scheme that clients use for a host: the proxy's, or the server's own."""
        known = _host_and_port(host, "https" if self.secure else "http") == self._host
        return "https" if self.secure and known else "http"


def csrf_token(secret: str) -> str:
    """Return the CSRF token of a login."""
    return hmac.new(secret.encode(), b"tapebot csrf", sha256).hexdigest()


async def has_csrf_token(connection: HTTPConnection, expected: str) -> bool:
    """Return whether a request has the token, in ``X-CSRF-Token`` or the form field ``csrf``."""
    given = connection.headers.get("x-csrf-token")
    if given is None and isinstance(connection, Request):
        given = (await fields(connection)).get("csrf")
    return given is not None and hmac.compare_digest(given.encode(), expected.encode())


async def fields(request: Request) -> dict[str, str]:
    """Return the fields of a URL-encoded form, the first of each name; empty for other bodies."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    length = request.headers.get("content-length", "")
    # Uploads get here with longer bodies; a chunked body may have any length.
    in_pieces = "transfer-encoding" in request.headers
    if kind != FORM_CONTENT_TYPE or in_pieces or not length.isdecimal() or len(length) > 6:
        return {}
    body = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(body, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


def local_path(text: str | None) -> str:
    """Return a text if it is a path of this site, else ``/``; a guard for redirects."""
    text = text or ""
    fit = text.startswith("/") and text.isascii() and text.isprintable() and len(text) <= 2_000
    # Browsers read a backslash as a slash, and two slashes as another host.
    return text if fit and "\\" not in text and not text.startswith("//") else "/"


def _host_and_port(netloc: str, scheme: str) -> tuple[str, int] | None:
    host, colon, port = netloc.rpartition(":")
    if not colon or netloc.endswith("]"):
        return netloc, _PORTS.get(scheme, 0)
    return (host, int(port)) if port.isascii() and port.isdecimal() and len(port) < 6 else None
