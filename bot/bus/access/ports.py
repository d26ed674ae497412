"""The authorization check that channels make for every event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bot.bus.messages import Address, Role, Sender


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A platform event that needs authorization: a message, command, button, edit or reaction.

    Attributes:
        address: The chat of the event.
        sender: The person who caused it.
        private: True if only this person and the bot are present.
        chat_ids: Platform ids by which the chat may be allowed: its own, and those of what contains
            it (a thread's channel, a channel's server).
        text: The text of a private message, which may be a code; None otherwise.
    """

    address: Address
    sender: Sender
    private: bool
    chat_ids: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether a sender has access, and in what role.

    Attributes:
        role: The sender's role; None without access: nothing of theirs is fetched, stored or
            answered.
        reply: Plain text to send as it is; None for no reply.
    """

    role: Role | None
    reply: str | None = None


class Authorizer(Protocol):
    """Decides who may use the bot; unknown people may not."""

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        """Return the sender's role, or the reply to a sender without access.

        Raises:
            BusError: The access list cannot be read, or a claim or a code could not be stored.
        """
        ...
