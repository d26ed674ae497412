"""``files.read`` and ``files.manage``: the folder of files of a person or a group.

Rule 1: a file's text is text from outside: the prompt quotes it, and memory never learns from it.
Rule 2: the model deletes nothing: the person is asked, and a button does it. What a
    person kept stays as the former version, however often the model writes over it.
Rule 3: nothing is kept from a private problem, since every model may read the folder.
"""

from __future__ import annotations

import mimetypes
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.files.service import FileRequest, FileService, reference
from bot.agent.texts import decimal_text, readers_language
from bot.agent.tools.registry import Availability, Tool, ToolContext, ToolOutcome, trim_schema
from bot.core.errors import FileRefused
from bot.core.i18n import _, format_number, ngettext
from bot.memory.records.attachments import EntryAttachment, attachments_in, one_line
from bot.memory.records.evidence import is_local_only
from bot.memory.records.file_names import clean_name, name_key, sent_name
from bot.memory.records.files import KeptFile
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import format_timestamp_day
from bot.memory.session.file_folder import FileSection
from bot.tape.search import MAX_QUERY_LENGTH

MAX_TEXT = 200_000
"""The most characters of a text that the model writes into a file."""

_READ_CHARACTERS = 8_000
_HITS = 6
_EXCERPT = 700
_LISTED = 100
_TEXT = "text/plain"


class FilesReadArguments(BaseModel):
    """Arguments of ``files.read``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    name: str | None = Field(None, max_length=500, description="none: list")
    find: str | None = Field(None, max_length=MAX_QUERY_LENGTH, description="words, in all files")
    section: int = Field(1, ge=1, le=1_000_000)


class FilesManageArguments(BaseModel):
    """Arguments of ``files.manage``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    op: Literal["keep", "write", "send", "delete"]
    name: str = Field(min_length=1, max_length=500)
    text: str | None = Field(None, max_length=MAX_TEXT)


def file_tools(files: FileService) -> list[Tool[Any]]:
    """Return the tools, which are offered where files are kept."""

    async def read(arguments: FilesReadArguments, context: ToolContext) -> ToolOutcome:
        if arguments.find is not None and arguments.find.strip():
            found = await files.folders.search(context.memory, arguments.find, _HITS)
            return ToolOutcome(_hits(found), from_outside=True)
        if arguments.name is None:
            listed = await files.folders.files(context.memory)
            return ToolOutcome(list_text(listed, context), from_outside=True)
        name, file = await files.find(context.memory, arguments.name)
        sections = await files.folders.read(file, name)
        return ToolOutcome(_part(file, name, sections, arguments.section), from_outside=True)

    async def manage(arguments: FilesManageArguments, context: ToolContext) -> ToolOutcome:
        if arguments.op in ("keep", "write"):
            context.memory.check_not_private()
            return await _keep(files, arguments, context)
        name, file = await files.find(context.memory, arguments.name)
        if arguments.op == "send":
            await files.content(file)
            return ToolOutcome(
                f"{name} is sent to this chat below your answer.",
                files=((name, sent_name(file.blob, name)),),
            )
        tool_request(context).check_may_change(file)
        with readers_language():
            question = _("Delete the file {name} for good?", name=f"`{name}`")
            button = (_("Delete"), f"/files delete {reference(file)}")
        return ToolOutcome(
            "Not deleted yet: the user is asked below your answer, and a button deletes it.",
            question=question,
            buttons=(button,),
        )

    def applies(_: Availability) -> bool:
        return files.is_on

    return [
        Tool(
            "files.read",
            "List, search or read the user's files. Cite file and page.",
            FilesReadArguments,
            read,
            applies,
            effect="reads_own",
            right="read",
        ),
        Tool(
            "files.manage",
            "keep: a file sent here, if the user wants it kept. send: to this chat.",
            FilesManageArguments,
            manage,
            applies,
            effect="writes_own",
        ),
    ]


async def _keep(
    files: FileService, arguments: FilesManageArguments, context: ToolContext
) -> ToolOutcome:
    """Keep an attachment in view, or write a text."""
    request = tool_request(context)
    if arguments.op == "write":
        if arguments.text is None:
            raise FileRefused("write needs a text")
        mime = mimetypes.guess_type(clean_name(arguments.name))[0] or _TEXT
        file = await files.write(request, arguments.name, arguments.text, mime)
    else:
        attached = attachment_named(context, arguments.name)
        file = await files.keep_blob(request, attached.name, attached.mime, attached.blob or "")
    return ToolOutcome(kept_text(files, file), from_outside=True)


def kept_text(files: FileService, file: KeptFile) -> str:
    """Return what to say of a file that was kept."""
    told = f"Kept as {file.name}, {size_text(file.size)}."
    if file.note:
        told += f" Of its text: {file.note}."
    if file.number in files.folders.tape(file.tape).fold.former:
        told += f" It replaces a former version, which `/files undo {file.name}` brings back."
    return told


def attachment_named(context: ToolContext, name: str) -> EntryAttachment:
    """Return the newest file in view of this name.

    Raises:
        FileRefused: There is none; the text names those that there are.
    """
    found: dict[str, EntryAttachment] = {}
    entries = [*context.memory.fold.window.conversation(), *context.answered_messages]
    for entry in reversed(entries):
        hidden = is_erased(entry) or is_local_only(entry)
        for attached in () if hidden else attachments_in(entry.meta):
            if attached.blob is not None:
                found.setdefault(name_key(clean_name(attached.name)), attached)
    wanted = found.get(name_key(clean_name(name)))
    if wanted is None:
        known = ", ".join(attached.name for attached in found.values())
        raise FileRefused(
            f"no file {clean_name(name)!r} was sent here"
            + (f"; there are: {known}" if known else "; ask the user to send it")
        )
    return wanted


def tool_request(context: ToolContext) -> FileRequest:
    """Return the request that a tool call makes for the people whom the turn answers."""
    people = context.audience.people
    by = people[0] if len(people) == 1 else ""
    return FileRequest(context.memory, by, context.by_owners, context.cause, context.turn)


def size_text(size: int) -> str:
    """Return a size in words."""
    if size >= 1_000_000:
        return _("{n} MB", n=decimal_text(size / 1_000_000, 1))
    if size >= 1_000:
        return _("{n} kB", n=format_number(-(-size // 1_000)))
    return ngettext("{n} byte", "{n} bytes", size)


def list_text(files: dict[str, KeptFile], context: ToolContext) -> str:
    """Return the list of a folder's files."""
    lines = []
    for name, file in list(files.items())[:_LISTED]:
        day = (
            format_timestamp_day(file.kept.isoformat(), context.zone.timezone) if file.kept else ""
        )
        facts = [size_text(file.size), *([day] if day else [])]
        facts += [one_line(file.note, 100)] if file.note else []
        lines.append(f"- {name} ({', '.join(facts)})")
    if more := len(files) - len(lines):
        lines.append(f"- and {more} more")
    return "\n".join(lines) or "There are no files."


def _hits(sections: list[FileSection]) -> str:
    lines = [f"- {section.source}: {one_line(section.text, _EXCERPT)}" for section in sections]
    return "\n".join(lines) or "No file has these words."


def _part(file: KeptFile, name: str, sections: list[FileSection], first: int) -> str:
    """Return sections of a file from one on, as many as fit."""
    if not sections:
        return f"{name} has no text that can be read" + (f": {file.note}." if file.note else ".")
    if first > len(sections):
        raise FileRefused(f"{name} has {len(sections)} sections")
    shown: list[str] = []
    room = _READ_CHARACTERS
    for section in sections[first - 1 :]:
        if shown and len(section.text) > room:
            break
        shown.append(f"[{section.source}]\n{section.text}")
        room -= len(section.text)
    last = first + len(shown) - 1
    head = f"{name}: sections {first} to {last} of {len(sections)}"
    head += f"; section {last + 1} reads on" if last < len(sections) else ""
    note = [f"Note: {file.note}"] if file.note else []
    return "\n\n".join([head, *note, *shown])
