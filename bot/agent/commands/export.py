"""``/memory export``: write the memory of a session to one archive file and send it.

In a private chat a person exports their own memory; in a group, whose memory is shared, only an
owner may. The file's path on the machine is shown only to an owner in private.
"""

from __future__ import annotations

from bot.agent.commands.registry import CommandContext, CommandReply, group_owner_text
from bot.agent.texts import decimal_text, joined
from bot.bus import OutgoingFile
from bot.core.i18n import _, format_number, ngettext
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
        return CommandReply(group_owner_text(), replaces_message=False)
    archive_summary = await context.export_memory()
    told = _(
        "Here is what I remember of this conversation, as {name} ({size}): {contents}. `README.txt` "
        "describes the files.",
        name=f"`{archive_summary.path.name}`",
        size=_size(archive_summary.size),
        contents=_contents(archive_summary),
    )
    if owner and asker.private:
        copy = _("A copy stays on this machine: {path}", path=f"`{archive_summary.path}`")
        told += f"\n\n{copy}"
    return CommandReply(
        told,
        replaces_message=False,
        files=(OutgoingFile(archive_summary.path.name, archive_summary.path),),
    )


def _contents(archive_summary: ArchiveSummary) -> str:
    parts = [
        ngettext("{n} fact", "{n} facts", archive_summary.facts),
        ngettext("{n} history event", "{n} history events", archive_summary.history),
        ngettext("notes of {n} day", "notes of {n} days", archive_summary.notes),
    ]
    if archive_summary.files:
        parts.append(ngettext("{n} file", "{n} files", archive_summary.files))
    messages = ngettext("all {n} message", "all {n} messages", archive_summary.messages)
    return _("{parts}, and {last}", parts=joined(parts), last=messages)


def _size(size: int) -> str:
    if size >= _MEGABYTE:
        return _("{n} MB", n=decimal_text(size / _MEGABYTE, 1))
    return _("{n} KB", n=format_number(max(1, round(size / _KILOBYTE))))
