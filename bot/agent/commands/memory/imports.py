"""``/memory import``: show the imported conversations, and have them read for facts."""

from __future__ import annotations

from collections import Counter

from bot.agent.commands.pagination import usable_buttons
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.consolidation.imported_tapes import ImportedTape, people_of
from bot.bus import Button
from bot.memory.records.event_names import IMPORT_READING
from bot.memory.records.imports import assistant_of
from bot.memory.records.transcript import format_timestamp_day
from bot.tape.entries import event

_START, _PAUSE = "/memory import start", "/memory import pause"
_NONE = (
    "There are no imported conversations of yours here. Whoever runs the bot imports them with "
    "`tapebot import chatgpt`, `claude`, `openclaw` or `hermes`."
)


async def imports(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory import``, ``import start`` and ``import pause``."""
    people = people_of(context.memory)
    if not people or not context.author.private:
        return CommandReply("Imported conversations belong to a person: ask in a private chat.")
    wanted = arguments.strip().lower()
    if wanted not in ("", "start", "pause"):
        return CommandReply(f"`{_START}` starts reading, and `{_PAUSE}` pauses it.")
    found = await context.imported_tapes()
    if not found:
        return CommandReply(_NONE)
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
    by_assistant = ", ".join(f"{count} of {name}" for name, count in counts.most_common())
    since = format_timestamp_day(min(tape.since for tape in found), timezone)
    until = format_timestamp_day(max(tape.until for tape in found), timezone)
    messages = sum(tape.messages for tape in found)
    parts = [
        f"**Imported conversations: {len(found)}** ({by_assistant})",
        f"{messages} messages, {since} to {until}. {len(found) - len(unread)} conversations were "
        f"read for facts, {len(unread)} were not.",
    ]
    if waits := context.import_pause():
        parts.append(f"Reading waits: {waits}." if reads else f"Reading would wait: {waits}.")
    elif reads:
        parts.append(
            "I am reading them, oldest first, while this chat is in use. Nothing is believed until "
            "you accept it."
        )
    elif unread:
        parts.append(
            f"I am not reading them. `{_START}` starts it; it uses your budget for models."
        )
    pending = len(context.memory.home.fold.pending())
    if pending:
        parts.append(f"{pending} facts wait for you: `/memory pending`")
    return parts


def _buttons(unread: list[ImportedTape], *, reads: bool) -> list[Button]:
    found = [Button("Pause", _PAUSE) if reads else Button("Read them", _START)] if unread else []
    return [*found, Button("Pending facts", "/memory pending")]
