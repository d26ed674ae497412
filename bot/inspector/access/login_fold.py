"""Fold logins, one-time logins and API tokens from the tape ``workspace:web``. Pure.

Rule 1: no secret is on the tape, only its SHA-256.
Rule 2: a one-time login is used once; a login that names a used or dropped one is ignored.
Rule 3: a login lasts 30 days from its last use, a one-time login ten minutes; setting the clock
    back prolongs neither.
Rule 4: their number is bounded, per user and in all; the least recently used are dropped first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, get_args

from bot.bus import Right
from bot.core.clock import format_time, parse_time
from bot.core.http.tokens import find_by_digest
from bot.tape.entries import TapeEntry, event

LOGIN_OFFERED, LOGIN_OPENED, LOGIN_USED, LOGIN_ENDED = (
    "login.offered",
    "login.opened",
    "login.used",
    "login.ended",
)
TOKEN_MADE, TOKEN_USED, TOKEN_ENDED = "token.made", "token.used", "token.ended"

ONE_TIME_LOGIN_LIFETIME = timedelta(minutes=10)
"""How long a login link or code is valid."""

LOGIN_LIFETIME = timedelta(days=30)
"""How long a login lasts from its last use."""

MOST_LOGINS = 50
"""Logins per user."""

ALL_LOGINS = 5_000
MAX_ONE_TIME_LOGINS_PER_VISITOR = 5
MAX_ONE_TIME_LOGINS = 500
RIGHTS: tuple[Right, ...] = get_args(Right)
MOST_TOKENS = 20
"""Tokens per person."""

ALL_TOKENS = 1_000
FIRST_RIGHTS: frozenset[Right] = frozenset({"chat", "site"})
"""Rights of tokens from before there were any."""


@dataclass(frozen=True, slots=True)
class OneTimeLogin:
    """A login link or code.

    Attributes:
        digest: SHA-256 of its secret, hexadecimal.
        visitor: Id of the user it logs in (``WebUser.id``).
        name: The user's display name.
        chat: Key of the user's private chat with the bot; empty if unknown.
        at: When it was made.
    """

    digest: str
    visitor: str
    name: str
    chat: str
    at: datetime

    def good(self, now: datetime) -> bool:
        """Return whether it is still valid."""
        return abs(now - self.at) < ONE_TIME_LOGIN_LIFETIME


@dataclass(frozen=True, slots=True)
class Login:
    """A login of one user in one browser.

    Attributes:
        entry: Id of its event on the tape; shown to people as its number.
        digest: SHA-256 of the cookie's value, hexadecimal.
        visitor: The user's id.
        name: The user's display name.
        at: When it began.
        used: When it was last used, to a day.
    """

    entry: int
    digest: str
    visitor: str
    name: str
    at: datetime
    used: datetime

    def good(self, now: datetime) -> bool:
        """Return whether it is still valid."""
        return abs(now - self.used) < LOGIN_LIFETIME


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token with which a program calls the site: what it may do for a person, and what it reads.

    Attributes:
        name: The program's name for the person; a person's tokens have different names.
        digest: SHA-256 of the token, hexadecimal.
        visitor: Id of the person; it is valid while they may use the bot.
        at: When it was made.
        rights: What it may do.
        own_sessions: Whether its conversations are sessions of its own, and the only ones that it
            reads; otherwise they are among the person's, and it reads all private ones of the person.
        used: When it was last used, to a day; None if it was not.
        program: What the program called itself then; empty if it did not say.
    """

    name: str
    digest: str
    visitor: str
    at: datetime
    rights: frozenset[Right] = FIRST_RIGHTS
    own_sessions: bool = False
    used: datetime | None = None
    program: str = ""

    @property
    def client(self) -> str:
        """As ``WebUser.client``."""
        return self.name if self.own_sessions else ""


@dataclass(slots=True)
class LoginFold:
    """The state of logins and tokens, folded from their tape.

    Attributes:
        one_time_logins: By digest, oldest first.
        logins: By digest, the least recently used first.
        tokens: By digest, oldest first.
    """

    one_time_logins: dict[str, OneTimeLogin] = field(default_factory=dict)
    logins: dict[str, Login] = field(default_factory=dict)
    tokens: dict[str, ApiToken] = field(default_factory=dict)
    _of: dict[str, dict[str, None]] = field(default_factory=dict)

    def one_time_login(self, digest: str, now: datetime) -> OneTimeLogin | None:
        """Return the valid one-time login of a digest, if there is one."""
        time_login = self.one_time_logins.get(digest)
        return time_login if time_login is not None and time_login.good(now) else None

    def login(self, digest: str, now: datetime) -> Login | None:
        """Return the valid login of a digest, if there is one."""
        found = self.logins.get(digest)
        return found if found is not None and found.good(now) else None

    def token(self, digest: str) -> ApiToken | None:
        """Return the token of a digest, if there is one and it was not revoked."""
        return find_by_digest(self.tokens.items(), digest)

    def named_token(self, visitor: str, name: str) -> ApiToken | None:
        """Return a person's token of a name, if there is one."""
        found = (one for one in self.tokens.values() if (one.visitor, one.name) == (visitor, name))
        return next(found, None)

    def logins_of(self, visitor: str, now: datetime) -> list[Login]:
        """Return a user's valid logins, the most recently used first."""
        mine = [self.logins[digest] for digest in self._of.get(visitor, ())]
        return [other for other in reversed(mine) if other.good(now)]

    # Folding.

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; ignore entries of an unknown form."""
        if entry.kind != "event":
            return
        data = entry.data
        if entry.name == LOGIN_ENDED:
            self._ended(data)
        elif entry.name == TOKEN_ENDED:
            self._end_tokens(_text(data, "name"), data.get("as"))
        elif (at := parse_time(data.get("at"))) is None:
            return
        elif entry.name == LOGIN_OFFERED:
            self._offered(data, at)
        elif entry.name == LOGIN_OPENED:
            self._opened(entry.id, data, at)
        elif entry.name == LOGIN_USED:
            self._used(_text(data, "digest"), at)
        elif entry.name == TOKEN_USED and (token := self.tokens.get(_text(data, "digest"))):
            program = _text(data, "program") or token.program
            self.tokens[token.digest] = replace(token, used=at, program=program)
        elif entry.name == TOKEN_MADE and len(self.tokens) < ALL_TOKENS:
            self._made(data, at)

    def _made(self, data: dict[str, Any], at: datetime) -> None:
        name, visitor, digest = (_text(data, key) for key in ("name", "as", "digest"))
        if self.named_token(visitor, name) is None:
            given = data.get("rights")
            rights = (
                frozenset(right for right in RIGHTS if right in given) if given else FIRST_RIGHTS
            )
            if own := data.get("own_sessions") is True:
                # The site's API shows all sessions.
                rights -= {"site"}
            self.tokens[digest] = ApiToken(name, digest, visitor, at, rights, own)

    def _end_tokens(self, name: str, visitor: object) -> None:
        """End a person's token; one that was ended before names were a person's has no person."""
        for token in list(self.tokens.values()):
            if token.name == name and visitor in (None, token.visitor):
                del self.tokens[token.digest]

    def _offered(self, data: dict[str, Any], at: datetime) -> None:
        digest, visitor = _text(data, "digest"), _text(data, "as")
        made = OneTimeLogin(digest, visitor, _text(data, "name"), _text(data, "chat"), at)
        self.one_time_logins[digest] = made
        theirs = [
            time_login
            for time_login in self.one_time_logins.values()
            if time_login.visitor == visitor
        ]
        for other in theirs[:-MAX_ONE_TIME_LOGINS_PER_VISITOR]:
            del self.one_time_logins[other.digest]
        while len(self.one_time_logins) > MAX_ONE_TIME_LOGINS:
            del self.one_time_logins[next(iter(self.one_time_logins))]

    def _opened(self, entry: int, data: dict[str, Any], at: datetime) -> None:
        offer = data.get("offer")
        if offer is not None and self.one_time_logins.pop(str(offer), None) is None:
            return
        digest, visitor = _text(data, "digest"), _text(data, "as")
        self._forget(digest)
        self.logins[digest] = Login(entry, digest, visitor, _text(data, "name"), at, at)
        mine = self._of.setdefault(visitor, {})
        mine[digest] = None
        over = [one for one in mine if not self.logins[one].good(at)]
        for one in (*over, *list(mine)[: max(0, len(mine) - MOST_LOGINS)]):
            self._forget(one)
        while len(self.logins) > ALL_LOGINS:
            self._forget(next(iter(self.logins)))

    def _used(self, digest: str, at: datetime) -> None:
        known = self.logins.pop(digest, None)
        if known is not None:
            self.logins[digest] = replace(known, used=at)
            mine = self._of[known.visitor]
            del mine[digest]
            mine[digest] = None

    def _ended(self, data: dict[str, Any]) -> None:
        who = data.get("as")
        ended = list(self._of.get(who, ())) if isinstance(who, str) else [_text(data, "digest")]
        for digest in ended:
            self._forget(digest)
        withdrawn = data.get("offers")
        for digest in [
            time_login.digest
            for time_login in self.one_time_logins.values()
            if time_login.visitor == withdrawn
        ]:
            del self.one_time_logins[digest]

    def _forget(self, digest: str) -> None:
        known = self.logins.pop(digest, None)
        if known is not None:
            mine = self._of[known.visitor]
            mine.pop(digest, None)
            if not mine:
                del self._of[known.visitor]


def login_entry(event_name: str, now: datetime, /, **data: Any) -> TapeEntry:
    """Return an event entry with the data ``{..., at}``."""
    return event(event_name, {**data, "at": format_time(now)})


def _text(data: dict[str, Any], key: str) -> str:
    return str(data.get(key) or "")
