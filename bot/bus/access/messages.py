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
from bot.core.i18n import N_, _, format_date, ngettext

OWNED = N_(
    "You own this bot now.\n\n"
    "Say hello, or ask me something: I remember what you tell me.\n"
    "/help lists what I can do, and /pair allows other people."
)

WRONG_CLAIM = N_("That is not this bot's claim code. The bot prints it when it starts.")

NEWCOMER = N_("You may use this bot now. Say hello, or send /help.")

NO_SUCH_CODE = N_(
    "This code is not valid. Codes expire after ten minutes. To get a new one, the person sends "
    "the bot another message."
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
        owners = tuple(
            allowed_person
            for allowed_person in access_list.people
            if allowed_person.role == "owner"
        )
        members = tuple(
            allowed_person
            for allowed_person in access_list.people
            if allowed_person.role != "owner"
        )
        return cls(
            configured, owners, members, access_list.chats, tuple(access_list.pending(now)), now
        )

    def text(self) -> str:
        """Return the overview as Markdown.

        Codes are left out: strangers prove who they are by telling the owner theirs.
        """
        owners = [
            _("{person}, in the settings", person=_who(principal, ""))
            for principal in sorted(self.configured.owners)
        ]
        owners += [
            _listed(allowed_person.person, allowed_person.name, allowed_person.since)
            for allowed_person in self.owners
        ]
        members = [
            _listed(allowed_person.person, allowed_person.name, allowed_person.since)
            for allowed_person in self.members
        ]
        chats = [_listed(allowed_chat.chat, "", allowed_chat.since) for allowed_chat in self.chats]
        waiting = [
            _asked(
                _who(pairing_request.person, pairing_request.name), self.now - pairing_request.since
            )
            for pairing_request in self.pending
        ]
        if len(self.pending) >= MOST_PENDING:
            waiting.append(
                ngettext(
                    "{n} request is pending, which is the maximum; new ones get no answer until "
                    "it is accepted or expires",
                    "{n} requests are pending, which is the maximum; new ones get no answer until "
                    "one is accepted or expires",
                    MOST_PENDING,
                )
            )
        parts = [
            _section(
                _("Owners"),
                owners or [_("nobody yet: see the claim code that the bot prints when it starts")],
            ),
            _section(_("Members"), members),
            _section(_("Chats where everyone may use the bot"), chats),
            _section(
                _("Allowed by TAPEBOT_ALLOW"), [f"`{one}`" for one in sorted(self.configured.allow)]
            ),
            _section(_("Access requests (ask the person for their code)"), waiting),
        ]
        return "\n\n".join(part for part in parts if part)


def pairing_text(request: PairingRequest, now: datetime, *, owned: bool) -> str:
    """Return the text that sends a stranger their pairing code."""
    minutes = max(1, round((request.expires - now).total_seconds() / 60))
    valid = ngettext(
        "The code is valid for {n} minute.", "The code is valid for {n} minutes.", minutes
    )
    told = (
        _(
            "This bot is private. To use it, ask its owner to send it {command}",
            command=f"/pair {request.code}",
        )
        if owned
        else _(
            "This bot is private and has no owner yet. If it is yours, send the claim code that it "
            "printed when it started. Otherwise ask its operator to run\n{command}",
            command=f"tapebot pair {request.code}",
        )
    )
    return f"{told}\n{valid}"


def approved_text(paired: Approval) -> str:
    """Return the confirmation for the owner who gave access."""
    person = _who(paired.person, paired.name)
    if paired.notified:
        return _("{person} may use this bot now, and I told them.", person=person)
    return _(
        "{person} may use this bot now, but I could not tell them; please do it yourself.",
        person=person,
    )


def removal_text(principal: str, removal: RemovalResult) -> str:
    """Return the confirmation for the owner who removed access."""
    return _(_REMOVED[removal], person=principal)


_REMOVED: dict[RemovalResult, str] = {
    "removed": N_("`{person}` may no longer use this bot."),
    "unknown": N_("`{person}` is not on the list. `/pair` shows who is."),
    "owners": N_("`{person}` is in `TAPEBOT_OWNERS`. Remove it there, and restart the bot."),
    "allow": N_("`{person}` is in `TAPEBOT_ALLOW`. Remove it there, and restart the bot."),
    "last owner": N_(
        "`{person}` is the last owner. Name another in `TAPEBOT_OWNERS` first, and restart the bot."
    ),
}


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"**{title}**", *(f"- {line}" for line in lines)]) if lines else ""


def _listed(principal: str, name: str, since: datetime) -> str:
    return _("{person}, since {day}", person=_who(principal, name), day=format_date(since))


def _who(principal: str, name: str) -> str:
    # In backticks a name cannot inject Markdown.
    return f"`{principal}` `{name}`" if name else f"`{principal}`"


def _asked(who: str, age: timedelta) -> str:
    minutes = max(0, int(age.total_seconds() // 60))
    if minutes == 0:
        return _("{person}, asked just now", person=who)
    return ngettext(
        "{person}, asked {n} minute ago", "{person}, asked {n} minutes ago", minutes, person=who
    )
