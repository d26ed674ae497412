"""Log users in by link, code or known identity, and join their memory across channels.

Rule 1: a link or code is redeemed by submitting a form, never by opening a URL: programs that make
    link previews open it before the person does.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from hashlib import sha256

from starlette.requests import HTTPConnection

from bot.agent.commands.login import LoginCode
from bot.bus import WEB_CHANNEL, Authorizer, WebUser
from bot.bus.access.access_list import safe_name
from bot.bus.access.codes import CLAIM_CODE_LENGTH, is_code, new_code
from bot.core.clock import Clock
from bot.core.errors import HttpError, TapebotError
from bot.core.http.tokens import new_token, token_digest
from bot.core.i18n import N_, _
from bot.inspector.access.authentication import Authenticator, too_many
from bot.inspector.access.identities import channel_address, visitor_id
from bot.inspector.access.login_fold import OneTimeLogin
from bot.inspector.access.login_store import LoginStore
from bot.inspector.access.origin import SiteOrigin, csrf_token
from bot.inspector.access.rate_limits import WrongCodes
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.identities import LinkClaim, LinkParty
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

INVALID_LOGIN = N_(
    "This link or code is no longer valid: each works once and expires after ten minutes. For a "
    "new one, send /login to the bot in a private chat, or run tapebot web link on the bot's "
    "machine."
)
NOT_ALLOWED = N_("You may no longer use this bot. Ask one of its owners for access.")


@dataclass(frozen=True, slots=True)
class NewLogin:
    """A login that was just created.

    Attributes:
        secret: The cookie's value.
        csrf: The CSRF token, sent in ``X-CSRF-Token`` with requests that change something.
        visitor: The user.
    """

    secret: str
    csrf: str
    visitor: WebUser


class LoginService:
    """Create login links and codes, and the logins that they open.

    Attributes:
        login_store: Stores logins and tokens.
        origin: Checks hosts and origins, and reads and sets cookies.
        authenticator: Authenticates requests.
        cookie: Name of the login cookie.
    """

    def __init__(
        self,
        store: TapeStore,
        access: Authorizer,
        clock: Clock,
        url: str,
        scopes: ScopeRegistry | None = None,
    ) -> None:
        self.login_store = LoginStore(store, clock)
        self.origin = SiteOrigin(url)
        self.authenticator = Authenticator(self.login_store, self.origin, access, clock)
        self.cookie = self.origin.cookie
        self._clock = clock
        self._scopes = scopes
        self._wrong = WrongCodes()

    async def create_login_link(self, visitor: str, name: str) -> str:
        """Return a URL that logs a user in, once, within ten minutes.

        The secret is in the URL's fragment: browsers do not send that, so it is in no log.

        Raises:
            TapeWriteError: The store refused the write.
        """
        secret = new_token()
        await self.login_store.add_one_time_login(secret, visitor, name, "")
        return f"{self.origin.url}/enter#{secret}"

    async def create_login_code(
        self, channel: str, sender: str, name: str, chat: str
    ) -> LoginCode | None:
        """Return a login code for a sender on another channel; None if they cannot have a login.

        Raises:
            TapeWriteError: The store refused the write.
        """
        visitor = visitor_id(channel, sender)
        if visitor is None:
            return None
        code = new_code(CLAIM_CODE_LENGTH)
        own = channel_address(visitor)
        known = chat if own is not None and own.channel == channel else ""
        await self.login_store.add_one_time_login(_plain(code), visitor, name, known)
        return LoginCode(code, f"{self.origin.url}/login")

    async def log_in_with_code(self, code: str) -> NewLogin:
        """Redeem a login code.

        Raises:
            HttpError: 403 if the code is not valid or the user has no access; 429 after many wrong
                codes.
        """
        if (
            is_code(code, CLAIM_CODE_LENGTH)
            and (opened := await self._redeem(_plain(code))) is not None
        ):
            return opened
        wait = self._wrong.wait(self._clock.monotonic())
        if wait:
            raise too_many(_("too many wrong codes; the right code still works"), wait)
        self._wrong.note(self._clock.monotonic())
        logger.info("a wrong code was entered at the site's login")
        await self._clock.sleep(1)
        raise HttpError(403, "login_gone", _(INVALID_LOGIN))

    async def log_in_with_link(self, secret: str) -> NewLogin:
        """Redeem the secret of a login link.

        Raises:
            HttpError: 403 if the secret is not valid or the user has no access.
        """
        opened = await self._redeem(secret)
        if opened is None:
            raise HttpError(403, "login_gone", _(INVALID_LOGIN))
        return opened

    async def _redeem(self, secret: str) -> NewLogin | None:
        offer = await self.login_store.find_one_time_login(secret)
        if offer is None:
            return None
        opened = await self._open(offer.visitor, offer.name, offer)
        if opened is not None:
            await self._join(offer)
        return opened

    async def log_in(self, visitor: str, name: str) -> NewLogin:
        """Log in a user whose identity is already proven.

        Raises:
            HttpError: 403 if the user has no access.
            TapeWriteError: The store refused the write.
        """
        opened = await self._open(visitor, name, None)
        assert opened is not None
        return opened

    async def _open(self, visitor: str, name: str, offer: OneTimeLogin | None) -> NewLogin | None:
        """Create a login; return None if the one-time login was used meanwhile."""
        role = await self.authenticator.role(visitor, name)
        if role is None:
            raise HttpError(403, "stranger", _(NOT_ALLOWED))
        secret = await self.login_store.create_login(visitor, name, offer)
        if secret is None:
            return None
        logger.info("%s logged in to the site", visitor)
        return NewLogin(secret, csrf_token(secret), WebUser(visitor, name, role))

    async def _join(self, offer: OneTimeLogin) -> None:
        if self._scopes is None:
            return
        who, name, key = offer.visitor, offer.name, f"web-login-{offer.digest[:16]}"
        try:
            await link_identity(self._scopes, self._clock, who, name, chat=offer.chat, key=key)
        except TapebotError as error:
            # The login stands; the next one links the identities.
            logger.warning("the memory of %s could not be linked with the site's: %s", who, error)

    async def close(self, connection: HTTPConnection) -> None:
        """End the login of a connection, if it has one.

        Raises:
            TapeWriteError: The store refused the write.
        """
        secret = self.origin.login_cookie(connection)
        if secret is not None:
            digest = token_digest(secret)
            await self.login_store.end_logins(lambda login: login.digest == digest)


def _plain(code: str) -> str:
    return "".join(sign for sign in code.upper() if sign.isalnum())


async def link_identity(
    scopes: ScopeRegistry,
    clock: Clock,
    visitor: str,
    name: str,
    *,
    chat: str,
    key: str,
    channel: str = WEB_CHANNEL,
) -> bool:
    """Link a web user with their own channel's identity on first sight; return whether it was done.

    Identities that were unlinked stay apart. A link that is in progress is left alone; the next
    login tries again.

    Raises:
        TapeError: The store refused the write; what was decided is carried out later.
    """
    address = channel_address(visitor)
    if address is None:
        return False
    linking, identity, own = scopes.identity_linker, address.session, f"{channel}:{visitor}"
    await linking.open()
    people = linking.people
    offered = people.offers.get(identity)
    under_way = linking.find_waiting_claim(identity) is not None or (
        offered is not None and offered.is_valid(clock.now())
    )
    if people.was_linked(own) or people.link_refusal(identity, own) is not None or under_way:
        return False
    shown, digest = safe_name(name), sha256(secrets.token_bytes(32)).hexdigest()
    theirs = LinkParty(identity, shown, chat or people.last_seen(identity).session)
    await linking.offer(theirs, digest)
    claim = await linking.claim(LinkParty(own, shown, own), digest, key)
    if not isinstance(claim, LinkClaim):
        return False
    move = await linking.confirm(identity, claim.entry, key)
    if move is not None:
        await scopes.apply_move(move)
    return move is not None
