"""``tapebot import``: import tape exports, and conversations of other assistants."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio

from bot.bus import Address
from bot.cli.import_assistants import check_importable, print_problems, write_imported
from bot.cli.tape import printable
from bot.core.errors import (
    InvalidEntry,
    InvalidInbound,
    SettingsError,
    TapeExists,
    TapeNotFound,
)
from bot.core.i18n import _, ngettext
from bot.runtime.app.database_services import open_database_services
from bot.runtime.settings import Settings
from bot.transfer.exported_tape import restore_export
from bot.transfer.file_home import FileHome
from bot.transfer.home_data import HomeData
from bot.transfer.import_writer import STATUS_WORDS, ImportResult
from bot.transfer.imported import Reading


def import_jsonl(settings: Settings, path: Path, *, dry_run: bool = False) -> int:
    """Restore tapes from exports, with their ids and times; return 1 if any was refused.

    Raises:
        TapeLocked: A tapebot is running.
        TapeNotFound: There is no export at the path.
        SettingsError: Tapes are neither in files nor in a database.
        TapeWriteError: The store refused the write.
    """
    if settings.tape_store != "file" and settings.database_url is None:
        raise SettingsError(
            _(
                "TAPEBOT_TAPE_STORE: exports can only be imported into tapes in files; unset it, or "
                "import on the machine of the tape server"
            )
        )
    path = path.resolve()
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not path.exists() or not files:
        raise TapeNotFound(_("{path}: no export found", path=path))
    return 1 if anyio.run(_restore, settings, files, dry_run) else 0


def import_nanobot(
    settings: Settings, path: Path, *, memory_to: str | None = None, dry_run: bool = False
) -> int:
    """Import nanobot's sessions and memory; return 1 if anything was refused.

    Raises:
        TapeLocked: A tapebot is running.
        TapeNotFound: There is no nanobot data at the path.
        SettingsError: ``memory_to`` is no session key, or tapes are kept in memory only.
        TapeWriteError: The store refused the write; what was printed before is done.
    """
    check_importable(settings, path)
    if memory_to is not None:
        try:
            memory_to = Address.parse(memory_to).session
        except InvalidInbound as error:
            raise SettingsError(
                _("{memory_to!r} is not a session such as telegram:42", memory_to=memory_to)
            ) from error
    reading = Reading("nanobot", "", ZoneInfo(settings.timezone), memory_to)

    def tell(result: ImportResult) -> None:
        done = _did(dry_run) if result.status == "imported" else _(STATUS_WORDS[result.status])
        print(f"{done}\t{printable(result.session)}: {printable(result.text)}", flush=True)

    refused = anyio.run(write_imported, settings, path, reading, dry_run, tell)
    print_problems(reading)
    if not reading.statuses:
        raise TapeNotFound(_("{path}: found nothing to import", path=path))
    return 1 if refused else 0


async def _restore(settings: Settings, files: Sequence[Path], dry_run: bool) -> bool:
    """Restore tapes; return whether any was refused."""
    refused = False
    async with _home(settings, dry_run=dry_run) as home:
        for file in files:
            try:
                restored_tape = await restore_export(file, home, dry_run=dry_run)
            except (TapeExists, InvalidEntry, OSError) as error:
                print(_("refused\t{why}", why=printable(_why(file, error))), file=sys.stderr)
                refused = True
            else:
                count = ngettext("{n} entry", "{n} entries", restored_tape.entries)
                print(f"{_did(dry_run)}\t{printable(restored_tape.session)}: {count}")
    return refused


@asynccontextmanager
async def _home(settings: Settings, *, dry_run: bool) -> AsyncIterator[HomeData]:
    """Open the home: a database that processes may use, or files, locked unless in a dry run."""
    workspace = settings.workspace_id or ""
    if settings.database_url is None:
        files = FileHome(settings.home, workspace)
        with nullcontext() if dry_run else files.lock():
            yield files
        return
    async with open_database_services(settings) as shared:
        assert shared is not None
        from bot.transfer.database_home import DatabaseHome

        yield DatabaseHome(shared.database, shared.wakeups, workspace)


def _why(file: Path, error: Exception) -> str:
    """Return the text of an error for the terminal."""
    if isinstance(error, OSError):
        return _("{file}: cannot be read ({strerror})", file=file, strerror=error.strerror)
    return str(error)


def _did(dry_run: bool) -> str:
    return _("would import") if dry_run else _("imported")
