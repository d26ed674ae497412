"""Texts of access control for strangers, new members and owners. Pure.

Texts for strangers are plain text, which every platform shows as it is; the others are Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.bus import Address
from bot.bus.access.access_list import (
    MOST_PENDING,
    AccessList,
    AllowedChat,
    AllowedPerson,
    ConfiguredAccess,
    PairingRequest,
    RemovalResult,
)

OWNED = (
    "You own this bot now.\n\n"
    "Say hello, or ask me something: I remember what you tell me.\n"
    "/help lists what I can do, and /pair lets other people in."
)

WRONG_CLAIM = (
    "That is not this bot's claim code. The right one was printed when the bot was last started."
)

NEWCOMER = "You may use this bot now. Say hello, or send /help."

NO_SUCH_CODE = (
    "Nobody waits with this code. Codes are good for ten minutes: whoever wants in sends the bot "
    "another message and gets a new one."
)


_FULL = (
    f"{MOST_PENDING} wait, which is the most at once: whoever else asks gets no answer until one "
    "is let in, or a code has run out"
)


@dataclass(frozen=True, slots=True)
class Approval:
    """A person who was given access.

    Attributes:
        person: The person, such as ``telegram:42``.
        name: The person's display name.
        address: Their chat with the bot.
        notified: Whether a message about it reached them.
    """

    person: str
    name: str
    address: Address
    notified: bool


@dataclass(frozen=True, slots=True)
class AccessOverview:
    """Who has access, and who asks for it.

    Attributes:
        configured: Access that the settings grant.
        owners: Owners besides those.
        members: Members besides those.
        chats: Chats besides those.
        pending: Requests that wait for an owner.
        now: The time of the overview.
    """

    configured: ConfiguredAccess
    owners: tuple[AllowedPerson, ...]
    members: tuple[AllowedPerson, ...]
    chats: tuple[AllowedChat, ...]
    pending: tuple[PairingRequest, ...]
    now: datetime

    @classmethod
    def of(
        cls, access_list: AccessList, configured: ConfiguredAccess, now: datetime
    ) -> AccessOverview:
        """Return the overview of an access list."""
        owners = tuple(one for one in access_list.people if one.role == "owner")
        members = tuple(one for one in access_list.people if one.role != "owner")
        return cls(
            configured, owners, members, access_list.chats, tuple(access_list.pending(now)), now
        )

    def text(self) -> str:
        """Return the overview as Markdown.

        Codes are left out: strangers prove who they are by telling the owner theirs.
        """
        settings = "in the settings"
        owners = [f"`{principal}`, {settings}" for principal in sorted(self.configured.owners)]
        owners += [_listed(one.person, one.name, one.since) for one in self.owners]
        members = [_listed(one.person, one.name, one.since) for one in self.members]
        chats = [_listed(one.chat, "", one.since) for one in self.chats]
        waiting = [
            f"{_who(one.person, one.name)}, asked {_age(self.now - one.since)}"
            for one in self.pending
        ]
        if len(self.pending) >= MOST_PENDING:
            waiting.append(_FULL)
        parts = [
            _section("Owners", owners or ["nobody yet: see the claim code printed at the start"]),
            _section("Members", members),
            _section("Chats where everybody may", chats),
            _section(
                "Allowed by TAPEBOT_ALLOW", [f"`{one}`" for one in sorted(self.configured.allow)]
            ),
            _section("Waiting to be let in, with the code that they tell you", waiting),
        ]
        return "\n\n".join(part for part in parts if part)


def pairing_text(request: PairingRequest, now: datetime, *, owned: bool) -> str:
    """Return the text that sends a stranger their pairing code."""
    minutes = max(1, round((request.expires - now).total_seconds() / 60))
    valid = f"The code is valid for {minutes} minute{'' if minutes == 1 else 's'}."
    if owned:
        return (
            "This bot is private. To use it, ask its owner to send it "
            f"/pair {request.code}\n{valid}"
        )
    return (
        "This bot is private and has no owner yet. If it is yours, send the claim code that was "
        "printed when it was started. Otherwise ask whoever runs it for\n"
        f"tapebot pair {request.code}\n{valid}"
    )


def approved_text(paired: Approval) -> str:
    """Return the confirmation for the owner who gave access."""
    notified = "and was told so" if paired.notified else "but was not told so; tell them yourself"
    return f"{_who(paired.person, paired.name)} may use this bot now, {notified}."


def removal_text(principal: str, removal: RemovalResult) -> str:
    """Return the confirmation for the owner who removed access."""
    return {
        "removed": f"`{principal}` may no longer use this bot.",
        "unknown": f"`{principal}` is not on the list. `/pair` shows who is.",
        "owners": f"`{principal}` is in `TAPEBOT_OWNERS`. Take it out there, and restart the bot.",
        "allow": f"`{principal}` is in `TAPEBOT_ALLOW`. Take it out there, and restart the bot.",
        "last owner": (
            f"`{principal}` is the last owner. Name another in `TAPEBOT_OWNERS` first, and restart "
            "the bot."
        ),
    }[removal]


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"**{title}**", *(f"- {line}" for line in lines)]) if lines else ""


def _listed(principal: str, name: str, since: datetime) -> str:
    return f"{_who(principal, name)}, since {since:%Y-%m-%d}"


def _who(principal: str, name: str) -> str:
    # In backticks a name cannot inject Markdown.
    return f"`{principal}` `{name}`" if name else f"`{principal}`"


def _age(age: timedelta) -> str:
    minutes = max(0, int(age.total_seconds() // 60))
    if minutes == 0:
        return "just now"
    return f"{minutes} minute{'' if minutes == 1 else 's'} ago"
