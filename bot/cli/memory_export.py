"""``tapebot memory export`` and ``files``: write a session's memory, also while tapebot runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import anyio

from bot.bus.media.blobs import Blobs, FolderBlobs
from bot.cli.tape import printable
from bot.core.clock import SystemClock, format_time
from bot.core.errors import SettingsError
from bot.core.files import private_directory
from bot.core.i18n import _, ngettext
from bot.memory.session.archive_summary import ArchiveSummary
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.tape.store import TapeStore
from bot.transfer.memory_export import archive_name, write_archive, write_files

T = TypeVar("T")


def export_memory(settings: Settings, session: str, to: Path | None = None) -> int:
    """Write a session's memory as one zip file, and print its path.

    Raises:
        TapeNotFound: There is no such session.
        OSError: The file cannot be written.
    """
    now = SystemClock().now()
    zone = ZoneInfo(settings.timezone)
    path = to or private_directory(settings.home / "exports")
    if path.is_dir():
        path /= archive_name(session, format_time(now), now.astimezone(zone))

    async def write(store: TapeStore) -> ArchiveSummary:
        return await write_archive(
            store, session, path.resolve(), zone, now, blobs=local_blobs(settings)
        )

    archive_summary = anyio.run(_reading, settings, write)
    print(
        "\t".join(
            (
                printable(str(archive_summary.path)),
                ", ".join(
                    (
                        ngettext("{n} fact", "{n} facts", archive_summary.facts),
                        ngettext("{n} message", "{n} messages", archive_summary.messages),
                    )
                ),
            )
        )
    )
    return 0


def local_blobs(settings: Settings) -> Blobs | None:
    """Return the blobs of a home folder; None if they are in a database, and so not exported."""
    folder = settings.home / "blobs"
    return FolderBlobs(folder, clean=False) if settings.database_url is None else None


def write_memory_files(settings: Settings, session: str, folder: Path) -> int:
    """Write a session's ``MEMORY.md`` and ``HISTORY.md`` to a folder, replacing those there.

    Raises:
        TapeNotFound: There is no such session.
        SettingsError: The folder is a file.
        OSError: The files cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise SettingsError(
            _("{folder} is a file: MEMORY.md and HISTORY.md need a folder", folder=folder)
        )

    async def write(store: TapeStore) -> None:
        zone, names = ZoneInfo(settings.timezone), ("MEMORY.md", "HISTORY.md")
        await write_files(store, session, folder, zone, names)

    anyio.run(_reading, settings, write)
    print(printable(str(folder)))
    return 0


async def _reading(settings: Settings, use: Callable[[TapeStore], Awaitable[T]]) -> T:
    async with open_tape_store(settings, read_only=True) as store:
        return await use(store)
