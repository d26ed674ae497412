"""``/memory import``: show the imported conversations, and have them read for facts."""

from __future__ import annotations

from collections import Counter

from bot.agent.commands.pagination import usable_buttons
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.consolidation.imported_tapes import ImportedTape, people_of
from bot.agent.texts import joined, local_day
from bot.bus import Button
from bot.core.i18n import N_, _, format_number, ngettext
from bot.memory.records.event_names import IMPORT_READING
from bot.memory.records.imports import assistant_of
from bot.tape.entries import event

_START, _PAUSE = "/memory import start", "/memory import pause"
_NONE = N_(
    "There are no imported conversations of yours here. Whoever runs the bot imports them with "
    "`tapebot import chatgpt`, `claude` or `openclaw`."
)


async def imports(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory import``, ``import start`` and ``import pause``."""
    people = people_of(context.memory)
    if not people or not context.author.private:
        return CommandReply(_("Imported conversations belong to a person: ask in a private chat."))
    wanted = arguments.strip().lower()
    if wanted not in ("", "start", "pause"):
        return CommandReply(
            _("`/memory import start` starts reading, and `/memory import pause` pauses it.")
        )
    found = await context.imported_tapes()
    if not found:
        return CommandReply(_(_NONE))
    unread = [tape for tape in found if tape.unread is not None]
    reads = context.fold.reads_imports if not wanted else wanted == "start"
    reads = reads and bool(unread)
    changed = reads != context.fold.reads_imports
    return CommandReply(
        "\n\n".join(_told(found, unread, context, reads=reads)),
        extra_entries=[event(IMPORT_READING, {"on": reads})] if changed else [],
        buttons=usable_buttons(_buttons(unread, reads=reads)),
    )


def _told(
    found: list[ImportedTape], unread: list[ImportedTape], context: CommandContext, *, reads: bool
) -> list[str]:
    timezone = context.zone.timezone
    counts = Counter(assistant_of(tape.name) for tape in found)
    by_assistant = joined(
        _("{count} of {name}", count=format_number(count), name=name)
        for name, count in counts.most_common()
    )
    head = _("Imported conversations: {count}", count=format_number(len(found)))
    messages = ngettext(
        "{n} message, {since} to {until}.",
        "{n} messages, {since} to {until}.",
        sum(tape.messages for tape in found),
        since=local_day(min(tape.since for tape in found), timezone),
        until=local_day(max(tape.until for tape in found), timezone),
    )
    read = ngettext(
        "{n} conversation was read for facts, {unread} were not.",
        "{n} conversations were read for facts, {unread} were not.",
        len(found) - len(unread),
        unread=format_number(len(unread)),
    )
    parts = [f"**{head}** ({by_assistant})", f"{messages} {read}"]
    if waits := context.import_pause():
        told = N_("Reading waits: {reason}.") if reads else N_("Reading would wait: {reason}.")
        parts.append(_(told, reason=waits))
    elif reads:
        parts.append(
            _(
                "I am reading them, oldest first, while this chat is in use. Nothing is believed until "
                "you accept it."
            )
        )
    elif unread:
        parts.append(
            _(
                "I am not reading them. `/memory import start` starts it; it uses your budget for "
                "models."
            )
        )
    pending = len(context.memory.home.fold.pending())
    if pending:
        parts.append(
            ngettext(
                "{n} fact waits for you: `/memory pending`",
                "{n} facts wait for you: `/memory pending`",
                pending,
            )
        )
    return parts


def _buttons(unread: list[ImportedTape], *, reads: bool) -> list[Button]:
    pending = Button(_("Pending facts"), "/memory pending")
    if not unread:
        return [pending]
    first = Button(_("Pause"), _PAUSE) if reads else Button(_("Read them"), _START)
    return [first, pending]
