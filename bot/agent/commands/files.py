"""``/files``: list, keep, send, restore and delete the files of a person's or a group's folder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from bot.agent.commands.memory.search import file_line
from bot.agent.commands.pagination import paginate, split_page_number, usable_buttons
from bot.agent.commands.registry import Command, CommandContext, CommandReply, idempotency_key
from bot.agent.files.service import FileRequest, FileService
from bot.agent.texts import joined, known_text, local_day
from bot.agent.tools.files import size_text
from bot.bus import OutgoingFile
from bot.core.i18n import N_, _, format_number
from bot.memory.records.attachments import EntryAttachment, attachments_in
from bot.memory.records.event_names import COMMAND
from bot.memory.records.evidence import is_local_only
from bot.memory.records.file_names import clean_name, name_key, sent_name
from bot.memory.records.tombstones import is_erased
from bot.memory.session.scope.identities import identity_at

_FORMS = (
    ("", N_("list the files that are kept here")),
    ("keep", N_("keep the newest file of this chat; with a name, the file of that name")),
    ("send NAME", N_("send a file here")),
    ("find WORDS", N_("search the text of the files")),
    ("undo NAME", N_("go back to the version before")),
    ("delete NAME", N_("delete a file for good")),
)
_LOOKED_AT = 500
"""Newest entries in which a file that was sent is looked for."""

_HITS = 10


def files_command(files: FileService) -> Command:
    """Return ``/files``.

    Args:
        files: Reads and changes the folders.
    """
    command = _FilesCommand(files)
    return Command(
        "files",
        N_("show, keep, send or delete files"),
        _FORMS,
        command.run,
        waits_for_turn=lambda arguments: True,  # noqa: ARG005 - whatever they are
        takes_files=lambda arguments: arguments.lower().startswith("keep"),
        right="site",
        reads=("", "send", "find"),
    )


class _FilesCommand:
    def __init__(self, files: FileService) -> None:
        self._files = files
        self._forms: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
            "keep": self._keep,
            "send": self._send,
            "find": self._find,
            "undo": self._undo,
            "delete": self._delete,
        }

    async def run(self, arguments: str, context: CommandContext) -> CommandReply:
        form, _sep, rest = arguments.strip().partition(" ")
        name = rest.strip().strip("`\"'")
        if not form or form.isdecimal() or form == "page":
            return await self._list(arguments, context)
        run = self._forms.get(form.lower())
        if run is None:
            command = files_command(self._files)
            return CommandReply(command.unknown_form_text(form, self._forms))
        if not name and form.lower() != "keep":
            example = f"`/files {form.lower()} NAME`"
            return CommandReply(_("Which file? For example: {example}.", example=example))
        return await run(name, context)

    async def _list(self, arguments: str, context: CommandContext) -> CommandReply:
        if not self._files.is_on:
            return CommandReply(_("The owner has switched files off."))
        _rest, page = split_page_number(arguments)
        files = await self._files.folders.files(context.memory)
        if not files:
            return CommandReply(
                _(
                    "No files are kept here. Send one and say that I should keep it, or send `/files "
                    "keep`."
                )
            )
        lines = []
        for name, file in files.items():
            zone = context.zone.timezone
            day = local_day(file.kept.isoformat(), zone) if file.kept else ""
            lines.append(f"- `{name}` ({joined(filter(None, [size_text(file.size), day]))})")
        whole = size_text(sum(file.size for file in files.values()))
        head = _("**Files** ({count}, {size})", count=format_number(len(files)), size=whole)
        told = "\n".join([head, *lines])
        text, buttons = paginate(told, page, "/files page")
        return CommandReply(text, buttons=usable_buttons(buttons))

    async def _keep(self, name: str, context: CommandContext) -> CommandReply:
        context.memory.check_not_private()
        found = _sent_along(context, name) or await _newest_attachment(context, name)
        if not found:
            if name:
                missing = f"`{clean_name(name)}`"
                return CommandReply(_("No file {name} was sent here lately.", name=missing))
            return CommandReply(_("No file was sent here lately. Send it first."))
        told = [await self._keep_one(context, *one) for one in enumerate(found)]
        return CommandReply("\n".join(told))

    async def _keep_one(self, context: CommandContext, place: int, sent: EntryAttachment) -> str:
        """Keep one of the files of a command; return what became of it."""
        if sent.blob is None:
            why = known_text(sent.note or "")
            return _("_I could not read_ {file}: {note}.", file=f"`{sent.name}`", note=why)
        request = _request(context)
        request = replace(request, key=f"{request.key}:{place}") if place else request
        file = await self._files.keep_blob(request, sent.name, sent.mime, sent.blob)
        told = [_("Kept as {name}, {size}.", name=f"`{file.name}`", size=size_text(file.size))]
        if file.note:
            told.append(_("Of its text: {note}.", note=known_text(file.note)))
        if file.number in self._files.folders.tape(file.tape).fold.former:
            command = f"`/files undo {file.name}`"
            told.append(_("{command} brings the version before back.", command=command))
        return " ".join(told)

    async def _send(self, name: str, context: CommandContext) -> CommandReply:
        known, file = await self._files.find(context.memory, name)
        await self._files.content(file)
        path = context.exports / sent_name(file.blob, known)
        return CommandReply(
            _("Here is {name}.", name=f"`{known}`"),
            files=(OutgoingFile(known, path),),
            replaces_message=False,
        )

    async def _find(self, words: str, context: CommandContext) -> CommandReply:
        found = await self._files.folders.search(context.memory, words, _HITS)
        return CommandReply("\n".join(map(file_line, found)) or _("No file has these words."))

    async def _undo(self, name: str, context: CommandContext) -> CommandReply:
        known, file = await self._files.find(context.memory, name)
        restored = await self._files.restore(_request(context), file)
        return CommandReply(
            _(
                "{name} is the version before again, {size}. The same command goes back.",
                name=f"`{known}`",
                size=size_text(restored.size),
            )
        )

    async def _delete(self, name: str, context: CommandContext) -> CommandReply:
        request = _request(context)
        if await self._files.finish(context.memory, request.key):
            return CommandReply(_("Deleted for good."))
        known, file = await self._files.find(context.memory, name)
        await self._files.delete(request, file)
        told = [_("Deleted {name} for good.", name=f"`{known}`")]
        if not file.written:
            told.append(
                _(
                    "If a message here brought it, the message keeps its own copy: {command} erases "
                    "that too.",
                    command=f'`/memory forget "{known}"`',
                )
            )
        return CommandReply(" ".join(told))


def _request(context: CommandContext) -> FileRequest:
    author = context.author
    by = author.id if ":" in author.id else identity_at(context.tape.name, author.id)
    return FileRequest(context.memory, by, author.role == "owner", idempotency_key(context))


def _sent_along(context: CommandContext, name: str) -> list[EntryAttachment]:
    """Return the files that came with the command, else those of the message that it replies to."""
    sent = [one for one in attachments_in(context.command_entry.meta) if _is_named(one, name)]
    return [one for one in sent if not one.quoted] or sent


async def _newest_attachment(context: CommandContext, name: str) -> list[EntryAttachment]:
    """Return the newest file that somebody sent in this chat, of this name if one is given."""
    looked = 0
    async for entry in context.tape.read_back():
        looked += 1
        if looked > _LOOKED_AT:
            break
        if not (entry.kind == "message" or entry.name == COMMAND):
            continue
        if is_erased(entry) or is_local_only(entry):
            continue
        for attached in reversed(attachments_in(entry.meta)):
            if attached.blob and _is_named(attached, name):
                return [attached]
    return []


def _is_named(file: EntryAttachment, name: str) -> bool:
    """Return whether a file has this name; any has if it is empty."""
    return not name or name_key(clean_name(file.name)) == name_key(clean_name(name))
