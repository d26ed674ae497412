"""``/memory export``: write the memory of a session to one archive file and send it.

In a private chat a person exports their own memory; in a group, whose memory is shared, only an
owner may. The file's path on the machine is shown only to an owner in private.
"""

from __future__ import annotations

from bot.agent.commands.registry import CommandContext, CommandReply
from bot.bus import OutgoingFile
from bot.memory.session.archive_summary import ArchiveSummary

_KILOBYTE, _MEGABYTE = 1024, 1024 * 1024


async def export(arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 - a form
    """Write the archive and reply with it.

    Raises:
        TapeWriteError: The storage failed.
    """
    asker = context.author
    owner = asker.role == "owner"
    if not (asker.private or owner):
        return CommandReply(
            "In a group only an owner may do this: it affects everyone here.",
            replaces_message=False,
        )
    archive_summary = await context.export_memory()
    told = (
        f"Here is what I remember of this conversation, as `{archive_summary.path.name}` ({_size(archive_summary.size)}): "
        f"{_contents(archive_summary)}. `README.txt` describes the files."
    )
    if owner and asker.private:
        told += f"\n\nA copy stays on this machine: `{archive_summary.path}`"
    return CommandReply(
        told,
        replaces_message=False,
        files=(OutgoingFile(archive_summary.path.name, archive_summary.path),),
    )


def _contents(archive_summary: ArchiveSummary) -> str:
    files = f", {_count(archive_summary.files, 'file')}" if archive_summary.files else ""
    return (
        f"{_count(archive_summary.facts, 'fact')}, {_count(archive_summary.history, 'history event')}, notes of "
        f"{_count(archive_summary.notes, 'day')}{files}, and all {_count(archive_summary.messages, 'message')}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(size: int) -> str:
    if size >= _MEGABYTE:
        return f"{size / _MEGABYTE:.1f} MB"
    return f"{max(1, round(size / _KILOBYTE))} KB"
