"""Authenticate requests by login cookie or API token, and count them against rate limits.

Rule 1: a login proves identity only; the role is looked up again for every request.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from starlette.requests import HTTPConnection

from bot.bus import AccessRequest, Authorizer, Role, Sender, WebUser
from bot.core.clock import Clock
from bot.core.errors import HttpError, TapebotError
from bot.core.http.tokens import bearer_token
from bot.core.i18n import N_, _, accepted_languages
from bot.inspector.access.identities import LOCAL, channel_address
from bot.inspector.access.login_fold import Login
from bot.inspector.access.login_store import LoginStore
from bot.inspector.access.origin import (
    SAFE_METHODS,
    SiteOrigin,
    csrf_token,
    has_csrf_token,
)
from bot.inspector.access.rate_limits import RateLimiter

logger = logging.getLogger(__name__)

_DAY = timedelta(days=1)

_NOBODY = N_(
    "you are not logged in; log in at /login, or send a token: Authorization: Bearer TOKEN"
)
_WRONG_TOKEN = N_("this token is not valid; tapebot web tokens lists the valid ones")
_FORGED = N_(
    "this request does not come from a page of this site; open the page again and retry there"
)


@dataclass(frozen=True, slots=True)
class _Caller:
    """An authenticated caller, before the check for forgery; ``csrf`` is None for a token."""

    visitor: WebUser
    csrf: str | None


class Authenticator:
    """Authenticate requests. Routes use it through ``bot.inspector.dependencies``.

    Args:
        login_store: Looks up logins and tokens.
        origin: Reads login cookies and checks a request's origin.
        access: Decides what a user may do.
        clock: Times the rate limits, and dates the use of logins.
    """

    def __init__(
        self, login_store: LoginStore, origin: SiteOrigin, access: Authorizer, clock: Clock
    ) -> None:
        self._login_store = login_store
        self._origin = origin
        self._access = access
        self._clock = clock
        self._rates = RateLimiter()

    async def visitor(self, connection: HTTPConnection) -> WebUser | None:
        """Return the user logged in on a connection; None for nobody, or if it may be forged.

        Raises:
            TapebotError: Access cannot be determined at the moment.
        """
        caller = await self._caller(connection)
        if caller is None or await self._forged(connection, caller):
            return None
        connection.state.csrf = caller.csrf or ""
        return caller.visitor

    async def authenticate(self, connection: HTTPConnection) -> WebUser:
        """Return the caller, count the request, and set ``state.csrf`` on the connection.

        Raises:
            HttpError: 401 if nobody is logged in, 403 if the request may be forged, 429 if there
                are
                too many requests.
            TapebotError: Access cannot be determined at the moment.
        """
        caller = await self._caller(connection)
        if caller is None:
            by_token = bearer_token(connection.headers) is not None
            headers = {"WWW-Authenticate": "Bearer"}
            raise HttpError(401, "not_logged_in", _(_WRONG_TOKEN if by_token else _NOBODY), headers)
        if await self._forged(connection, caller):
            raise HttpError(403, "forged", _(_FORGED))
        changes = connection.scope.get("method", "GET") not in SAFE_METHODS
        wait = self._rates.take(caller.visitor.id, self._clock.monotonic(), changes=changes)
        if wait:
            raise too_many(_("too many requests within a minute"), wait)
        connection.state.csrf = caller.csrf or ""
        return caller.visitor

    async def role(self, visitor: str, name: str) -> Role | None:
        """Return a user's current role, as access control decides it; None without access.

        Raises:
            BusError: Access cannot be determined at the moment.
        """
        if visitor == LOCAL:
            return "owner"
        address = channel_address(visitor)
        if address is None:
            return None
        sender = Sender(address.chat_id, name)
        # A request without text is no attempt to get access, so no notices are sent.
        return (
            await self._access.authorize(AccessRequest(address, sender, private=True, text=None))
        ).role

    async def _caller(self, connection: HTTPConnection) -> _Caller | None:
        given = bearer_token(connection.headers)
        if given is not None:
            return await self._by_token(given)
        secret = self._origin.login_cookie(connection)
        login = None if secret is None else await self._login_store.login(secret)
        if secret is None or login is None:
            return None
        role = await self.role(login.visitor, login.name)
        if role is None:
            return None
        if abs(self._clock.now() - login.used) >= _DAY:
            await self._touch(login)
        language = accepted_languages(connection.headers.get("accept-language", ""))
        visitor = WebUser(login.visitor, login.name, role, language)
        return _Caller(visitor, csrf_token(secret))

    async def _by_token(self, given: str) -> _Caller | None:
        token = await self._login_store.token(given)
        if token is None or await self.role(token.visitor, token.name) != "owner":
            return None
        return _Caller(WebUser(token.visitor, token.name, "owner"), None)

    async def _touch(self, login: Login) -> None:
        try:
            await self._login_store.touch(login)
        except TapebotError as error:
            logger.warning(
                "the use of a login could not be recorded; it may expire sooner: %s", error
            )

    async def _forged(self, connection: HTTPConnection, caller: _Caller) -> bool:
        """Return whether another site may have made a browser send this request."""
        if caller.csrf is None:
            return False
        if connection.scope["type"] == "websocket":
            return not self._origin.is_same_origin(connection)
        if connection.scope["method"] in SAFE_METHODS:
            return False
        if not self._origin.is_same_origin(connection):
            return True
        return not await has_csrf_token(connection, caller.csrf)


def too_many(text: str, wait: float) -> HttpError:
    """Return a 429 error with ``Retry-After``; ``wait`` is in seconds."""
    seconds = max(1, ceil(wait))
    headers = {"Retry-After": str(seconds)}
    return HttpError(
        429,
        "too_many",
        _("{reason}; try again in {seconds} s", reason=text, seconds=seconds),
        headers,
    )
