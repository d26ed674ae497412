"""``/memory``: see, search, add to, undo, export and clear what is remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from bot.bus import Button
from bot.commands.pages import paged
from bot.commands.parser import nearest
from bot.commands.registry import Command, CommandContext, CommandReply
from bot.memory.asks import as_line, with_line
from bot.memory.guards import MAX_BYTES
from bot.memory.snapshot import HISTORY, MemorySnapshot
from bot.memory.versions import UNDONE, zones_back
from bot.tape.entries import TapeEntry, event

_SCANNED = 20_000
_LISTED = 10


async def _summary(page: str, context: CommandContext) -> CommandReply:
    snapshot = context.zone.read()
    parts = [
        f"**Long-term memory** (version {snapshot.version})",
        snapshot.long_term or "Nothing yet. Tell me something about you, or use `/memory add`.",
    ]
    for note in snapshot.dailies[-3:][::-1]:
        parts += [f"**Notes of {note.date}**", note.content]
    if len(snapshot.dailies) > 3:
        parts.append(f"and notes of {len(snapshot.dailies) - 3} earlier days")
    parts.append(
        f"{context.fold.window.unconsolidated} messages are not consolidated yet. "
        f"Consolidation: {context.consolidation_line()}."
    )
    text, buttons = paged("\n\n".join(parts), _number(page), "/memory")
    return CommandReply(text, buttons=buttons)


async def _history(page: str, context: CommandContext) -> CommandReply:
    found: list[TapeEntry] = []
    scanned = 0
    async for entry in context.tape.read_back():
        scanned += 1
        if entry.kind == "event" and entry.name == HISTORY:
            found.append(entry)
        if len(found) == _LISTED or scanned == _SCANNED:
            break
    if not found:
        return CommandReply("There is no history yet: nothing has been consolidated.")
    told = "\n\n".join(str(entry.data.get("entry", "")) for entry in reversed(found))
    text, buttons = paged(told, _number(page), "/memory history")
    return CommandReply(text, buttons=buttons)


async def _add(text: str, context: CommandContext) -> CommandReply:
    line = as_line(text)
    if line is None:
        return CommandReply("What shall I add? For example: `/memory add I prefer tea`.")
    version = context.zone.read().version
    full = len(with_line(context.zone.read().long_term, line).encode("utf-8", "replace"))
    if full > MAX_BYTES:
        return CommandReply(f"Memory is full ({MAX_BYTES} bytes). Remove something first.")

    def change(snapshot: MemorySnapshot) -> MemorySnapshot:
        changed = with_line(snapshot.long_term, line)
        return snapshot if changed == snapshot.long_term else snapshot.with_long_term(changed)

    def told(snapshot: MemorySnapshot) -> str:
        known = snapshot.version == version
        return (
            f"I have that already: {line}"
            if known
            else (f"Added to memory (version {snapshot.version}): {line}")
        )

    return CommandReply(told, change)


async def _undo(looked_at: str, context: CommandContext) -> CommandReply:
    if looked_at.isdecimal() and looked_at != str(context.zone.read().version):
        return CommandReply(
            "Memory has changed since; nothing was undone. `/memory undo` goes back from how it is "
            "now.",
            in_place=False,
        )
    earlier = await _earlier_version(context)
    if earlier is None:
        return CommandReply("There is no earlier memory to go back to.")

    def change(snapshot: MemorySnapshot) -> MemorySnapshot:
        return MemorySnapshot(snapshot.version + 1, earlier.long_term, earlier.dailies)

    current = context.zone.read().version
    note = event(UNDONE, {"from": current, "to": earlier.version, "version": current + 1})
    return CommandReply(
        lambda snapshot: (
            f"Memory is again as in version {earlier.version} (now version "
            f"{snapshot.version}):\n\n{snapshot.long_term or '(empty)'}"
        ),
        change,
        [note],
    )


async def _earlier_version(context: CommandContext) -> MemorySnapshot | None:
    """Return the newest earlier zone that says something else; repeated undos go further back."""
    current = context.zone.read()
    ceiling = current.version
    async with aclosing(zones_back(context.tape)) as zones:
        async for zone in zones:
            found = zone.snapshot
            if found.version == ceiling and zone.restores is not None:
                ceiling = zone.restores
            differs = (found.long_term, found.dailies) != (current.long_term, current.dailies)
            if found.version < ceiling and differs:
                return found
    return None


async def _export(_: str, context: CommandContext) -> CommandReply:
    path = await context.zone.export(context.exports)
    where = _shown(path, context)
    return CommandReply(f"Exported to `{where}`.\n\n{context.zone.read().long_term}".strip())


async def _clear(arguments: str, context: CommandContext) -> CommandReply:
    word, _, looked_at = arguments.lower().partition(" ")
    version = context.zone.read().version
    snapshot = context.zone.read()
    if not snapshot.long_term and not snapshot.dailies:
        return CommandReply("There is nothing to clear.", in_place=False)
    if word != "yes":
        size = len(snapshot.long_term.splitlines())
        return CommandReply(
            f"This clears long-term memory ({size} line{'s' * (size != 1)}) and the daily notes of "
            "this chat. "
            "To go on, send `/memory clear yes`.",
            buttons=(
                Button("Clear it", f"/memory clear yes {version}"),
                Button("Keep it", "/memory"),
            ),
        )
    if looked_at and looked_at != str(version):
        return CommandReply(
            "Memory has changed since you were asked; nothing was cleared. "
            "Look at it with `/memory` first.",
            in_place=False,
        )
    path = await context.zone.export(context.exports)
    return CommandReply(
        f"Memory is cleared. A copy is in `{_shown(path, context)}`; `/memory undo` brings it back.",
        lambda snapshot: snapshot.emptied(),
        buttons=(Button("Bring it back", f"/memory undo {version + 1}"),),
    )


def _shown(path: Path, context: CommandContext) -> str:
    """Return where a file is, for owners; others need not know the machine."""
    return str(path) if context.asker.role == "owner" and context.asker.private else path.name


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 1


_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "": _summary,
    "history": _history,
    "add": _add,
    "undo": _undo,
    "export": _export,
    "clear": _clear,
}

_LISTED_FORMS = (
    ("history", "what was consolidated, newest last"),
    ("add TEXT", "remember this"),
    ("undo", "go back to how memory was before its last change"),
    ("export", "write it to a file"),
    ("clear", "forget all of it (asks first)"),
)


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, _, rest = arguments.partition(" ")
    if form.isdecimal():
        return await _summary(form, context)
    chosen = _FORMS.get(form.lower())
    if chosen is None:
        close = nearest(form.lower(), [name for name in _FORMS if name])
        hint = f" Did you mean `/memory {close}`?" if close else ""
        return CommandReply(f"There is no `/memory {form}`.{hint}\n\n{MEMORY.usage}")
    return await chosen(rest.strip(), context)


def _takes_away(arguments: str) -> bool:
    return arguments.partition(" ")[0].lower() in ("clear", "undo")


MEMORY = Command(
    "memory", "show what I remember here", _LISTED_FORMS, _run, destructive=_takes_away
)
