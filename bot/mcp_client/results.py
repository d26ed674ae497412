"""What a server answers to a call: texts and files, bounded and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.agent.foreign_text import one_line, printable
from bot.agent.tools.registry import MAX_RESULT, ToolOutcome
from bot.bus.media.blobs import Blobs
from bot.bus.media.media_types import IMAGES, media_type
from bot.memory.records.attachments import EntryAttachment

_MOST_FILES = 10


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file in a result.

    Attributes:
        kind: ``image``, ``audio`` or ``document``.
        name: Its name or address, on one line.
        mime: The media type that the server states.
        data: Its bytes; None if they are malformed.
    """

    kind: str
    name: str
    mime: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """A result of a call.

    Attributes:
        texts: Its texts.
        files: Its files.
        failed: Whether the server calls it an error.
    """

    texts: tuple[str, ...] = ()
    files: tuple[ResultFile, ...] = ()
    failed: bool = False


async def kept_result(
    result: RemoteResult, blobs: Blobs | None, redact: Callable[[str], str]
) -> ToolOutcome:
    """Return a result for the tape: its text cut and without secrets, its files as blobs."""
    files, notes = [], []
    for file in result.files[:_MOST_FILES]:
        record, note = await _kept(file, blobs)
        notes.append(note)
        if record is not None:
            files.append(record)
    if len(result.files) > _MOST_FILES:
        notes.append(f"({len(result.files) - _MOST_FILES} more files were left out)")
    # Cut before work on it: it may be megabytes long.
    text, size = "\n".join(result.texts), sum(map(len, result.texts))
    shown = redact(printable(text[: MAX_RESULT - 2_000]))
    if size > MAX_RESULT - 2_000:
        notes.append(f"({size - (MAX_RESULT - 2_000)} more characters were left out)")
    content = "\n".join(filter(None, [shown, *notes])) or "(an empty result)"
    status = "error" if result.failed else "ok"
    return ToolOutcome(content, status, attachments=tuple(files), from_outside=True)


async def _kept(file: ResultFile, blobs: Blobs | None) -> tuple[EntryAttachment | None, str]:
    """Keep a file; return it as an attachment, and a note for the model."""
    what = f"{file.kind} {file.name}"
    if file.data is None:
        return None, f"({what}: malformed, not kept)"
    if blobs is None:
        return None, f"({what}: not kept)"
    mime = one_line(media_type(file.data, file.mime), 80)
    try:
        name = await blobs.put(file.data)
    except OSError as error:
        return None, f"({what}: not kept, {error.strerror})"
    kind = file.kind if file.kind != "image" or mime in IMAGES else "document"
    record = EntryAttachment(kind, file.name, mime, len(file.data), name)
    return record, f"({what}, {mime}, {len(file.data):,} bytes: kept)"
