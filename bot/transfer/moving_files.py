"""A home in files, as a place that can be moved from and to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from bot.bus.access.book import encode as encode_roster
from bot.bus.access.file_book import FILE, read_roster
from bot.bus.access.roster import Roster
from bot.bus.journal import JournalState, Record, encode_in, encode_seen
from bot.bus.media.blobs import BlobStore
from bot.core.errors import TapeWriteError
from bot.core.files import private_directory, replace_file
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import TapeFolder
from bot.transfer.moving_folder import TapeFiles
from bot.transfer.moving_ports import Pages, Shape, Update, Waiting, in_order

_BLOB = re.compile(r"[0-9a-f]{64}")


class FilesPlace:
    """The files of a home folder.

    Args:
        home: The folder.
        workspace: That of the tapes.
    """

    def __init__(self, home: Path, workspace: str = "") -> None:
        self._home = home
        self._folder = TapeFolder(home / "tapes", workspace)
        # Reading takes no lock and mends nothing: what is moved stays as it is.
        self.tapes = FileTapeStore(home / "tapes", workspace=workspace, read_only=True)
        self._journal = home / "bus" / "inbox.jsonl"

    @property
    def where(self) -> str:
        """The folder's path."""
        return str(self._home)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder, so that no tapebot runs on it meanwhile; it is made if it is not there.

        Raises:
            TapeLocked: One does.
        """
        private_directory(self._home)
        self._folder.lock()
        try:
            yield
        finally:
            self._folder.unlock()

    async def anything(self) -> bool:
        """Say whether the folder holds anything that can be moved."""
        return bool(
            await self.tapes.list_tapes()
            or await self.waiting() != Waiting()
            or await self.roster() != Roster()
        )

    def others(self) -> int:
        """Return how many tapes of other workspaces lie in the folder. Blocking."""
        own = self._folder.stem("").partition("__")[0]
        names = {path.name.partition(".")[0] for path in self._folder.root.glob("*__*.jsonl*")}
        return sum(not name.startswith(f"{own}__") for name in names)

    async def keep_tape(self, tape: str, shape: Shape, entries: Pages) -> None:
        """Make a tape's files."""
        files = await anyio.to_thread.run_sync(TapeFiles, self._folder, tape, shape)
        try:
            async for page in entries:
                await anyio.to_thread.run_sync(files.write, page)
            await anyio.to_thread.run_sync(files.finish)
        except OSError as error:
            raise TapeWriteError(f"tape {tape} could not be made ({error.strerror})") from error
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(files.give_up)

    async def waiting(self) -> Waiting:
        """Return what the journal says."""
        return await anyio.to_thread.run_sync(self._waiting)

    async def keep_waiting(self, waiting: Waiting) -> None:
        """Write a journal."""
        records = [
            Record(number, at, inbound)
            for number, (at, inbound) in enumerate(waiting.messages, start=1)
        ]
        lines = [encode_seen(key, len(records)) for key in waiting.seen]
        lines += [encode_in(record) for record in records]
        private_directory(self._journal.parent)
        await anyio.to_thread.run_sync(replace_file, self._journal, b"".join(lines))

    async def roster(self) -> Roster:
        """Return what the roster's file says."""
        return await anyio.to_thread.run_sync(read_roster, self._home / FILE)

    async def keep_roster(self, roster: Roster) -> None:
        """Write the roster's file."""
        data = encode_roster(roster)
        await anyio.to_thread.run_sync(replace_file, self._home / FILE, data)

    async def blobs(self) -> AsyncGenerator[str, None]:
        """Yield the names of the files that people sent."""
        for folder in await anyio.to_thread.run_sync(_listed, self._home / "blobs"):
            for path in await anyio.to_thread.run_sync(_listed, folder):
                if _BLOB.fullmatch(path.name):
                    yield path.name

    async def blob(self, name: str) -> bytes | None:
        """Return a file's bytes."""
        return await anyio.to_thread.run_sync(self._blob, name)

    async def keep_blob(self, data: bytes) -> None:
        """Keep a file's bytes."""
        store = await anyio.to_thread.run_sync(BlobStore, self._home / "blobs")
        await store.put(data)

    async def updates(self) -> dict[Update, bytes]:
        """Return what lies in the channels' spools."""
        return await anyio.to_thread.run_sync(self._updates)

    async def keep_updates(self, updates: dict[Update, bytes]) -> None:
        """Put a file for each into the channels' spools."""
        for (channel, number), data in updates.items():
            folder = private_directory(self._home / "channels" / channel / "spool")
            await anyio.to_thread.run_sync(replace_file, folder / f"{number}.json", data)

    def _waiting(self) -> Waiting:
        state = JournalState()
        try:
            data = self._journal.read_bytes()
        except FileNotFoundError:
            return Waiting()
        for raw in data.split(b"\n"):
            if raw:
                state.read(raw)
        messages = in_order((one.accepted_at, one.inbound) for one in state.pending.values())
        pending = {record.key for record in state.pending.values()}
        return Waiting(messages, tuple(key for key in state.seen if key not in pending))

    def _blob(self, name: str) -> bytes | None:
        try:
            data = (self._home / "blobs" / name[:2] / name).read_bytes()
        except FileNotFoundError:
            return None
        return data if hashlib.sha256(data).hexdigest() == name else None

    def _updates(self) -> dict[Update, bytes]:
        found = {}
        for path in sorted((self._home / "channels").glob("*/spool/*.json")):
            if path.stem.isdecimal():
                found[path.parent.parent.name, int(path.stem)] = path.read_bytes()
        return found


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
