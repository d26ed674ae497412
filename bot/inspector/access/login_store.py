"""Create, read and end logins and API tokens on the tape ``workspace:web``.

Each step is a compare-and-set: several processes may write, and what one of them ends is ended in
all of them with the next request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import TypeVar

from bot.bus import Right
from bot.bus.access.access_list import safe_name
from bot.core.clock import Clock
from bot.core.errors import HttpError
from bot.core.http.tokens import new_token, token_digest
from bot.core.i18n import _, ngettext
from bot.core.patterns import LazyPattern
from bot.inspector.access.login_fold import (
    ALL_TOKENS,
    LOGIN_ENDED,
    LOGIN_OFFERED,
    LOGIN_OPENED,
    LOGIN_USED,
    MOST_TOKENS,
    RIGHTS,
    TOKEN_ENDED,
    TOKEN_MADE,
    TOKEN_USED,
    ApiToken,
    Login,
    LoginFold,
    OneTimeLogin,
    login_entry,
)
from bot.memory.session.scope.identities import LOGINS_TAPE
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

_TOKEN = "tapebot_"  # noqa: S105 (what tokens begin with)
_TOKEN_NAME = LazyPattern(r"\w[\w .@-]{0,63}")
_DAY = timedelta(days=1)

T = TypeVar("T")


class LoginStore:
    """Store logins, one-time logins and API tokens on a tape."""

    def __init__(self, store: TapeStore, clock: Clock) -> None:
        self._tape = WorkspaceTape(store, LOGINS_TAPE, LoginFold())
        self._clock = clock

    @property
    def fold(self) -> LoginFold:
        """The state as of the last entry read."""
        return self._tape.fold

    async def refresh(self) -> LoginFold:
        """Read new entries of the tape, and return the fold."""
        await self._tape.refresh()
        return self.fold

    # Logins.

    async def add_one_time_login(self, secret: str, visitor: str, name: str, chat: str) -> None:
        """Record a login link or code.

        Raises:
            TapeWriteError: The store refused the write.
        """
        told = {
            "digest": token_digest(secret),
            "as": visitor,
            "name": safe_name(name),
            "chat": chat,
        }
        await self._tape.change(
            lambda: ([login_entry(LOGIN_OFFERED, self._clock.now(), **told)], None)
        )

    async def find_one_time_login(self, secret: str) -> OneTimeLogin | None:
        """Return the valid one-time login of a secret; None without one."""
        return (await self.refresh()).one_time_login(token_digest(secret), self._clock.now())

    async def create_login(
        self, visitor: str, name: str, offer: OneTimeLogin | None = None
    ) -> str | None:
        """Log a user in; return the cookie's value.

        Returns None if the given one-time login is no longer valid.

        Raises:
            TapeWriteError: The store refused the write.
        """
        secret = new_token()
        by = None if offer is None else offer.digest
        told = {"digest": token_digest(secret), "as": visitor, "name": safe_name(name), "offer": by}

        def compose() -> tuple[list[TapeEntry], bool]:
            now = self._clock.now()
            if by is not None and self.fold.one_time_login(by, now) is None:
                return [], False
            return [login_entry(LOGIN_OPENED, now, **told)], True

        return secret if await self._tape.change(compose) else None

    async def login(self, secret: str) -> Login | None:
        """Return the valid login of a cookie's value; None if there is none."""
        return (await self.refresh()).login(token_digest(secret), self._clock.now())

    async def touch(self, login: Login) -> None:
        """Record that a login is in use.

        Raises:
            TapeWriteError: The store refused the write; the login only ends sooner.
        """

        def compose() -> tuple[list[TapeEntry], None]:
            return [login_entry(LOGIN_USED, self._clock.now(), digest=login.digest)], None

        await self._tape.change(compose)

    async def end_logins(self, wanted: Callable[[Login], bool], *, offers: str = "") -> int:
        """End logins, and return how many there were.

        Raises:
            TapeWriteError: The store refused the write.
        """

        def compose() -> tuple[list[TapeEntry], int]:
            ended = [other for other in self.fold.logins.values() if wanted(other)]
            now = self._clock.now()
            entries = [login_entry(LOGIN_ENDED, now, digest=other.digest) for other in ended]
            if any(
                time_login.visitor == offers for time_login in self.fold.one_time_logins.values()
            ):
                entries.append(login_entry(LOGIN_ENDED, now, offers=offers))
            return entries, len(ended)

        return await self._tape.change(compose)

    async def logins_of(self, visitor: str) -> list[Login]:
        """Return a user's logins, the most recently used first."""
        return (await self.refresh()).logins_of(visitor, self._clock.now())

    # Tokens.

    async def make_token(
        self,
        visitor: str,
        name: str,
        rights: Collection[Right] = RIGHTS,
        *,
        own_sessions: bool = False,
    ) -> str:
        """Create an API token and return it; only its digest is stored.

        Raises:
            HttpError: 422 if the name is invalid or taken, or there is no right; 409 if there are
                too many tokens.
            TapeWriteError: The store refused the write.
        """
        name = " ".join(name.split())
        if not _TOKEN_NAME.fullmatch(name):
            raise HttpError(422, "wrong_name", _("a token's name is 1 to 64 letters and digits"))
        given = [right for right in RIGHTS if right in rights]
        if not given:
            detail = _("a token needs one right at least: {rights}", rights=", ".join(RIGHTS))
            raise HttpError(422, "no_right", detail)
        secret = new_token(_TOKEN)
        told = {
            "name": name,
            "digest": token_digest(secret),
            "as": visitor,
            "rights": given,
            "own_sessions": own_sessions,
        }

        def compose() -> tuple[list[TapeEntry], None]:
            if self.fold.named_token(visitor, name) is not None:
                detail = _(
                    "there is already a token {name}; end it, or choose another name", name=name
                )
                raise HttpError(422, "taken", detail)
            theirs = sum(one.visitor == visitor for one in self.fold.tokens.values())
            if theirs >= MOST_TOKENS or len(self.fold.tokens) >= ALL_TOKENS:
                detail = ngettext(
                    "there is {n} token already; end some first",
                    "there are {n} tokens already; end some first",
                    theirs,
                )
                raise HttpError(409, "full", detail)
            return [login_entry(TOKEN_MADE, self._clock.now(), **told)], None

        await self._tape.change(compose)
        return secret

    async def end_token(self, visitor: str, name: str) -> bool:
        """Revoke a person's token at once; return whether there was one of this name.

        Raises:
            TapeWriteError: The store refused the write.
        """

        def compose() -> tuple[list[TapeEntry], bool]:
            known = self.fold.named_token(visitor, name) is not None
            told = {"name": name, "as": visitor}
            ended = [login_entry(TOKEN_ENDED, self._clock.now(), **told)] if known else []
            return ended, known

        return await self._tape.change(compose)

    async def token(self, secret: str) -> ApiToken | None:
        """Return the token with this secret; None if there is none."""
        return (await self.refresh()).token(token_digest(secret))

    async def touch_token(self, token: ApiToken, program: str = "") -> None:
        """Record that a token is in use: once a day, and when another program uses it.

        Raises:
            TapeWriteError: The store refused the write.
        """
        now = self._clock.now()
        known = program in ("", token.program)
        if token.used is None or abs(now - token.used) >= _DAY or not known:
            told = {"digest": token.digest} | ({"program": program} if program else {})
            used = login_entry(TOKEN_USED, now, **told)
            await self._tape.change(lambda: ([used], None))

    async def tokens(self) -> list[ApiToken]:
        """Return all tokens, oldest first."""
        return list((await self.refresh()).tokens.values())
