"""``/pair``: list who may use the bot, approve people and group chats, and remove them."""

from __future__ import annotations

from bot.agent.commands.pagination import paginate
from bot.agent.commands.parser import split_form
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.bus import Address
from bot.bus.access.codes import PAIRING_CODE_LENGTH, is_code
from bot.bus.access.control import AccessControl
from bot.bus.access.messages import NO_SUCH_CODE, approved_text, removal_text
from bot.core.i18n import N_, _

_FORMS = (
    ("CODE", N_("allow the person who got this code")),
    ("here", N_("allow everyone in this group chat")),
    ("remove ID", N_("remove a person or a chat, such as telegram:42")),
)

_PAUSED = N_(
    "Reminders and tasks there are paused instead of sent. Once it is allowed again, `/schedules` "
    "there lists them, and `/schedules resume N` starts one again."
)


def pair_command(access_control: AccessControl) -> Command:
    """Return the command, for owners only.

    Args:
        access_control: Access control, which holds and changes the access list.
    """

    async def run(arguments: str, context: CommandContext) -> CommandReply:
        form, rest = split_form(arguments)
        if not form or (form.isdecimal() and len(form) < 6):
            return await _list(access_control, context, int(form or 1))
        if form == "here":
            return await _here(access_control, context)
        if form == "remove":
            return await _remove(access_control, rest)
        if not is_code(arguments, PAIRING_CODE_LENGTH):
            return CommandReply("\n\n".join([_("That is not a code."), command.usage]))
        paired = await access_control.approve(arguments)
        return CommandReply(_(NO_SUCH_CODE) if paired is None else approved_text(paired))

    command = Command(
        "pair", N_("show who may use me, and allow others"), _FORMS, run, owner_only=True
    )
    return command


async def _list(access_control: AccessControl, context: CommandContext, page: int) -> CommandReply:
    if not context.author.private:
        return CommandReply(
            _(
                "Send this in private: the list is not for everyone here. `/pair here` allows everyone "
                "in this chat."
            )
        )
    text, buttons = paginate((await access_control.overview()).text(), page, "/pair")
    return CommandReply(text, buttons=buttons)


async def _here(access_control: AccessControl, context: CommandContext) -> CommandReply:
    if context.author.private:
        return CommandReply(
            _("This is a private chat. Send `/pair here` in a group to allow everyone there.")
        )
    address = Address.parse(context.tape.name)
    # A Telegram topic has no access of its own; a Discord thread has, besides its channel.
    thread = address.topic if address.channel.startswith("discord") else None
    place = await access_control.allow_chat(f"{address.channel}:{thread or address.chat_id}")
    if place is None:
        return CommandReply(_("I cannot allow this chat: I do not know the form of its id."))
    command = f"`/pair remove {place}`"
    return CommandReply(
        _("Everyone in this chat may use me now. {command} undoes this.", command=command)
    )


async def _remove(access_control: AccessControl, place: str) -> CommandReply:
    if not place:
        return CommandReply(
            _("Which one? For example: `/pair remove telegram:42`. `/pair` lists them.")
        )
    shown = "".join(c for c in place if c.isprintable() and c != "`")[:80]
    removal = await access_control.remove(place)
    told = [removal_text(shown, removal)]
    if removal == "removed":
        told.append(_(_PAUSED))
    return CommandReply(" ".join(told))
