"""The inbox journal as a file: durable appends, duplicate detection, compaction."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import anyio.to_thread

from bot.bus.journal import (
    AcceptedMessage,
    JournalState,
    Key,
    encode_accepted,
    encode_done,
    encode_state,
)
from bot.core.append_file import AppendFile
from bot.core.errors import BusError
from bot.core.files import (
    disk_error_text,
    private_directory,
    replace_file,
    sync_directory,
    write_synced,
)
from bot.core.i18n import _

logger = logging.getLogger(__name__)

_REMEMBERED = 20_000
_COMPACT_BYTES = 4 << 20


class InboxJournal:
    """Stores accepted messages until they are done, and their ids for longer."""

    def __init__(self, path: Path, *, sync: bool) -> None:
        """Read the file, and rewrite it with only the live records."""
        private_directory(path.parent)
        self.state = JournalState()
        self._path = path
        self._sync = sync
        self._done: list[int] = []
        self._writing: dict[Key, anyio.Event] = {}
        self._compacted: anyio.Event | None = None
        self._compact_at = _COMPACT_BYTES
        self._overdue = False
        if path.exists():
            self.state.read(path.read_bytes())
            if self.state.damaged:
                logger.warning("%d damaged lines in %s were skipped", self.state.damaged, path)
            replace_file(path, encode_state(*self._snapshot()))
        self._file = self._open(path)

    async def wait_settled(self, key: Key) -> None:
        """Wait until no compaction runs and this message is not being written."""
        await self.compact_if_due()
        while (busy := self._compacted or self._writing.get(key)) is not None:
            await busy.wait()

    async def accept(self, record: AcceptedMessage) -> None:
        """Make a message durable; it counts as pending and known from the call on.

        Cancellation takes effect only after the write.

        Raises:
            BusError: The storage refused; the message is forgotten again.
        """
        state, key = self.state, record.key
        line = encode_accepted(record, self._done)
        state.seq = record.seq
        state.pending[record.seq] = record
        state.seen[key] = None
        self._writing[key] = anyio.Event()
        done, self._done = self._done, []
        try:
            await self._file.append(line, record.seq)
        except BaseException as error:
            self._done = done + self._done
            del state.pending[record.seq], state.seen[key]
            if not isinstance(error, OSError):
                # asyncio itself took the writer away. The message comes again; if the file has it
                # nevertheless, it is recognised on its tape after a restart.
                raise
            logger.warning("a message was not accepted: %s", error)
            raise BusError(
                _("the message could not be recorded: {why}", why=disk_error_text(error))
            ) from error
        finally:
            self._writing.pop(key).set()

    def done(self, record: AcceptedMessage) -> bool:
        """Mark a message as done, in the file with its next line; False if it was not pending."""
        if self.state.pending.pop(record.seq, None) is None:
            return False
        self._done.append(record.seq)
        self._overdue |= record.seq <= self.state.purge_through_seq
        return True

    async def purge(self) -> None:
        """Remove the words of done messages from the file, and of pending ones once they are done.

        Raises:
            BusError: The storage refused; nothing is lost, and ``compact_if_due`` tries again.
        """
        self.state.purge_through_seq = self.state.seq
        self._overdue = True
        if not await self.compact_if_due():
            raise BusError(
                _("{path} could not be rewritten; check the disk, then try again", path=self._path)
            )

    async def compact_if_due(self) -> bool:
        """Rewrite the file if that is due; messages that arrive meanwhile wait.

        Returns:
            False if the storage refused, which is logged.
        """
        while self._compacted is not None:
            await self._compacted.wait()
        if self._file.fd < 0 or not (self._overdue or self._file.size >= self._compact_at):
            return True
        self._compacted = anyio.Event()
        kept = False
        try:
            with anyio.CancelScope(shield=True):
                kept = await self._compact()
        finally:
            self._compacted.set()
            self._compacted = None
        return kept

    async def close(self) -> None:
        """Write pending ``done`` records, and close the file."""
        with anyio.CancelScope(shield=True):
            await self.compact_if_due()
            await self._quiet()
            try:
                await anyio.to_thread.run_sync(self._file.restore)
                if self._done:
                    await self._file.append(encode_done(self._done), self.state.seq)
            except OSError as error:
                # The tapes recognise messages that are delivered again.
                logger.warning("the inbox journal was not closed properly: %s", error)
        self._file.close()

    async def _quiet(self) -> None:
        while self._writing:
            await next(iter(self._writing.values())).wait()

    async def _compact(self) -> bool:
        await self._quiet()
        self._done, done = [], self._done
        overdue, self._overdue = self._overdue, False
        data = await anyio.to_thread.run_sync(encode_state, *self._snapshot())
        try:
            fresh = await anyio.to_thread.run_sync(self._replaced, data)
        except OSError:
            logger.exception("the inbox journal could not be compacted; it stays unchanged")
            self._done = done + self._done
            self._overdue |= overdue
            kept = False
        else:
            self._file.close()
            self._file = fresh
            fresh.set_sequence(self.state.seq)
            kept = await self._named()
        self._compact_at = self._file.size + _COMPACT_BYTES
        return kept

    def _replaced(self, data: bytes) -> AppendFile:
        """Replace the file with a new one, which is opened before the rename.

        Opening it afterwards could fail for lack of a descriptor, and appends would go to the
        unlinked file.
        """
        path = self._path.with_name(self._path.name + ".new")
        write_synced(path, data)
        fresh = self._open(path)
        try:
            path.replace(self._path)
        except OSError:
            fresh.close()
            raise
        fresh.path = self._path
        return fresh

    async def _named(self) -> bool:
        """Make the rename durable; return False if the storage refused."""
        try:
            await anyio.to_thread.run_sync(sync_directory, self._path.parent)
        except OSError:
            logger.exception("the inbox journal's folder could not be synchronised; retrying")
            self._overdue = True
            return False
        return True

    def _open(self, path: Path) -> AppendFile:
        file = AppendFile(path, sync=self._sync)
        file.set_sequence(self.state.seq)
        return file

    def _snapshot(self) -> tuple[list[Key], list[AcceptedMessage], int, int]:
        """Drop the oldest ids beyond the limit; return the live records."""
        state = self.state
        while len(state.seen) > _REMEMBERED + len(state.pending):
            state.seen.popitem(last=False)
        if all(seq > state.purge_through_seq for seq in state.pending):
            state.purge_through_seq = 0
        return state.done, list(state.pending.values()), state.seq, state.purge_through_seq
