"""Protocol of the access store, and its JSON encoding.

A damaged list gives nobody access and is not overwritten: it may name the owner.
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
    parse_principal,
)
from bot.core.errors import InvalidInbound, SettingsError
from bot.core.i18n import _


@dataclass(frozen=True, slots=True)
class AccessSnapshot:
    """The stored state at one version.

    Attributes:
        version: Changes with every change of the list.
        access_list: The access list.
        claim: The code that makes its sender the owner while there is none.
    """

    version: str
    access_list: AccessList
    claim: str


class AccessStore(Protocol):
    """Stores one access list."""

    async def peek(self) -> AccessList:
        """Return the list without opening the store or changing anything; empty if there is none.

        Raises:
            SettingsError: The list is damaged or not accessible.
            BusError: The storage cannot be reached.
        """
        ...

    async def open(self) -> None:
        """Prepare the store; call it before ``read`` and ``save``.

        Raises:
            TapeLocked: Another process uses a store that allows only one.
            SettingsError: The list is damaged or not accessible.
            BusError: The storage cannot be reached.
        """
        ...

    async def read(self) -> AccessSnapshot:
        """Return the current state, including changes by other processes.

        Raises:
            BusError: The storage cannot be read.
        """
        ...

    async def save(
        self, snapshot: AccessSnapshot, access_list: AccessList
    ) -> AccessSnapshot | None:
        """Replace the list of a snapshot; durable when this returns.

        Returns:
            The new snapshot; None if the list was changed since ``snapshot``, and nothing was done.

        Raises:
            BusError: The storage refused, or the outcome is unknown.
        """
        ...

    async def close(self) -> None:
        """Close the store."""
        ...


@dataclass(frozen=True, slots=True)
class _Whole:
    version: Literal[1]
    people: tuple[AllowedPerson, ...]
    chats: tuple[AllowedChat, ...]
    requests: tuple[PairingRequest, ...]
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()


_ADAPTER = TypeAdapter(_Whole)


def encode(access_list: AccessList) -> bytes:
    """Return an access list as JSON."""
    one = access_list
    whole = _Whole(1, one.people, one.chats, one.requests, one.removed, one.moved)
    return _ADAPTER.dump_json(whole, indent=2, by_alias=True) + b"\n"


def decode(data: bytes, where: str, discard: str) -> AccessList:
    """Parse an access list from JSON.

    Args:
        data: The JSON.
        where: Names the list to people.
        discard: What to do to start with an empty one.

    Raises:
        SettingsError: It is damaged or of another version.
    """
    try:
        whole = _ADAPTER.validate_json(data, strict=True)
        access_list = AccessList(
            whole.people, whole.chats, whole.requests, whole.removed, whole.moved
        )
        if _sound(access_list):
            return access_list
    except (ValidationError, InvalidInbound):
        pass
    raise SettingsError(
        _(
            "{where} is damaged or from another version of tapebot, so nobody may use the bot. Restore a copy. Without one, {discard}: the bot then forgets whom it allowed, and prints a new claim code unless TAPEBOT_OWNERS is set.",
            where=where,
            discard=discard,
        )
    )


def _sound(access_list: AccessList) -> bool:
    """Return whether places are valid and unique, and times have a zone."""
    people = [allowed_person.person for allowed_person in access_list.people]
    chats = [allowed_chat.chat for allowed_chat in access_list.chats]
    principals = [
        *people,
        *chats,
        *(pairing_request.person for pairing_request in access_list.requests),
        *(chat for pair in access_list.moved for chat in pair),
    ]
    times: list[datetime] = [allowed_person.since for allowed_person in access_list.people]
    times += [allowed_chat.since for allowed_chat in access_list.chats]
    times += [
        moment
        for pairing_request in access_list.requests
        for moment in (pairing_request.since, pairing_request.last_sent_at)
    ]
    return (
        all(parse_principal(principal) == principal for principal in principals)
        and len(set(people)) == len(people)
        and len(set(chats)) == len(chats)
        and all(moment.tzinfo is not None for moment in times)
    )
