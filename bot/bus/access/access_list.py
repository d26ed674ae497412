"""The access list: who may use the bot, and pure functions that change it.

Rule 1: only people and chats that the settings or the access list name have access.
Rule 2: a person is a platform and an id there; names are shown and never compared.
Rule 3: a pairing code is valid for ten minutes and for one person; only an owner can approve it.
Rule 4: what strangers can make grow is bounded: requests in all, and codes for each person.

A principal is a person or a chat, as ``platform:id``. Aliases are the names in the stored list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from bot.bus import AccessRequest, Address, Role
from bot.bus.access.codes import same_code
from bot.core.patterns import LazyPattern

PAIRING_CODE_LIFETIME = timedelta(minutes=10)
"""How long a pairing code is valid."""

CODE_RESEND_INTERVAL = timedelta(minutes=1)
"""Time after which a code is sent to the same person again: the first reply may be lost."""

MOST_PENDING = 20
"""The most codes that are valid at once."""

MOST_CODES = 3
"""The most codes that one person gets in an hour."""

_HOUR = timedelta(hours=1)
_MOST_OLD = 1_000
_ID = LazyPattern(r"-?[\w.-]{1,64}")
_PLATFORM = LazyPattern(r"[a-z][a-z0-9_]*")
_NAME = 64

RemovalResult = Literal["removed", "unknown", "owners", "allow", "last owner"]
"""Outcome of a removal; ``owners`` and ``allow``: the setting of this name grants the access."""


@dataclass(frozen=True, slots=True)
class AllowedPerson:
    """A person with access, such as ``telegram:42``, with the name at the time of approval."""

    person: Annotated[str, Field(alias="place")]
    role: Role
    name: str
    since: datetime


@dataclass(frozen=True, slots=True)
class AllowedChat:
    """A group chat or a server where everybody has access."""

    chat: Annotated[str, Field(alias="place")]
    since: datetime


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """A stranger's request for access.

    Attributes:
        code: The pairing code, as it was sent to them.
        person: The person, such as ``telegram:42``.
        name: The person's display name.
        address: Their chat with the bot.
        since: When the code was created.
        last_sent_at: When the code was last sent to them.
        approved: Whether it was approved; kept while the code is valid, so that a repeated approval
            has the same result.
        language: The language of their client; empty if unknown.
    """

    code: str
    person: str
    name: str
    address: Address
    since: datetime
    last_sent_at: Annotated[datetime, Field(alias="told")]
    approved: bool = False
    language: str = ""

    @property
    def expires(self) -> datetime:
        """When the code expires."""
        return self.since + PAIRING_CODE_LIFETIME

    def is_valid(self, now: datetime) -> bool:
        """Return whether the code is valid; setting the clock back does not extend it."""
        return abs(now - self.since) < PAIRING_CODE_LIFETIME


@dataclass(frozen=True, slots=True)
class ConfiguredAccess:
    """The access that the settings grant: owners, and allowed people, chats and servers."""

    owners: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AccessList:
    """The access granted by pairing, the claim and ``/pair here``, and pending requests.

    Attributes:
        people: Owners and members.
        chats: Chats and servers where everybody has access.
        requests: Requests of the last hour, which count towards a person's limit.
        removed: Chats that were removed: not even an owner's reminders go there.
        moved: The first and the present id of each chat that got another one.
    """

    people: tuple[AllowedPerson, ...] = ()
    chats: tuple[AllowedChat, ...] = ()
    requests: tuple[PairingRequest, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()

    def ids_of(self, principal: str | None) -> frozenset[str]:
        """Return the ids that a person or chat has: the first and the present one if it moved."""
        own = [pair for pair in self.moved if principal in pair]
        return frozenset([principal] if principal else []).union(*own)

    def person(self, person: str) -> AllowedPerson | None:
        """Return the entry of a person; None without one."""
        return next((one for one in self.people if one.person == person), None)

    def pending(self, now: datetime) -> list[PairingRequest]:
        """Return the valid requests that are not approved yet."""
        return [one for one in self.requests if one.is_valid(now) and not one.approved]


def principal_of(channel: str, identifier: str) -> str | None:
    """Return ``platform:id`` of a channel's person or chat; None if the id is malformed.

    All channels of a platform (``telegram``, ``telegram-work``) share its people.
    """
    platform = channel.partition("-")[0]
    if _PLATFORM.fullmatch(platform) and _ID.fullmatch(identifier):
        return f"{platform}:{identifier}"
    return None


def parse_principal(text: str) -> str | None:
    """Parse ``platform:id`` as typed by a person; None if it is malformed."""
    channel, _, identifier = text.strip().partition(":")
    return principal_of(channel.lower(), identifier)


def safe_name(name: str) -> str:
    """Return a stranger's name as one safe line: no control characters, no backticks."""
    plain = "".join(c for c in name if c.isprintable() and c != "`")
    return " ".join(plain.split())[:_NAME]


def has_owner(
    access_list: AccessList, configured: ConfiguredAccess, platform: str | None = None
) -> bool:
    """Return whether the bot has an owner, or, with a platform, an owner there."""
    owners = [
        *configured.owners,
        *(
            allowed_person.person
            for allowed_person in access_list.people
            if allowed_person.role == "owner"
        ),
    ]
    if platform is None:
        return bool(owners)
    return any(owner.partition(":")[0] == platform for owner in owners)


def role_of(
    access_list: AccessList, configured: ConfiguredAccess, access_request: AccessRequest
) -> Role | None:
    """Return somebody's role in a chat; None for a stranger."""
    who = principal_of(access_request.address.channel, access_request.sender.id)
    if who is None:
        return None
    person = access_list.person(who)
    if who in configured.owners or (person is not None and person.role == "owner"):
        return "owner"
    if access_request.private:
        return "member" if person is not None or who in configured.allow else None
    allowed = configured.allow | {chat.chat for chat in access_list.chats}
    ids = (*access_request.chat_ids, access_request.address.chat_id)
    here = (principal_of(access_request.address.channel, other) for other in ids)
    return "member" if any(access_list.ids_of(one) & allowed for one in here) else None


def add_request(
    access_list: AccessList, access_request: AccessRequest, now: datetime, code: str
) -> tuple[AccessList, PairingRequest | None]:
    """Add a stranger's private message as a request.

    Args:
        access_list: The access list.
        access_request: The message.
        now: The current time.
        code: A new code, used if the stranger gets one.

    Returns:
        The new list, and the request whose code to send; None for no reply.
    """
    person = principal_of(access_request.address.channel, access_request.sender.id)
    if person is None:
        return access_list, None
    recent = tuple(
        pairing_request
        for pairing_request in access_list.requests
        if abs(now - pairing_request.since) < _HOUR
    )
    own = [pairing_request for pairing_request in recent if pairing_request.person == person]
    open_one = next(
        (
            pairing_request
            for pairing_request in own
            if pairing_request.is_valid(now) and not pairing_request.approved
        ),
        None,
    )
    if open_one is not None:
        if abs(now - open_one.last_sent_at) < CODE_RESEND_INTERVAL:
            return access_list, None
        told = replace(open_one, last_sent_at=now)
        requests = tuple(told if one is open_one else one for one in recent)
        return replace(access_list, requests=requests), told
    if len(own) >= MOST_CODES or len(access_list.pending(now)) >= MOST_PENDING:
        return access_list, None
    sender = access_request.sender
    fresh = PairingRequest(
        code,
        person,
        safe_name(sender.name),
        access_request.address,
        now,
        now,
        language=sender.language,
    )
    return replace(access_list, requests=(*recent, fresh)), fresh


def approve(
    access_list: AccessList, code: str, now: datetime
) -> tuple[AccessList, PairingRequest] | None:
    """Give access to the person whom a code was created for; None if no valid code matches.

    Approving again changes nothing: a command may be repeated after a kill.
    """
    # Compare all codes, so that timing reveals nothing.
    matching = [one for one in access_list.requests if same_code(code, one.code)]
    found = next((one for one in matching if one.is_valid(now)), None)
    if found is None:
        return None
    done = replace(found, approved=True)
    requests = tuple(done if one is found else one for one in access_list.requests)
    people = access_list.people
    if access_list.person(found.person) is None:
        people = (*people, AllowedPerson(found.person, "member", found.name, now))
    return replace(access_list, people=people, requests=requests), done


def with_owner(access_list: AccessList, person: str, name: str, now: datetime) -> AccessList:
    """Return the list with a person as owner."""
    others = tuple(one for one in access_list.people if one.person != person)
    requests = tuple(one for one in access_list.requests if one.person != person)
    owner = AllowedPerson(person, "owner", safe_name(name), now)
    return replace(access_list, people=(*others, owner), requests=requests)


def with_chat(access_list: AccessList, principal: str, now: datetime) -> AccessList:
    """Return the list with access for everybody in a chat."""
    ids = access_list.ids_of(principal)
    if any(chat.chat in ids for chat in access_list.chats):
        return access_list
    chats = (*access_list.chats, AllowedChat(principal, now))
    removed = tuple(chat for chat in access_list.removed if chat not in ids)
    return replace(access_list, chats=chats, removed=removed)


def with_moves(access_list: AccessList, moves: dict[str, str]) -> AccessList:
    """Return the list with the present ids of chats by their first ones."""
    moved = dict(access_list.moved) | moves
    return replace(access_list, moved=tuple(moved.items())[-_MOST_OLD:])


def without(
    access_list: AccessList, configured: ConfiguredAccess, principal: str
) -> tuple[AccessList, RemovalResult]:
    """Return the list without a person or chat, and the outcome."""
    if principal in configured.owners:
        return access_list, "owners"
    ids = access_list.ids_of(principal)
    if ids & configured.allow:
        return access_list, "allow"
    smaller = replace(
        access_list,
        people=tuple(one for one in access_list.people if one.person != principal),
        chats=tuple(one for one in access_list.chats if one.chat not in ids),
        # Otherwise a used code would give them access again.
        requests=tuple(one for one in access_list.requests if one.person != principal),
    )
    if len(smaller.chats) < len(access_list.chats):
        smaller = replace(smaller, removed=(*access_list.removed, *sorted(ids))[-_MOST_OLD:])
    if has_owner(access_list, configured) and not has_owner(smaller, configured):
        return access_list, "last owner"  # for programs
    return smaller, "unknown" if smaller == access_list else "removed"
