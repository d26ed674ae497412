"""Authenticate requests by login cookie or API token, and count them against rate limits.

Rule 1: a login proves identity only; the role is looked up again for every request.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil

from starlette.requests import HTTPConnection

from bot.bus import AccessRequest, Authorizer, Grant, Right, Role, Sender, WebUser
from bot.core.clock import Clock
from bot.core.errors import HttpError, TapebotError
from bot.core.http.tokens import bearer_token
from bot.core.i18n import N_, _, accepted_languages
from bot.inspector.access.identities import LOCAL, channel_address
from bot.inspector.access.login_fold import ApiToken, Login
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
_NO_RIGHT = N_("this token lacks the right `{right}`; it has: {rights}")
_FORGED = N_(
    "this request does not come from a page of this site; open the page again and retry there"
)


@dataclass(frozen=True, slots=True)
class _Caller:
    """An authenticated caller, before the check for forgery; ``token`` is None for a login."""

    visitor: WebUser
    csrf: str | None
    token: ApiToken | None = None


class Authenticator:
    """Authenticate requests. Routes use it through ``bot.inspector.dependencies``."""

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
        if caller.token is not None and "site" not in caller.token.rights:
            return None
        connection.state.csrf = caller.csrf or ""
        return caller.visitor

    async def authenticate(self, connection: HTTPConnection, right: Right = "site") -> WebUser:
        """Return the caller, count the request, and set ``state.csrf`` on the connection.

        Raises:
            HttpError: 401 if nobody is logged in, 403 if the request may be forged or the token
                lacks the right, 429 if there are too many requests.
            TapebotError: Access cannot be determined at the moment.
        """
        caller = await self._authenticated(connection)
        if caller.token is not None and right not in caller.token.rights:
            has = ", ".join(sorted(caller.token.rights))
            raise HttpError(403, "no_right", _(_NO_RIGHT, right=right, rights=has))
        return caller.visitor

    async def token(self, connection: HTTPConnection) -> tuple[WebUser, ApiToken]:
        """Return the person and the token of a request that only programs send; count the request.

        Raises:
            HttpError: 401 without a valid token, 429 if there are too many requests.
            TapebotError: Access cannot be determined at the moment.
        """
        caller = await self._authenticated(connection)
        if caller.token is None:
            raise _not_logged_in(_(_NOBODY))
        return caller.visitor, caller.token

    async def token_of(self, secret: str) -> tuple[WebUser, ApiToken] | None:
        """Return the person and the token of a secret; None if it is not valid.

        Raises:
            TapebotError: Access cannot be determined at the moment.
        """
        caller = await self._by_token(secret)
        return None if caller is None or caller.token is None else (caller.visitor, caller.token)

    async def _authenticated(self, connection: HTTPConnection) -> _Caller:
        caller = await self._caller(connection)
        if caller is None:
            by_token = bearer_token(connection.headers) is not None
            raise _not_logged_in(_(_WRONG_TOKEN if by_token else _NOBODY))
        if await self._forged(connection, caller):
            raise HttpError(403, "forged", _(_FORGED))
        changes = connection.scope.get("method", "GET") not in SAFE_METHODS
        wait = self._rates.take(caller.visitor.id, self._clock.monotonic(), changes=changes)
        if wait:
            raise too_many(_("too many requests within a minute"), wait)
        connection.state.csrf = caller.csrf or ""
        return caller

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
        role = None if token is None else await self.role(token.visitor, token.name)
        if token is None or role is None:
            return None
        if role != "owner":
            token = replace(token, rights=token.rights - {"site"})
            if not token.rights:
                return None
        try:
            await self._login_store.touch_token(token)
        except TapebotError as error:
            logger.warning("the use of the token %s could not be recorded: %s", token.name, error)
        grant = Grant(token.rights, token.own_sessions)
        user = WebUser(token.visitor, token.name, role, client=token.client, grant=grant)
        return _Caller(user, None, token)

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


def _not_logged_in(text: str) -> HttpError:
    return HttpError(401, "not_logged_in", text, {"WWW-Authenticate": "Bearer"})


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
