"""Show the folders of files as plain files in the home folder, for the owner of the machine.

Rule 1: the tapes are the folders. These files are made from them, never read, and made again.
Rule 2: a file here is the blob under another name, so that it takes no space, and is read-only: who
    edits it makes a copy.
Rule 3: before anything is erased, its file here is removed; files that somebody else put here stay.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.to_thread

from bot.bus.media.blobs import READ_ONLY, FolderBlobs
from bot.core.errors import TapebotError, TapeWriteError
from bot.core.files import disk_error_text, sync_directory
from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.memory.records.files import FILES_PREFIX, KeptFile
from bot.memory.session.file_folder import FileFolders, listing
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

_PLAIN = LazyPattern(r"[a-z0-9_:]+")
_UNSAFE = LazyPattern(r"[^A-Za-z0-9_-]+")
_LONGEST = 100


def mirror_folder(tape: str) -> str:
    """Return the name of the folder for a tape of files, such as ``person-telegram-42``."""
    scope = tape.removeprefix(FILES_PREFIX)
    name = _UNSAFE.sub("-", scope)[:_LONGEST]
    if _PLAIN.fullmatch(scope) and len(scope) <= _LONGEST:
        return name
    return f"{name}-{sha256(scope.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


class FolderMirror:
    """Keeps the readable files.

    Implements ``bot.agent.files.service.FileMirror`` and ``bot.runtime.sessions.derived_files.DerivedFiles``.
    """

    def __init__(
        self,
        folder: Path,
        blobs: FolderBlobs,
        folders: FileFolders,
    ) -> None:
        self._folder = folder
        self._blobs = blobs
        self._folders = folders
        self._writing = anyio.Lock()

    async def update(self, tape: str, files: Mapping[str, KeptFile]) -> None:
        """Make the files of a tape here exactly these; see ``FileMirror``."""
        async with self._writing:
            await anyio.to_thread.run_sync(self._update, self._folder / mirror_folder(tape), files)

    @asynccontextmanager
    async def suspend(self, tapes: Collection[str]) -> AsyncGenerator[None, None]:
        """Remove the files of these tapes, and make them again at the end.

        Raises:
            TapeWriteError: They could not be removed; nothing must be erased then.
        """
        own = [tape for tape in tapes if tape.startswith(FILES_PREFIX)]
        try:
            for tape in own:
                await self.update(tape, {})
        except OSError as error:
            raise TapeWriteError(
                _(
                    "nothing was erased: a copy of a file cannot be removed ({why}). Fix that, then try again",
                    why=disk_error_text(error),
                )
            ) from error
        try:
            yield
        finally:
            for tape in own:
                await self._show_again(tape)

    async def show_missing(self, store: TapeStore) -> None:
        """Make the files of folders that show none, such as after a restore."""
        try:
            tapes = await store.list_tapes()
        except (TapebotError, OSError) as error:
            logger.warning("the folders of files are not shown: %s", error)
            return
        for tape in tapes:
            if tape.startswith(FILES_PREFIX):
                folder = self._folder / mirror_folder(tape)
                if not await anyio.to_thread.run_sync(_shows_any, folder):
                    await self._show_again(tape)

    async def _show_again(self, tape: str) -> None:
        try:
            # Inside, so that no older state than another change's is shown.
            async with self._writing:
                files = listing([await self._folders.tape(tape).open()])
                into = self._folder / mirror_folder(tape)
                await anyio.to_thread.run_sync(self._update, into, files)
        except (TapebotError, OSError) as error:
            # A view: the next change of the folder makes it again.
            logger.warning("the files of %s are not shown: %s", tape, error)

    def _update(self, into: Path, files: Mapping[str, KeptFile]) -> None:
        for path in sorted(into.iterdir()) if into.is_dir() else ():
            file = files.get(path.name)
            if _is_made_here(path) and (file is None or not _is_same(path, self._blob(file))):
                path.unlink()
        for name, file in files.items():
            path, blob = into / name, self._blob(file)
            if blob is not None and not os.path.lexists(path):
                try:
                    self._blobs.link(file.blob, path)
                except OSError as error:
                    # A view: the folder itself has the file.
                    logger.warning("%s cannot be shown: %s", path, disk_error_text(error))
        if into.is_dir():
            sync_directory(into)
            if not any(into.iterdir()):
                into.rmdir()

    def _blob(self, file: KeptFile) -> Path | None:
        return self._blobs.path(file.blob) if file.blob else None


def _shows_any(folder: Path) -> bool:
    return folder.is_dir() and any(map(_is_made_here, folder.iterdir()))


def _is_made_here(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == READ_ONLY


def _is_same(path: Path, blob: Path | None) -> bool:
    return blob is not None and blob.exists() and path.samefile(blob)
