"""Who is let in, as state and decisions. Pure.

Rule 1: nobody is let in whom neither the settings nor the roster names.
Rule 2: a person is a platform and an id there; names are shown and never compared.
Rule 3: a code is good for ten minutes, for whom it was made, and only an owner can use it.
Rule 4: what strangers can make grow is bounded: requests in all, and codes for each of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from bot.bus import AccessRequest, Address, Role
from bot.bus.access.codes import same_code

PAIRING_CODE_LIFETIME = timedelta(minutes=10)
"""How long a pairing code is good."""

CODE_RESEND_INTERVAL = timedelta(minutes=1)
"""A code is told to the same person again after that long: the first reply may be lost."""

MOST_PENDING = 20
"""Codes that may be good at once."""

MOST_CODES = 3
"""Codes that one person may get in an hour."""

_HOUR = timedelta(hours=1)
_ID = re.compile(r"-?[\w.-]{1,64}")
_PLATFORM = re.compile(r"[a-z][a-z0-9_]*")
_NAME = 64

RemovalResult = Literal["removed", "unknown", "owners", "allow", "last owner"]
"""What became of a removal; ``owners`` and ``allow``: the setting of this name has it."""


@dataclass(frozen=True, slots=True)
class AllowedPerson:
    """Somebody who was let in: ``telegram:42``, with the name shown when that was."""

    place: str
    role: Role
    name: str
    since: datetime


@dataclass(frozen=True, slots=True)
class AllowedChat:
    """A group chat or a server where everybody may use the bot."""

    place: str
    since: datetime


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """A stranger's request to be let in.

    Attributes:
        code: As it was told to them.
        person: Who, as ``telegram:42``.
        name: As shown.
        address: Their chat with the bot.
        since: When the code was made.
        told: When it was last told to them.
        approved: Kept for as long as the code is good, so that approving again is the same.
    """

    code: str
    person: str
    name: str
    address: Address
    since: datetime
    told: datetime
    approved: bool = False

    @property
    def expires(self) -> datetime:
        """When the code is no longer good."""
        return self.since + PAIRING_CODE_LIFETIME

    def good(self, now: datetime) -> bool:
        """Say whether the code may be used; a clock that was put back does not prolong it."""
        return abs(now - self.since) < PAIRING_CODE_LIFETIME


@dataclass(frozen=True, slots=True)
class ConfiguredAccess:
    """Whom the settings name: owners, and people, chats and servers that are allowed."""

    owners: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AccessList:
    """Whom pairing, the claim and ``/pair here`` let in, and who asks for it.

    Attributes:
        people: Owners and members.
        chats: Where everybody may.
        requests: Those of the last hour: they count towards what one person may ask.
    """

    people: tuple[AllowedPerson, ...] = ()
    chats: tuple[AllowedChat, ...] = ()
    requests: tuple[PairingRequest, ...] = ()

    def person(self, place: str) -> AllowedPerson | None:
        """Return somebody who was let in."""
        return next((one for one in self.people if one.place == place), None)

    def pending(self, now: datetime) -> list[PairingRequest]:
        """Return the requests that wait for an owner."""
        return [one for one in self.requests if one.good(now) and not one.approved]


def place_of(channel: str, identifier: str) -> str | None:
    """Return ``platform:id`` of a channel's person or chat; None where it is none.

    Channels of one platform (``telegram``, ``telegram-work``) know the same people.
    """
    platform = channel.partition("-")[0]
    if _PLATFORM.fullmatch(platform) and _ID.fullmatch(identifier):
        return f"{platform}:{identifier}"
    return None


def parse_place(text: str) -> str | None:
    """Return a person or chat as somebody wrote it; None where it is none."""
    channel, _, identifier = text.strip().partition(":")
    return place_of(channel.lower(), identifier)


def shown_name(name: str) -> str:
    """Return a stranger's name fit to stand in a list: one line, and nothing that steers."""
    plain = "".join(c for c in name if c.isprintable() and c != "`")
    return " ".join(plain.split())[:_NAME]


def has_owner(roster: AccessList, named: ConfiguredAccess, platform: str | None = None) -> bool:
    """Say whether the bot is owned; with a platform, by somebody there."""
    owners = [*named.owners, *(one.place for one in roster.people if one.role == "owner")]
    if platform is None:
        return bool(owners)
    return any(owner.partition(":")[0] == platform for owner in owners)


def role_of(roster: AccessList, named: ConfiguredAccess, knock: AccessRequest) -> Role | None:
    """Return what somebody may be here; None for a stranger."""
    who = place_of(knock.address.channel, knock.sender.id)
    if who is None:
        return None
    person = roster.person(who)
    if who in named.owners or (person is not None and person.role == "owner"):
        return "owner"
    if knock.private:
        return "member" if person is not None or who in named.allow else None
    allowed = named.allow | {chat.place for chat in roster.chats}
    ids = (*knock.places, knock.address.chat_id)
    here = (place_of(knock.address.channel, one) for one in ids)
    return "member" if any(place in allowed for place in here) else None


def add_request(
    roster: AccessList, knock: AccessRequest, now: datetime, code: str
) -> tuple[AccessList, PairingRequest | None]:
    """Take in a stranger's private message.

    Args:
        roster: The state.
        knock: The message.
        now: The time.
        code: A fresh one, to be used where the stranger gets one.

    Returns:
        The new state, and the request whose code the stranger is to be told; None for silence.
    """
    person = place_of(knock.address.channel, knock.sender.id)
    if person is None:
        return roster, None
    recent = tuple(one for one in roster.requests if abs(now - one.since) < _HOUR)
    own = [one for one in recent if one.person == person]
    open_one = next((one for one in own if one.good(now) and not one.approved), None)
    if open_one is not None:
        if abs(now - open_one.told) < CODE_RESEND_INTERVAL:
            return roster, None
        told = replace(open_one, told=now)
        kept = tuple(told if one is open_one else one for one in recent)
        return replace(roster, requests=kept), told
    if len(own) >= MOST_CODES or len(roster.pending(now)) >= MOST_PENDING:
        return roster, None
    fresh = PairingRequest(code, person, shown_name(knock.sender.name), knock.address, now, now)
    return replace(roster, requests=(*recent, fresh)), fresh


def approve(
    roster: AccessList, code: str, now: datetime
) -> tuple[AccessList, PairingRequest] | None:
    """Let in whom a code was made for; None where no good code is this one.

    Approving again changes nothing: a command may come twice where the program was killed.
    """
    # All are compared, so that the time taken tells nothing.
    matching = [one for one in roster.requests if same_code(code, one.code)]
    found = next((one for one in matching if one.good(now)), None)
    if found is None:
        return None
    done = replace(found, approved=True)
    requests = tuple(done if one is found else one for one in roster.requests)
    people = roster.people
    if roster.person(found.person) is None:
        people = (*people, AllowedPerson(found.person, "member", found.name, now))
    return replace(roster, people=people, requests=requests), done


def with_owner(roster: AccessList, person: str, name: str, now: datetime) -> AccessList:
    """Make somebody the owner."""
    others = tuple(one for one in roster.people if one.place != person)
    requests = tuple(one for one in roster.requests if one.person != person)
    owner = AllowedPerson(person, "owner", shown_name(name), now)
    return replace(roster, people=(*others, owner), requests=requests)


def with_chat(roster: AccessList, place: str, now: datetime) -> AccessList:
    """Let everybody in who writes in a chat."""
    if any(chat.place == place for chat in roster.chats):
        return roster
    return replace(roster, chats=(*roster.chats, AllowedChat(place, now)))


def without(
    roster: AccessList, named: ConfiguredAccess, place: str
) -> tuple[AccessList, RemovalResult]:
    """Take a person or a chat off; say what became of that."""
    if place in named.owners:
        return roster, "owners"
    if place in named.allow:
        return roster, "allow"
    smaller = AccessList(
        tuple(one for one in roster.people if one.place != place),
        tuple(one for one in roster.chats if one.place != place),
        # A code that was used would otherwise let them in again.
        tuple(one for one in roster.requests if one.person != place),
    )
    if has_owner(roster, named) and not has_owner(smaller, named):
        return roster, "last owner"
    return smaller, "unknown" if smaller == roster else "removed"
