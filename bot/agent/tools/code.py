"""``run.python``: run Python code in a sandbox.

Rule 1: code reaches nothing but its own folder, so a call waits for nobody's yes.
Rule 2: what it prints is text from outside if such text was in view, because that may have shaped it.
Rule 3: files that it leaves are sent with the answer. They are kept in the blob store, and are erased
    with the result.
"""

from __future__ import annotations

import mimetypes

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.code.sandbox import CodeResult, PythonSandbox
from bot.agent.flow.judgement import context_view
from bot.agent.texts import readers_language
from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome
from bot.bus.media.attachments import NO_SPACE, SPARE_BYTES
from bot.bus.media.blobs import Blobs
from bot.bus.media.media_types import IMAGES, media_type
from bot.core.errors import CodeNotRun
from bot.core.files import disk_error_text
from bot.core.i18n import _
from bot.memory.records.attachments import EntryAttachment, one_line
from bot.memory.records.file_names import sent_name

_LONGEST_NAME = 80
_LONGEST_TYPE = 80
_MOST_NAMED = 10


class RunPythonArguments(BaseModel):
    """Arguments of ``run.python``."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(min_length=1, max_length=100_000)


def python_tool(sandbox: PythonSandbox, blobs: Blobs) -> Tool[RunPythonArguments]:
    """Return ``run.python``."""

    async def run(arguments: RunPythonArguments, context: ToolContext) -> ToolOutcome:
        def preparing() -> None:
            if context.show is None:
                return
            with readers_language():
                context.show(_("Preparing Python. This takes a minute or two, once."))

        result = await sandbox.run(arguments.code, preparing=preparing)
        kept = [await _keep(name, data, blobs) for name, data in result.files.items()]
        sent = [(file.name, sent_name(file.blob or "", file.name)) for file in kept]
        return ToolOutcome(
            _content(result, kept),
            "ok" if result.ok else "error",
            attachments=tuple(kept),
            files=tuple(sent),
            from_outside=bool(context_view(context).sources),
        )

    return Tool(
        "run.python",
        "Run Python 3.14 (standard library, no network); print what you want to see. Files in its folder "
        "are sent to the user.",
        RunPythonArguments,
        run,
        effect="reads_own",
    )


def _content(result: CodeResult, kept: list[EntryAttachment]) -> str:
    """Return what the model is told."""
    lines = [_printable(result.output) or "(it printed nothing)"]
    if result.problem:
        lines.append(f"Stopped: {result.problem}. No files are kept.")
    if kept:
        files = ", ".join(f"{file.name} ({file.size:,} bytes)" for file in kept)
        lines.append(f"Sent to the user with your answer: {files}")
    if result.left_out:
        names = [one_line(name, _LONGEST_NAME) for name in result.left_out[:_MOST_NAMED]]
        more = len(result.left_out) - len(names)
        rest = f" and {more:,} more" if more else ""
        lines.append(f"Not kept, too many or too large: {', '.join(names)}{rest}")
    return "\n".join(lines)


async def _keep(name: str, data: bytes, blobs: Blobs) -> EntryAttachment:
    """Store a file.

    Raises:
        CodeNotRun: There is no room, or the storage refuses.
    """
    try:
        free = await blobs.free()
        if free is not None and free - len(data) < SPARE_BYTES:
            raise CodeNotRun(f"the file it made is {NO_SPACE}")
        blob = await blobs.put(data)
    except OSError as error:
        raise CodeNotRun(f"the file it made cannot be kept: {disk_error_text(error)}") from error
    mime = one_line(media_type(data, mimetypes.guess_type(name)[0] or ""), _LONGEST_TYPE)
    kind = "image" if mime in IMAGES else "document"
    return EntryAttachment(kind, one_line(name, _LONGEST_NAME), mime, len(data), blob)


def _printable(text: str) -> str:
    """Replace control characters, which terminals obey and databases refuse."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "�" for sign in text)
