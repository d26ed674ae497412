"""Where the roster is kept: the port, and the roster as text.

A roster that cannot be read lets nobody in and is not written over: it may name the owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from pydantic import TypeAdapter, ValidationError

from bot.bus.access.access_list import (
    AccessList,
    AllowedChat,
    AllowedPerson,
    PairingRequest,
    parse_place,
)
from bot.core.errors import InvalidInbound


@dataclass(frozen=True, slots=True)
class AccessSnapshot:
    """What a book says.

    Attributes:
        version: Another one with every change.
        roster: Who is let in, and who asks for it.
        claim: The code that makes its sender the owner, while there is none.
    """

    version: str
    roster: AccessList
    claim: str


class AccessStore(Protocol):
    """Keeps one roster."""

    async def open(self) -> None:
        """Get ready, before anything else is asked.

        Raises:
            TapeLocked: Another process has it, and it is for one alone.
            SettingsError: It is damaged, or cannot be used.
            BusError: The storage cannot be reached.
        """
        ...

    async def read(self) -> AccessSnapshot:
        """Return what it says now, also where another process has just changed it.

        Raises:
            BusError: The storage does not say.
        """
        ...

    async def save(self, page: AccessSnapshot, roster: AccessList) -> AccessSnapshot | None:
        """Replace the roster of a page that was looked at; durable when this returns.

        Returns:
            The new page; None where the book was changed since that look, and nothing was done.

        Raises:
            BusError: The storage refused, or whether it was done is not known.
        """
        ...

    async def close(self) -> None:
        """Give it up."""
        ...


@dataclass(frozen=True, slots=True)
class _Whole:
    version: Literal[1]
    people: tuple[AllowedPerson, ...]
    chats: tuple[AllowedChat, ...]
    requests: tuple[PairingRequest, ...]


_ADAPTER = TypeAdapter(_Whole)


def encode(roster: AccessList) -> bytes:
    """Return a roster as it is kept."""
    whole = _Whole(1, roster.people, roster.chats, roster.requests)
    return _ADAPTER.dump_json(whole, indent=2) + b"\n"


def decode(data: bytes) -> AccessList | None:
    """Return the roster that was kept; None where it is none, or another version's."""
    try:
        whole = _ADAPTER.validate_json(data, strict=True)
    except (ValidationError, InvalidInbound):
        return None
    roster = AccessList(whole.people, whole.chats, whole.requests)
    return roster if _sound(roster) else None


def _sound(roster: AccessList) -> bool:
    """Say whether places are places and stand once, and times can be compared."""
    people = [one.place for one in roster.people]
    chats = [one.place for one in roster.chats]
    places = [*people, *chats, *(one.person for one in roster.requests)]
    times: list[datetime] = [one.since for one in roster.people]
    times += [one.since for one in roster.chats]
    times += [moment for one in roster.requests for moment in (one.since, one.told)]
    return (
        all(parse_place(place) == place for place in places)
        and len(set(people)) == len(people)
        and len(set(chats)) == len(chats)
        and all(moment.tzinfo is not None for moment in times)
    )
