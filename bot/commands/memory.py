"""``/memory``: see, search, add to, undo, export and clear what is remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.commands.parser import nearest
from bot.commands.registry import Command, CommandContext, CommandReply
from bot.memory.asks import as_line, with_line
from bot.memory.guards import MAX_BYTES
from bot.memory.snapshot import HISTORY, MemorySnapshot, ZoneFold
from bot.tape.entries import TapeEntry, event

UNDONE = "memory.undone"
_SCANNED = 20_000
_LISTED = 10


async def _summary(_: str, context: CommandContext) -> CommandReply:
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
    return CommandReply("\n\n".join(parts))


async def _history(_: str, context: CommandContext) -> CommandReply:
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
    return CommandReply("\n\n".join(str(entry.data.get("entry", "")) for entry in reversed(found)))


async def _add(text: str, context: CommandContext) -> CommandReply:
    line = as_line(text)
    if line is None:
        return CommandReply("What shall I add? For example: `/memory add I prefer tea`.")
    full = len(with_line(context.zone.read().long_term, line).encode("utf-8", "replace"))
    if full > MAX_BYTES:
        return CommandReply(f"Memory is full ({MAX_BYTES} bytes). Remove something first.")

    def change(snapshot: MemorySnapshot) -> MemorySnapshot:
        changed = with_line(snapshot.long_term, line)
        return snapshot if changed == snapshot.long_term else snapshot.with_long_term(changed)

    return CommandReply(
        lambda snapshot: f"Added to memory (version {snapshot.version}): {line}", change
    )


async def _undo(_: str, context: CommandContext) -> CommandReply:
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
    scanned = 0
    inside: list[TapeEntry] = []
    async for entry in context.tape.read_back():
        scanned += 1
        if scanned > _SCANNED:
            break
        if entry.name == UNDONE and entry.data.get("version") == ceiling:
            to = entry.data.get("to")
            ceiling = to if type(to) is int else ceiling
        inside.append(entry)
        if entry.kind == "anchor" and entry.name == "memory/open":
            fold = ZoneFold()
            for one in reversed(inside):
                fold.apply(one)
            inside = []
            found = fold.snapshot
            if 0 < found.version < ceiling and (found.long_term, found.dailies) != (
                current.long_term,
                current.dailies,
            ):
                return found
        elif entry.kind == "anchor" and entry.name == "memory/seal":
            inside = [entry]
    return None


async def _export(_: str, context: CommandContext) -> CommandReply:
    path = await export(context)
    return CommandReply(f"Exported to `{path}`.\n\n{context.zone.read().long_term}".strip())


async def export(context: CommandContext) -> str:
    """Write memory to a file of its own; return its path."""
    safe = "".join(char if char.isalnum() else "_" for char in context.tape.name)[:80]
    moment = context.zone.now().strftime("%Y%m%dT%H%M%S")
    version = context.zone.read().version
    path = context.exports / f"{safe}.{moment}.v{version}.md"
    await context.zone.export(path)
    return str(path)


async def _clear(arguments: str, context: CommandContext) -> CommandReply:
    if arguments.lower() != "yes":
        size = len(context.zone.read().long_term.splitlines())
        return CommandReply(
            f"This clears all {size} lines of long-term memory and the daily notes of this chat. "
            "To go on, send `/memory clear yes`."
        )
    path = await export(context)
    return CommandReply(
        f"Memory is cleared. A copy is in `{path}`; `/memory undo` brings it back.",
        lambda snapshot: snapshot.cleared(),
    )


_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "": _summary,
    "history": _history,
    "add": _add,
    "undo": _undo,
    "export": _export,
    "clear": _clear,
}

_USAGE = """\
`/memory history`: what was consolidated, newest last
`/memory add TEXT`: remember this
`/memory undo`: go back to how memory was before its last change
`/memory export`: write it to a file
`/memory clear`: forget all of it (asks first)"""


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, _, rest = arguments.partition(" ")
    chosen = _FORMS.get(form.lower())
    if chosen is None:
        close = nearest(form.lower(), [name for name in _FORMS if name])
        hint = f" Did you mean `/memory {close}`?" if close else ""
        return CommandReply(f"There is no `/memory {form}`.{hint}\n\n{_USAGE}")
    return await chosen(rest.strip(), context)


MEMORY = Command("memory", "show what I remember here", _USAGE, _run)
