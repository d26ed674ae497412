"""Keep, write, restore and delete files in the folders of people and groups.

Rule 1: a file's bytes are durable in the blob store before the entry that names them is on the tape.
Rule 2: a request has a key; repeated after a kill it changes nothing, and goes on where it stopped.
Rule 3: what ends is erased at once: its text from tape and index, its bytes unless something else
    names them. After a kill the fold still knows it as stale, and the next change erases it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol
from zlib import crc32

import anyio

from bot.agent.files.reading import read_sections
from bot.agent.texts import joined
from bot.bus.media.attachments import NO_SPACE, SPARE_BYTES
from bot.bus.media.blobs import Blobs
from bot.core.errors import FileRefused, TapebotError
from bot.core.files import disk_error_text
from bot.core.i18n import _, format_number
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.event_names import FILE_DELETED, FILE_RESTORED
from bot.memory.records.file_names import clean_name, name_key
from bot.memory.records.files import FolderFold, KeptFile, change_entry, kept_entries
from bot.memory.records.tombstones import is_erased, tombstone
from bot.memory.session.file_folder import FileFolders, FolderTape, listing
from bot.memory.session.long_term_memory import LongTermMemory
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

MOST_FILES = 1_000
"""The most files in a folder."""

_MEGABYTE = 1_000_000
_READERS = 2

EraseBlobs = Callable[[TextMatcher, Collection[str]], Awaitable[int]]
"""Erases words, and blobs by name, from all places other than tapes."""


class FileMirror(Protocol):
    """A readable copy of the folders for the owner of the machine."""

    async def update(self, tape: str, files: Mapping[str, KeptFile]) -> None:
        """Make the copy of a folder's tape hold exactly these files, by their names.

        Raises:
            OSError: A file that must go could not be removed.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileRequest:
    """Who asks for a change of files, and where.

    Attributes:
        memory: Memory of the session, which says whose folder it is.
        by: Identity of whoever asks, such as ``telegram:42``; empty if it is not one person.
        owner: Whether only owners ask.
        key: Key of the request.
        turn: The turn whose tool call it is; empty for a command.
    """

    memory: LongTermMemory
    by: str
    owner: bool
    key: str
    turn: str = ""

    @property
    def is_group(self) -> bool:
        """Whether the folder is a group's."""
        return self.memory.home.kind == "session"

    def check_may_change(self, file: KeptFile) -> None:
        """Check that the person may replace or delete a file: in a group, their own.

        Raises:
            FileRefused: They may not.
        """
        if self.is_group and not self.owner and file.by != self.by:
            raise FileRefused(_("in a group only an owner, or who kept the file, may change it"))


class FileService:
    """Changes the files of all folders.

    Args:
        folders: The folders.
        store: The store of all tapes.
        blobs: Stores the files' bytes.
        max_bytes: The most bytes of a folder, former versions included; 0 keeps nothing.
        erase_blobs: Erases blobs and their copies.
        mirror: Readable copies of the folders; None if there are none.
    """

    def __init__(
        self,
        folders: FileFolders,
        store: TapeStore,
        blobs: Blobs,
        *,
        max_bytes: int,
        erase_blobs: EraseBlobs,
        mirror: FileMirror | None = None,
    ) -> None:
        self.folders = folders
        self._store = store
        self._blobs = blobs
        self._max_bytes = max_bytes
        self._erase_blobs = erase_blobs
        self._mirror = mirror
        # Within a process no blob is named anew while it is removed as unused.
        self._changing = anyio.Lock()
        # Each reader is a process that may take a gigabyte.
        self._readers = anyio.CapacityLimiter(_READERS)

    @property
    def is_on(self) -> bool:
        """Whether files may be kept."""
        return self._max_bytes > 0

    async def find(self, memory: LongTermMemory, name: str) -> tuple[str, KeptFile]:
        """Return a file's name and the file.

        Raises:
            FileRefused: The folder has no file of this name; the text names similar ones.
        """
        files = await self.folders.files(memory)
        wanted = name_key(clean_name(name))
        for known, file in files.items():
            if name_key(known) == wanted or name.strip() == reference(file):
                return known, file
        missing = _("there is no file {name}", name=repr(clean_name(name)))
        if files:
            some = joined(f"`{known}`" for known in list(files)[:10])
            missing = _("{reason}; there are: {names}", reason=missing, names=some)
        raise FileRefused(missing)

    async def content(self, file: KeptFile) -> bytes:
        """Return a file's bytes.

        Raises:
            FileRefused: They are lost.
        """
        data = await self._blobs.get(file.blob)
        if data is None:
            raise FileRefused(
                _("the file was kept, but cannot be read again: the disk may be failing")
            )
        return data

    async def keep_blob(self, request: FileRequest, name: str, mime: str, blob: str) -> KeptFile:
        """Keep a file that the blob store has, such as one that a person sent.

        Raises:
            FileRefused: It cannot be kept; the text says why.
            TapeWriteError: The storage failed.
        """
        data = await self._blobs.get(blob)
        if data is None:
            raise FileRefused(_("the file that was sent cannot be read again"))
        return await self._keep(request, name, mime, data, written=False)

    async def write(self, request: FileRequest, name: str, text: str, mime: str) -> KeptFile:
        """Keep a text that the model wrote, as a new file or a new version of one.

        Raises:
            FileRefused: It cannot be kept; the text says why.
            TapeWriteError: The storage failed.
        """
        data = text.encode("utf-8", "replace")
        return await self._keep(request, name, mime, data, written=True)

    async def _keep(
        self, request: FileRequest, name: str, mime: str, data: bytes, *, written: bool
    ) -> KeptFile:
        if not self.is_on:
            raise FileRefused(_("the owner has switched files off"))
        name = clean_name(name)
        async with self._readers:
            sections, note = await read_sections(data, mime)
        async with self._changing:
            tapes = await self.folders.tapes(request.memory)
            tape = next((tape for tape in tapes if request.key in tape.fold.keys), None)
            if tape is None:
                same = _of_name(tapes, name)
                if same is not None:
                    request.check_may_change(same)
                    name = same.name
                tape = self.folders.tape(same.tape) if same is not None else tapes[0]
                number = 0 if same is None else same.number
                file = KeptFile(tape.tape.name, number, 0, 0, name, mime, len(data), "")
                file = replace(file, by=request.by, written=written, note=note)
                self._check_room(tapes, tape.fold, file)
                blob = await self._put(data)
                if same is not None and same.blob == blob:
                    # Another version would only push out the one before.
                    return same
                file = replace(file, blob=blob)
                try:
                    await _append(tape, request, file, sections)
                except TapebotError:
                    await self._drop_unused(blob, tape)
                    raise
            await self._finish(tape)
        kept = tape.fold.files.get(tape.fold.keys.get(request.key, 0))
        if kept is None:
            raise FileRefused(_("the file was deleted meanwhile"))
        return kept

    async def delete(self, request: FileRequest, file: KeptFile) -> None:
        """Delete a file with its former version, for good; a message that brought it keeps its own.

        Raises:
            FileRefused: The person may not.
            TapeWriteError: The storage failed; repeating the request goes on.
        """
        request.check_may_change(file)
        await self._change(FILE_DELETED, request, file)

    async def restore(self, request: FileRequest, file: KeptFile) -> KeptFile:
        """Swap a file's former version and the current one; return the version that is current now.

        Raises:
            FileRefused: There is no former version, or the person may not.
            TapeWriteError: The storage failed.
        """
        request.check_may_change(file)
        fold = self.folders.tape(file.tape).fold
        if file.number not in fold.former and request.key not in fold.keys:
            raise FileRefused(_("this file has no former version"))
        await self._change(FILE_RESTORED, request, file)
        return fold.files.get(file.number, file)

    async def _change(self, event: str, request: FileRequest, file: KeptFile) -> None:
        tape = self.folders.tape(file.tape)

        def compose(fold: FolderFold, version: int) -> tuple[list[TapeEntry], None]:  # noqa: ARG001
            if request.key in fold.keys or file.number not in fold.files:
                return [], None
            return [change_entry(event, file.number, request.key)], None

        async with self._changing:
            await tape.change(compose)
            await self._finish(tape)

    async def finish(self, memory: LongTermMemory, key: str) -> bool:
        """Finish what a kill or an error stopped; return whether a request was carried out."""
        done = False
        for tape in await self.folders.tapes(memory):
            done = done or key in tape.fold.keys
            if tape.fold.stale or key in tape.fold.keys:
                async with self._changing:
                    await self._finish(tape)
        return done

    # Ending.

    async def _finish(self, tape: FolderTape) -> None:
        """Update the readable copy, and erase what is stale."""
        fold = await tape.open()
        try:
            if self._mirror is not None:
                await self._mirror.update(tape.tape.name, listing([fold]))
        except OSError as error:
            reason = disk_error_text(error)
            raise FileRefused(
                _("a copy of the file could not be removed ({reason}); try again", reason=reason)
            ) from error
        if not fold.stale:
            return
        tombstones = []
        for file in fold.stale.values():
            entries = await tape.tape.read_entries(file.ids[0], file.ids[-1])
            tombstones += [tombstone(entry) for entry in entries if not is_erased(entry)]
        unused = await self._unused({file.blob for file in fold.stale.values()}, tape, tombstones)
        if unused:
            # Before the entries that name them: after a kill nothing else would.
            await self._erase_blobs(TextMatcher(), unused)
        await tape.erase(tombstones)

    async def _drop_unused(self, blob: str, tape: FolderTape) -> None:
        """Remove the bytes of a file that the storage refused, unless something else names them."""
        try:
            if unused := await self._unused({blob}, tape, []):
                await self._erase_blobs(TextMatcher(), unused)
        except TapebotError as error:
            logger.warning("a file that was not kept still takes space: %s", error)

    async def _unused(
        self, blobs: set[str], folder: FolderTape, tombstones: list[TapeEntry]
    ) -> list[str]:
        """Return the blobs that no entry names but those that become tombstones."""
        from bot.memory.erasure.erasure_candidates import visit_entries
        from bot.memory.erasure.persons_entries import blobs_in

        left, going = blobs - {""}, {entry.id for entry in tombstones}

        def look(tape: str, entry: TapeEntry) -> None:
            if tape != folder.tape.name or entry.id not in going:
                left.difference_update(blobs_in(entry))

        for tape in await self._store.list_tapes() if left else ():
            await visit_entries(self._store, tape, partial(look, tape))
        return sorted(left)

    # Limits.

    def _check_room(self, tapes: list[FolderTape], fold: FolderFold, file: KeptFile) -> None:
        going = fold.outgoing(file)
        used = sum(tape.fold.size() for tape in tapes) - (0 if going is None else going.size)
        if used + file.size > self._max_bytes:
            raise FileRefused(
                _(
                    "the folder would hold more than {size} MB; delete files first, with /files delete",
                    size=format_number(self._max_bytes / _MEGABYTE),
                )
            )
        if not file.number and sum(len(tape.fold.files) for tape in tapes) >= MOST_FILES:
            most = format_number(MOST_FILES)
            raise FileRefused(_("the folder has {most} files, which is the maximum", most=most))

    async def _put(self, data: bytes) -> str:
        try:
            free = await self._blobs.free()
            if free is not None and free - len(data) < SPARE_BYTES:
                raise FileRefused(_("the file is {reason}", reason=NO_SPACE))
            return await self._blobs.put(data)
        except OSError as error:
            reason = disk_error_text(error)
            raise FileRefused(_("the file cannot be kept: {reason}", reason=reason)) from error


async def _append(
    tape: FolderTape, request: FileRequest, file: KeptFile, sections: list[tuple[str, str]]
) -> None:
    """Append a file as a new version of the one with its number, or as a new file."""

    def compose(fold: FolderFold, version: int) -> tuple[list[TapeEntry], None]:
        if request.key in fold.keys:
            return [], None
        number = file.number if file.number in fold.files else fold.next_number
        entries = kept_entries(
            version,
            sections,
            replace(file, number=number),
            key=request.key,
            session=request.memory.tape.name,
            turn=request.turn,
        )
        return entries, None

    await tape.change(compose)


def _of_name(tapes: list[FolderTape], name: str) -> KeptFile | None:
    """Return the file of a folder that has this name; None if there is none."""
    files = listing([tape.fold for tape in tapes])
    return next((file for known, file in files.items() if name_key(known) == name_key(name)), None)


def reference(file: KeptFile) -> str:
    """Return a short name for a file in commands of buttons, which hold few characters."""
    return f"#{file.number}-{crc32(file.tape.encode()):08x}"
