"""How somebody comes to be logged in.

Rule 1: a link or a code is used up by a form that is sent, and not by an address that is looked at: programs
    that show what a link leads to look at it before the person does.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from bot.agent.commands.login import LoginCode
from bot.bus import Access, Visitor
from bot.bus.access.codes import CLAIM, is_code, new_code
from bot.core.clock import Clock
from bot.core.errors import Refusal, TapebotError
from bot.inspector.access.book import Offer
from bot.inspector.access.callers import Callers, too_many
from bot.inspector.access.entrance import Entrance, csrf_of
from bot.inspector.access.identities import address_of, visitor_of
from bot.inspector.access.joining import join
from bot.inspector.access.ledger import Ledger, digest_of
from bot.inspector.access.rates import WrongCodes
from bot.memory.scopes import Scopes
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

GONE = (
    "This link or code is not good any more: each is good once, and for ten minutes. Send /login to the bot "
    "in a private chat for a new code, or run tapebot web link where the bot runs."
)
STRANGER = "You may not use this bot any more. Ask one of its owners to let you in."


@dataclass(frozen=True, slots=True)
class Opened:
    """A login as it begins.

    Attributes:
        secret: The cookie's value.
        csrf: What its requests bring in ``X-CSRF-Token`` where they change something.
        visitor: Who it is.
    """

    secret: str
    csrf: str
    visitor: Visitor


class Logins:
    """Links, codes, and the logins that they open.

    Args:
        store: Where the tape of logins lives; it is made by the first login.
        access: The door.
        clock: Dates logins.
        url: The address that people use.
        scopes: Whose memory a visitor's is joined with; None for nobody's.

    Attributes:
        ledger: Keeps them.
        entrance: What requests must bring.
        callers: Who is logged in on a request.
        cookie: Name of the cookie.
    """

    def __init__(
        self, store: TapeStore, access: Access, clock: Clock, url: str, scopes: Scopes | None = None
    ) -> None:
        self.ledger = Ledger(store, clock)
        self.entrance = Entrance(url)
        self.callers = Callers(self.ledger, self.entrance, access, clock)
        self.cookie = self.entrance.cookie
        self._clock = clock
        self._scopes = scopes
        self._wrong = WrongCodes()

    async def offer_link(self, visitor: str, name: str) -> str:
        """Return an address that logs somebody in, once, within ten minutes.

        Its secret stands behind ``#``: browsers send that to nobody, and it is in no log.

        Args:
            visitor: Their id (``Visitor.id``).
            name: As shown.

        Raises:
            TapeWriteError: The storage refused.
        """
        secret = secrets.token_urlsafe(32)
        await self.ledger.offer(secret, visitor, name, "")
        return f"{self.entrance.url}/enter#{secret}"

    async def offer_code(self, channel: str, sender: str, name: str, chat: str) -> LoginCode | None:
        """Return a code that logs somebody in who asked for it on a channel; None where it cannot.

        Args:
            channel: The channel.
            sender: Its id of them.
            name: As shown.
            chat: Key of their private chat there.

        Raises:
            TapeWriteError: The storage refused.
        """
        visitor = visitor_of(channel, sender)
        if visitor is None:
            return None
        code = new_code(CLAIM)
        own = address_of(visitor)
        known = chat if own is not None and own.channel == channel else ""
        await self.ledger.offer(_plain(code), visitor, name, known)
        return LoginCode(code, f"{self.entrance.url}/login")

    async def enter_by_code(self, code: str) -> Opened:
        """Log in whoever was given a code.

        Raises:
            Refusal: 403 where it is not good, or they may not use the bot; 429 where many were wrong.
        """
        if is_code(code, CLAIM) and (opened := await self._redeem(_plain(code))) is not None:
            return opened
        wait = self._wrong.wait(self._clock.monotonic())
        if wait:
            raise too_many("too many codes were wrong; the right one is taken all the same", wait)
        self._wrong.note(self._clock.monotonic())
        logger.info("a wrong code was given at the login of the site")
        await self._clock.sleep(1)
        raise Refusal(403, "login_gone", GONE)

    async def enter_by_link(self, secret: str) -> Opened:
        """Log in whoever was given a link.

        Raises:
            Refusal: 403 where it is not good, or they may not use the bot.
        """
        opened = await self._redeem(secret)
        if opened is None:
            raise Refusal(403, "login_gone", GONE)
        return opened

    async def _redeem(self, secret: str) -> Opened | None:
        offer = await self.ledger.offered(secret)
        if offer is None:
            return None
        opened = await self._open(offer.visitor, offer.name, offer)
        if opened is not None:
            await self._join(offer)
        return opened

    async def open(self, visitor: str, name: str) -> Opened:
        """Log somebody in who is known to be that person.

        Raises:
            Refusal: 403 where they may not use the bot.
            TapeWriteError: The storage refused.
        """
        opened = await self._open(visitor, name, None)
        assert opened is not None
        return opened

    async def _open(self, visitor: str, name: str, offer: Offer | None) -> Opened | None:
        """Open a login; None where the offer was used meanwhile."""
        role = await self.callers.role(visitor, name)
        if role is None:
            raise Refusal(403, "stranger", STRANGER)
        secret = await self.ledger.open(visitor, name, offer)
        if secret is None:
            return None
        logger.info("%s logged in at the site", visitor)
        return Opened(secret, csrf_of(secret), Visitor(visitor, name, role))

    async def _join(self, offer: Offer) -> None:
        if self._scopes is None:
            return
        who, name, key = offer.visitor, offer.name, f"web-login-{offer.digest[:16]}"
        try:
            await join(self._scopes, self._clock, who, name, chat=offer.chat, key=key)
        except TapebotError as error:
            # They are logged in all the same; the next login joins.
            logger.warning("the memory of %s could not be joined with the site's: %s", who, error)

    async def close(self, connection: HTTPConnection) -> None:
        """End the login that a connection has, if any.

        Raises:
            TapeWriteError: The storage refused.
        """
        secret = self.entrance.secret(connection)
        if secret is not None:
            digest = digest_of(secret)
            await self.ledger.end(lambda one: one.digest == digest)


def _plain(code: str) -> str:
    return "".join(sign for sign in code.upper() if sign.isalnum())
