"""What a channel asks before it does anything for anybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bot.bus.messages import Address, Role, Sender


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """Somebody who wants something: a message, a command, a button, an edit, a reaction.

    Attributes:
        address: Where.
        sender: Who.
        private: True where only this person and the bot are present.
        places: The platform's ids by which the chat may be allowed: its own, and those of what it
            is a part of (a thread's channel, a channel's server).
        text: What was written, where it was written to the bot in private: it may be a code.
    """

    address: Address
    sender: Sender
    private: bool
    places: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether somebody may, and as what.

    Attributes:
        role: None where they may not: nothing of theirs is fetched, kept or answered.
        reply: What to tell them, to be sent as it is; None for silence.
    """

    role: Role | None
    reply: str | None = None


class Authorizer(Protocol):
    """Says who may use the bot. Whoever is not known may not."""

    async def authorize(self, knock: AccessRequest) -> AccessDecision:
        """Return whether somebody may, and what to tell them where they may not.

        Raises:
            BusError: A claim or a code could not be recorded.
        """
        ...
