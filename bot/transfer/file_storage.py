"""Read and write a home in files for a migration (implements ``HomeStorage``)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from bot.bus.access.access_list import AccessList
from bot.bus.access.file_store import FILE, read_access_list
from bot.bus.access.store import encode as encode_roster
from bot.bus.journal import AcceptedMessage, JournalState, encode_in, encode_seen
from bot.bus.media.blobs import FolderBlobs
from bot.core.errors import TapeWriteError
from bot.core.files import private_directory, replace_file
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import TapeFolder
from bot.transfer.storage import BusState, Pages, TapeMetadata, UpdateKey, in_order
from bot.transfer.tape_file_writer import TapeFileWriter

_BLOB = re.compile(r"[0-9a-f]{64}")


class FileHomeStorage:
    """The files of a home folder.

    Args:
        home: The folder.
        workspace: The workspace of the tapes.
    """

    def __init__(self, home: Path, workspace: str = "") -> None:
        self._home = home
        self._folder = TapeFolder(home / "tapes", workspace)
        # Reading takes no lock and repairs nothing, so the source stays unchanged.
        self.tapes = FileTapeStore(home / "tapes", workspace=workspace, read_only=True)
        self._journal = home / "bus" / "inbox.jsonl"

    @property
    def location(self) -> str:
        """The folder's path."""
        return str(self._home)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder, so that no tapebot runs on it; create it if it does not exist.

        Raises:
            TapeLocked: A tapebot uses the folder.
        """
        private_directory(self._home)
        self._folder.lock()
        try:
            yield
        finally:
            self._folder.unlock()

    async def has_data(self) -> bool:
        """Return whether the folder has tapes, bus messages or an access list."""
        return bool(
            await self.tapes.list_tapes()
            or await self.read_bus_state() != BusState()
            or await self.read_access_list() != AccessList()
        )

    def others(self) -> int:
        """Return how many tapes of other workspaces are in the folder. Blocking."""
        own = self._folder.stem("").partition("__")[0]
        names = {path.name.partition(".")[0] for path in self._folder.root.glob("*__*.jsonl*")}
        return sum(not name.startswith(f"{own}__") for name in names)

    async def write_tape(self, tape: str, shape: TapeMetadata, entries: Pages) -> None:
        """Create a tape's files."""
        files = await anyio.to_thread.run_sync(TapeFileWriter, self._folder, tape, shape)
        try:
            async for page in entries:
                await anyio.to_thread.run_sync(files.write, page)
            await anyio.to_thread.run_sync(files.finish)
        except OSError as error:
            raise TapeWriteError(f"tape {tape} could not be made ({error.strerror})") from error
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(files.give_up)

    async def read_bus_state(self) -> BusState:
        """Return the contents of the bus journal."""
        return await anyio.to_thread.run_sync(self._waiting)

    async def write_bus_state(self, waiting: BusState) -> None:
        """Write a bus journal."""
        records = [
            AcceptedMessage(number, at, inbound)
            for number, (at, inbound) in enumerate(waiting.messages, start=1)
        ]
        lines = [encode_seen(key, len(records)) for key in waiting.seen]
        lines += [encode_in(record) for record in records]
        private_directory(self._journal.parent)
        await anyio.to_thread.run_sync(replace_file, self._journal, b"".join(lines))

    async def read_access_list(self) -> AccessList:
        """Return the access list from its file."""
        return await anyio.to_thread.run_sync(read_access_list, self._home / FILE)

    async def write_access_list(self, access_list: AccessList) -> None:
        """Write the access list's file."""
        data = encode_roster(access_list)
        await anyio.to_thread.run_sync(replace_file, self._home / FILE, data)

    async def blob_names(self) -> AsyncGenerator[str, None]:
        """Yield the names of all attachments."""
        for folder in await anyio.to_thread.run_sync(_listed, self._home / "blobs"):
            for path in await anyio.to_thread.run_sync(_listed, folder):
                if _BLOB.fullmatch(path.name):
                    yield path.name

    async def read_blob(self, name: str) -> bytes | None:
        """Return an attachment's bytes."""
        return await anyio.to_thread.run_sync(self._blob, name)

    async def write_blob(self, data: bytes) -> None:
        """Store an attachment."""
        store = await anyio.to_thread.run_sync(FolderBlobs, self._home / "blobs")
        await store.put(data)

    async def read_updates(self) -> dict[UpdateKey, bytes]:
        """Return the updates in the channels' spools."""
        return await anyio.to_thread.run_sync(self._updates)

    async def write_updates(self, updates: dict[UpdateKey, bytes]) -> None:
        """Write updates to the channels' spools, one file each."""
        for (channel, number), data in updates.items():
            folder = private_directory(self._home / "channels" / channel / "spool")
            await anyio.to_thread.run_sync(replace_file, folder / f"{number}.json", data)

    def _waiting(self) -> BusState:
        state = JournalState()
        try:
            data = self._journal.read_bytes()
        except FileNotFoundError:
            return BusState()
        for raw in data.split(b"\n"):
            if raw:
                state.read(raw)
        messages = in_order((one.accepted_at, one.inbound) for one in state.pending.values())
        pending = {record.key for record in state.pending.values()}
        return BusState(messages, tuple(key for key in state.seen if key not in pending))

    def _blob(self, name: str) -> bytes | None:
        try:
            data = (self._home / "blobs" / name[:2] / name).read_bytes()
        except FileNotFoundError:
            return None
        return data if hashlib.sha256(data).hexdigest() == name else None

    def _updates(self) -> dict[UpdateKey, bytes]:
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
