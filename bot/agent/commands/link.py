"""``/link`` and ``/unlink``: join and separate one person's memory on several channels.

A code is shown in one private chat, entered in another, and confirmed in both, so that a person
tricked into passing on a stranger's code is warned before anything happens. Tapes store only the
code's hash for lookup; the typed code stays in the records of the two chats, where it is worthless
once claimed or after ten minutes.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256

from bot.agent.commands.parser import split_form
from bot.agent.commands.registry import Command, CommandContext, CommandReply, idempotency_key
from bot.agent.texts import joined, joined_clauses
from bot.bus import Address, Answer, BusError, Button
from bot.bus.access.access_list import safe_name
from bot.bus.access.codes import PAIRING_CODE_LENGTH, is_code, new_code
from bot.core.i18n import N_, _, format_number, ngettext, use_language
from bot.core.text import escape_markdown
from bot.memory.records.proposals import BatchOutcome
from bot.memory.session.linking.identity_linker import IdentityLinker
from bot.memory.session.scope.identities import (
    LinkClaim,
    LinkParty,
    LinkRefusal,
    channel_of,
    identity_at,
)

logger = logging.getLogger(__name__)

Send = Callable[[Answer], Awaitable[None]]
"""Send an answer to a chat. Raises ``BusError`` on failure."""

LanguageOf = Callable[[str], Awaitable[str]]
"""Returns the language of an identity."""

_GROUP = N_("Send this in our private chat: it concerns your private memory.")
_NOTHING_WAITS = N_(
    "Nothing to confirm here: the request was answered, or is more than ten minutes old. Send "
    "`/link` to start again."
)
_IS_IT_YOU = N_(
    "Linking shares your memory here with the account that got this code, and its memory with you. "
    "Did I show you the code in your own chat with me on another channel? Then say yes or press the "
    "button. If somebody else gave you the code, say no."
)
_REFUSALS: dict[LinkRefusal, str] = {
    "self": N_("This chat made that code. Send it to me on the other channel."),
    "joined": N_("These two are already linked. `/link` shows what is linked."),
    "channel": N_("Both are on the same channel. I link one account per channel."),
    "wrong": N_(
        "This code is not valid. A code works once and expires after ten minutes. Send `/link` on the "
        "other channel for a new one."
    ),
    "often": N_("Too many wrong codes. Try again in an hour."),
}
_MOST_SHOWN = 5


def link_commands(send: Send, language_of: LanguageOf) -> list[Command]:
    """Return ``/link`` and ``/unlink``.

    Args:
        send: Sends an answer to the other chat.
        language_of: Returns the language of who is told there.
    """
    tell = _OtherChat(send, language_of)

    async def run_link(arguments: str, context: CommandContext) -> CommandReply:
        if not context.author.private or not context.author.id:
            return CommandReply(_(_GROUP))
        word, rest = split_form(arguments)
        number = int(rest) if rest.isdecimal() else None
        if not word:
            return await _offer(context)
        if word == "confirm":
            return await _confirm(number, context, tell)
        if word == "refuse":
            return await _refuse(number, context, tell)
        agreed = arguments.lower().endswith(" yes")
        code = arguments[: -len(" yes")] if agreed else arguments
        if not is_code(code, PAIRING_CODE_LENGTH):
            return CommandReply("\n\n".join([_("That is not a code."), link.usage]))
        if agreed:
            return await _claim(code, context, tell)
        # The code is looked up only after consent, so that this step does not reveal whether it
        # exists. The second button refuses no claim, though one may wait here when it is pressed.
        yes, no = f"/link {code} yes", "/link refuse 0"
        buttons = Button(_("It is mine"), yes), Button(_("Refuse"), no)
        return CommandReply(_(_IS_IT_YOU), buttons=buttons)

    async def run_unlink(arguments: str, context: CommandContext) -> CommandReply:
        if not context.author.private or not context.author.id:
            return CommandReply(_(_GROUP))
        return await _unlink(arguments, context, tell)

    link = Command(
        "link",
        N_("link your memory on several channels"),
        (
            ("CODE", N_("link this chat with the one that showed you the code")),
            ("confirm", N_("yes, I asked for this on the other channel")),
            ("refuse", N_("no, I did not")),
        ),
        run_link,
    )
    summary = N_("unlink this channel from the others (asks first)")
    return [link, Command("unlink", summary, (), run_unlink)]


# Joining.


async def _offer(context: CommandContext) -> CommandReply:
    linking, me = context.memory.scopes.identity_linker, _party(context)
    waits = linking.find_waiting_claim(me.identity)
    if waits is not None:
        return CommandReply(_question(waits), buttons=_buttons(waits))
    code = new_code(PAIRING_CODE_LENGTH)
    await linking.offer(me, _digest(code))
    told = _(
        "To link your memory on another channel with this one, send me this there, in our private "
        "chat:\n\n`/link {code}`\n\nThen I ask you here to confirm. The code works once and expires "
        "after ten minutes. Give it to nobody: a linked account can read everything that I know about "
        "you.",
        code=code,
    )
    return CommandReply(f"{_listed(linking, me)}{told}")


async def _claim(code: str, context: CommandContext, tell: _OtherChat) -> CommandReply:
    linking = context.memory.scopes.identity_linker
    claim = await linking.claim(_party(context), _digest(code), idempotency_key(context))
    if not isinstance(claim, LinkClaim):
        return CommandReply(_(_REFUSALS[claim]))
    await tell(
        claim.code_owner, f"link-{claim.entry}", lambda: _question(claim), lambda: _buttons(claim)
    )
    return CommandReply(
        _(
            "This links your memory here with that of {whom}. Confirm it there within ten minutes. If "
            "I have not asked you there, send me `/link` there. Until you confirm, nothing changes.",
            whom=_who(claim.code_owner),
        )
    )


async def _confirm(number: int | None, context: CommandContext, tell: _OtherChat) -> CommandReply:
    linking, me = context.memory.scopes.identity_linker, _party(context)
    move = await linking.confirm(me.identity, number, idempotency_key(context))
    if move is None or move.claim is None:
        return CommandReply(_(_NOTHING_WAITS))
    outcome = await context.memory.scopes.apply_move(move)
    other = move.claim.party
    await tell(other, f"link-{move.entry}", lambda: f"{_linked_text(me)} {_told(outcome)}")
    await context.memory.refresh()
    again = _("`/unlink` separates them again.")
    return CommandReply(f"{_linked_text(other)} {_told(outcome)} {again}")


async def _refuse(number: int | None, context: CommandContext, tell: _OtherChat) -> CommandReply:
    linking, me = context.memory.scopes.identity_linker, _party(context)
    claim = await linking.reject_claim(me.identity, number)
    if claim is None:
        return CommandReply(_(_NOTHING_WAITS))
    await tell(
        claim.party,
        f"link-{claim.entry}-no",
        lambda: _("{person} refused. Nothing was linked.", person=_who(me)),
    )
    return CommandReply(_("Refused. Nothing was linked, and the code no longer works."))


def _linked_text(other: LinkParty) -> str:
    return _("Linked with {person}: your private chats now share one memory.", person=_who(other))


def _question(claim: LinkClaim) -> str:
    return _(
        "{person} sent the code that I showed you here, to link both memories. If that is you, say yes or "
        "send {command}. Both private chats will then share everything that I know about you. If it is not "
        "you, say no.",
        person=_who(claim.party),
        command=f"`/link confirm {claim.entry}`",
    )


def _buttons(claim: LinkClaim) -> tuple[Button, ...]:
    # The buttons carry the claim's entry id, so that a late press answers no other claim.
    return (
        Button(_("Confirm"), f"/link confirm {claim.entry}"),
        Button(_("Refuse"), f"/link refuse {claim.entry}"),
    )


# Separating.


async def _unlink(arguments: str, context: CommandContext, tell: _OtherChat) -> CommandReply:
    scopes, me = context.memory.scopes, _party(context)
    people, key = scopes.identity_linker.people, idempotency_key(context)
    before = people.members(me.identity)
    word, state = split_form(arguments.lower())
    done = people.move_of_command(key)
    if done is None:
        if len(before) == 1:
            return CommandReply(_(_NOT_LINKED))
        since = str(people.changes.get(me.identity, 0))
        if word == "no":
            return CommandReply(_listed(scopes.identity_linker, me).strip())
        if word != "yes" or state not in ("", since):
            others = _others(scopes.identity_linker, me)
            command = f"/unlink yes {since}"
            yes = Button(_("Unlink"), command)
            no = Button(_("Keep the link"), f"/unlink no {since}")
            asked = _(_ASKED, others=others, command=f"`{command}`")
            return CommandReply(asked, buttons=(yes, no))
        done = await scopes.identity_linker.unlink(me.identity, key)
    if done is None:
        return CommandReply(_(_NOT_LINKED))
    await scopes.apply_move(done)
    for identity in before:
        if identity != me.identity:
            await tell(
                people.last_seen(identity),
                f"unlink-{done.entry}-{identity}",
                lambda: _(
                    "{person} is no longer linked with your memory here: each has its own memory again.",
                    person=_who(me),
                ),
            )
    await context.memory.refresh()
    return CommandReply(
        _(
            "Unlinked. Each channel keeps what I knew there before the link and what you told me there "
            "since. `/link` links them again."
        )
    )


_NOT_LINKED = N_("This channel is not linked to another. `/link` links it.")
_ASKED = N_(
    "This unlinks this channel from {others}. Each keeps what I knew there before the link and "
    "what you told me there since. Messages and search results stay in the chat that they are in. "
    "To erase something everywhere, send `/memory forget` first. To continue, say yes or send {command}."
)


# Texts.


def _party(context: CommandContext) -> LinkParty:
    sender = context.command_entry.meta.get("sender")
    name = sender.get("name") if isinstance(sender, dict) else ""
    identity = identity_at(context.tape.name, context.author.id)
    return LinkParty(identity, safe_name(str(name or "")), context.tape.name)


def _who(party: LinkParty) -> str:
    # In a code span a name is shown literally, whatever Markdown it contains.
    channel = channel_of(party.identity)
    if not party.name:
        return f"`{party.identity}`"
    return _("{name} on {channel}", name=f"`{party.name}`", channel=channel)


def _others(linking: IdentityLinker, me: LinkParty) -> str:
    people = linking.people
    others = [
        people.last_seen(member) for member in people.members(me.identity) if member != me.identity
    ]
    return joined(map(_who, others))


def _listed(linking: IdentityLinker, me: LinkParty) -> str:
    others = _others(linking, me)
    if not others:
        return ""
    told = _("Linked with {others}. `/unlink` separates this channel from them.", others=others)
    return f"{told}\n\n"


def _told(outcome: BatchOutcome) -> str:
    """Return a summary of the facts that were taken over."""
    decisions = outcome.with_verdict("approved", "known")
    came = sum(decision.proposal.op in ("add", "reopen") for decision in decisions)
    waits = len(outcome.with_verdict("pending"))
    left = outcome.with_verdict("refused", "logged")
    parts = [_("Facts added: {count}.", count=format_number(came))]
    if waits:
        pending = ngettext(
            "{n} pending: `/memory pending`.", "{n} pending: `/memory pending`.", waits
        )
        parts.append(pending)
    if left:
        shown = joined_clauses(
            _(
                "“{text}” ({reason})",
                text=escape_markdown(decision.proposal.text),
                reason=decision.reason,
            )
            for decision in left[:_MOST_SHOWN]
        )
        if len(left) > _MOST_SHOWN:
            shown = _("{names}, and {n} more", names=shown, n=len(left) - _MOST_SHOWN)
        parts.append(_("Not believed, only kept on record: {facts}.", facts=shown))
    return " ".join(parts)


def _digest(code: str) -> str:
    plain = "".join(sign for sign in code.upper() if sign.isalnum())
    return sha256(plain.encode()).hexdigest()


@dataclass(frozen=True)
class _OtherChat:
    """Notifies another chat, in the language of who is told there; if that fails, ``/link`` shows the same."""

    send: Send
    language_of: LanguageOf

    async def __call__(
        self,
        party: LinkParty,
        answer: str,
        text: Callable[[], str],
        buttons: Callable[[], tuple[Button, ...]] = tuple,
    ) -> None:
        if not party.session:
            return
        with use_language(await self.language_of(party.identity)):
            notice = Answer(Address.parse(party.session), answer, text(), buttons=buttons())
        try:
            await self.send(notice)
        except BusError as error:
            logger.warning("a chat was not told that memories are linked: %s", error)
