"""``tapebot import``: import tape exports, and conversations of other assistants."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio

from bot.bus import Address
from bot.cli.tape import printable
from bot.core.clock import SystemClock
from bot.core.errors import (
    InvalidEntry,
    InvalidInbound,
    SettingsError,
    TapeExists,
    TapeNotFound,
)
from bot.core.i18n import _, ngettext
from bot.runtime.app.database_services import open_database_services
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.transfer.file_storage import FileHomeStorage
from bot.transfer.import_writer import STATUS_WORDS, ImportWriter
from bot.transfer.imported import ImportedData
from bot.transfer.nanobot import read_nanobot
from bot.transfer.restore import restore_export
from bot.transfer.storage import HomeStorage

_TOLD = 20


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
    zone = ZoneInfo(settings.timezone)
    return _import_foreign(
        settings, path, lambda: read_nanobot(path, zone), memory_to, dry_run=dry_run
    )


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
async def _home(settings: Settings, *, dry_run: bool) -> AsyncIterator[HomeStorage]:
    """Open the home: a database that processes may use, or files, locked unless in a dry run."""
    workspace = settings.workspace_id or ""
    if settings.database_url is None:
        files = FileHomeStorage(settings.home, workspace)
        with nullcontext() if dry_run else files.lock():
            yield files
        return
    async with open_database_services(settings) as shared:
        assert shared is not None
        from bot.transfer.database_storage import DatabaseHomeStorage

        yield DatabaseHomeStorage(shared.database, shared.wakeups, workspace)


def _import_foreign(
    settings: Settings,
    path: Path,
    read: Callable[[], ImportedData],
    memory_to: str | None,
    *,
    dry_run: bool,
) -> int:
    if settings.tape_store == "memory" and settings.database_url is None:
        raise SettingsError(
            _("TAPEBOT_TAPE_STORE: an import into memory is lost when the command ends")
        )
    if memory_to is not None:
        try:
            memory_to = Address.parse(memory_to).session
        except InvalidInbound as error:
            raise SettingsError(
                _("{memory_to!r} is not a session such as telegram:42", memory_to=memory_to)
            ) from error
    imported_data = read() if path.exists() else ImportedData("")
    for problem in imported_data.problems[:_TOLD]:
        print(_("note\t{problem}", problem=printable(problem)), file=sys.stderr)
    if len(imported_data.problems) > _TOLD:
        more = len(imported_data.problems) - _TOLD
        print(_("note\tand {more} more", more=more), file=sys.stderr)
    if not imported_data.conversations and not imported_data.memory:
        raise TapeNotFound(_("{path}: found nothing to import", path=path))
    return anyio.run(_write_imported, settings, imported_data, memory_to, dry_run)


async def _write_imported(
    settings: Settings, imported_data: ImportedData, memory_to: str | None, dry_run: bool
) -> int:
    refused = False
    async with open_tape_store(settings, read_only=dry_run) as store:
        landing = ImportWriter(store, SystemClock(), settings.retention_days, memory_to, dry_run)
        outcomes = landing.write(imported_data)
        async with aclosing(outcomes):
            async for import_result in outcomes:
                refused |= import_result.status == "refused"
                status = import_result.status
                done = _did(dry_run) if status == "imported" else _(STATUS_WORDS[status])
                print(
                    f"{done}\t{printable(import_result.session)}: {printable(import_result.text)}",
                    flush=True,
                )
    return 1 if refused else 0


def _why(file: Path, error: Exception) -> str:
    """Return the text of an error for the terminal."""
    if isinstance(error, OSError):
        return _("{file}: cannot be read ({strerror})", file=file, strerror=error.strerror)
    return str(error)


def _did(dry_run: bool) -> str:
    return _("would import") if dry_run else _("imported")
