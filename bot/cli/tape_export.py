"""``tapebot tape export``: write tapes as JSONL or Markdown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import IO
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread

from bot.cli.tape import printable
from bot.core.errors import SettingsError, TapeNotFound
from bot.core.files import private_directory
from bot.core.i18n import _
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.transfer.exported_tape import (
    SUFFIXES,
    ExportFormat,
    export_chunks,
    export_file_name,
)
from bot.transfer.whole_files import atomic_writer


def export_tape(
    settings: Settings,
    session: str | None,
    *,
    form: ExportFormat = "jsonl",
    output: Path | None = None,
) -> int:
    """Export one tape, or all, in their current state."""
    if session is None and output is None:
        raise SettingsError(
            _(
                "name a session, or give a folder for all of them: tapebot tape export --output "
                "FOLDER"
            )
        )
    if session is None and output is not None and output.exists() and not output.is_dir():
        raise SettingsError(_("{output} is a file: all sessions need a folder", output=output))
    into = output if output is not None and (session is None or output.is_dir()) else None
    anyio.run(_export, settings, session, form, output, into)
    return 0


async def _export(
    settings: Settings,
    session: str | None,
    form: ExportFormat,
    output: Path | None,
    into: Path | None,
) -> None:
    zone = ZoneInfo(settings.timezone)
    async with open_tape_store(settings, read_only=True) as store:
        if session is not None:
            await store.version(session)
        sessions = [session] if session is not None else await store.list_tapes()
        if not sessions:
            raise TapeNotFound(_("there are no tapes"))
        for name in sessions:
            path = output
            if into is not None:
                path = private_directory(into) / export_file_name(name, SUFFIXES[form])
            with _sink(path) as out:
                pieces = export_chunks(store, name, form, zone)
                async with aclosing(pieces):
                    async for piece in pieces:
                        await anyio.to_thread.run_sync(_write, out, piece)
            if session is None:
                print(f"{printable(name)}\t{path}")


@contextmanager
def _sink(path: Path | None) -> Iterator[IO[bytes]]:
    if path is not None:
        # Write to a pipe or device directly; replace only regular files, never a link to one.
        special = path.exists() and not path.is_file()
        with path.open("wb") if special else atomic_writer(path.resolve()) as file:
            yield file
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _write(out: IO[bytes], piece: bytes) -> None:
    if out.isatty():
        # Messages must not steer a terminal; files and pipes get the exact bytes.
        piece = printable(piece.decode("utf-8", "replace")).encode()
    out.write(piece)
