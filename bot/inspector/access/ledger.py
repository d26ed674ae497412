"""The book of logins and the only way to write in it.

Each step is a compare-and-set on the tape ``workspace:web``: several processes may write, and what one of them
ended is ended in all with the next request.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

import anyio

from bot.bus.access.roster import shown_name
from bot.core.clock import Clock
from bot.core.errors import Refusal, TapeNotFound
from bot.inspector.access.book import (
    ENDED,
    MOST_TOKENS,
    OFFERED,
    OPENED,
    TOKEN_ENDED,
    TOKEN_MADE,
    USED,
    Login,
    LoginBook,
    Offer,
    Token,
    login_entry,
)
from bot.memory.catching_up import catch_up, write_fresh
from bot.memory.people import LOGINS
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_TOKEN = "tapebot_"  # noqa: S105 (what tokens begin with)
_TOKEN_NAME = re.compile(r"\w[\w .@-]{0,63}")

T = TypeVar("T")


class Ledger:
    """Logins, offers and tokens.

    Args:
        store: Where the tape lives; it is made by the first entry.
        clock: Dates what happens.

    Attributes:
        book: As far as the tape was read.
    """

    def __init__(self, store: TapeStore, clock: Clock) -> None:
        self.book = LoginBook()
        self._tape = TapeService(store, LOGINS)
        self._tape.observe(self.book.apply)
        self._clock = clock
        self._opening = anyio.Lock()

    async def look(self) -> LoginBook:
        """Return the book with what is new on the tape."""
        async with self._opening:
            try:
                if await self._tape.store.version(LOGINS) != self.book.version:
                    await catch_up(self._tape, self.book)
            except TapeNotFound:
                pass
        return self.book

    # Logins.

    async def offer(self, secret: str, visitor: str, name: str, chat: str) -> None:
        """Note a link or a code that somebody was given.

        Raises:
            TapeWriteError: The storage refused.
        """
        told = {"digest": digest_of(secret), "as": visitor, "name": shown_name(name), "chat": chat}
        await self._write(lambda: ([login_entry(OFFERED, self._clock.now(), **told)], None))

    async def offered(self, secret: str) -> Offer | None:
        """Return the offer of a secret; None where there is none that may be used."""
        return (await self.look()).offer(digest_of(secret), self._clock.now())

    async def open(self, visitor: str, name: str, offer: Offer | None = None) -> str | None:
        """Log somebody in; return the cookie's value, None where the offer was used meanwhile.

        Raises:
            TapeWriteError: The storage refused.
        """
        secret = secrets.token_urlsafe(32)
        by = None if offer is None else offer.digest
        told = {"digest": digest_of(secret), "as": visitor, "name": shown_name(name), "offer": by}

        def compose() -> tuple[list[TapeEntry], bool]:
            now = self._clock.now()
            if by is not None and self.book.offer(by, now) is None:
                return [], False
            return [login_entry(OPENED, now, **told)], True

        return secret if await self._write(compose) else None

    async def login(self, secret: str) -> Login | None:
        """Return the login of a cookie's value; None where there is none that holds."""
        return (await self.look()).login(digest_of(secret), self._clock.now())

    async def touch(self, login: Login) -> None:
        """Note that a login is in use.

        Raises:
            TapeWriteError: The storage refused; it only ends sooner.
        """

        def compose() -> tuple[list[TapeEntry], None]:
            return [login_entry(USED, self._clock.now(), digest=login.digest)], None

        await self._write(compose)

    async def end(self, wanted: Callable[[Login], bool], *, offers: str = "") -> int:
        """End logins; return how many there were.

        Args:
            wanted: Says which.
            offers: A visitor whose links and codes that were not used yet end, too.

        Raises:
            TapeWriteError: The storage refused.
        """

        def compose() -> tuple[list[TapeEntry], int]:
            ended = [one for one in self.book.logins.values() if wanted(one)]
            now = self._clock.now()
            made = [login_entry(ENDED, now, digest=one.digest) for one in ended]
            if any(one.visitor == offers for one in self.book.offers.values()):
                made.append(login_entry(ENDED, now, offers=offers))
            return made, len(ended)

        return await self._write(compose)

    async def logins_of(self, visitor: str) -> list[Login]:
        """Return a visitor's logins, the latest used first."""
        return (await self.look()).logins_of(visitor, self._clock.now())

    # Tokens.

    async def make_token(self, visitor: str, name: str) -> str:
        """Return a token for programs; it is kept nowhere.

        Args:
            visitor: Whose; it is good for as long as they own the bot.
            name: What they call it.

        Raises:
            Refusal: 422 where the name is none or is taken, 409 where there are too many.
            TapeWriteError: The storage refused.
        """
        name = name.strip()
        if not _TOKEN_NAME.fullmatch(name):
            raise Refusal(422, "wrong_name", "a token's name is 1 to 64 letters and digits")
        secret = _TOKEN + secrets.token_urlsafe(32)
        told = {"name": name, "digest": digest_of(secret), "as": visitor}

        def compose() -> tuple[list[TapeEntry], None]:
            if name in self.book.tokens:
                detail = f"there is a token {name} already; end it, or take another name"
                raise Refusal(422, "taken", detail)
            if len(self.book.tokens) >= MOST_TOKENS:
                raise Refusal(
                    409, "full", f"there are {MOST_TOKENS} tokens already; end some first"
                )
            return [login_entry(TOKEN_MADE, self._clock.now(), **told)], None

        await self._write(compose)
        return secret

    async def end_token(self, name: str) -> bool:
        """Take a token back, at once; say whether there was one of this name.

        Raises:
            TapeWriteError: The storage refused.
        """

        def compose() -> tuple[list[TapeEntry], bool]:
            known = name in self.book.tokens
            ended = [login_entry(TOKEN_ENDED, self._clock.now(), name=name)] if known else []
            return ended, known

        return await self._write(compose)

    async def token(self, secret: str) -> Token | None:
        """Return the token that this is; None where there is none."""
        return (await self.look()).token(digest_of(secret))

    async def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""
        return list((await self.look()).tokens.values())

    async def _write(self, compose: Callable[[], tuple[list[TapeEntry], T]]) -> T:
        await self._tape.store.create_tape(LOGINS)
        await self.look()

        async def reopen() -> None:
            await self.look()

        return await write_fresh(self._tape, self.book, lambda _: compose(), reopen)


def digest_of(secret: str) -> str:
    """Return what is kept of a secret: its SHA-256, hexadecimal."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
