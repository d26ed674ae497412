"""Open live files: read the header, repair a torn end, detect lost entries. Blocking."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio

from bot.core.append_file import AppendFile
from bot.core.clock import Clock
from bot.core.errors import TapeError, TapeNotFound, TapeWriteError
from bot.core.files import disk_error_text
from bot.core.i18n import _
from bot.tape.chain import CHAIN_START
from bot.tape.codec import CANCEL, check_depth, encode_chained, encode_entries, last_link
from bot.tape.entries import TapeEntry, event
from bot.tape.store import (
    HEADER_EVENT,
    REPAIR_EVENT,
    Segment,
    header_entry,
    header_title,
    last_dropped,
)
from bot.tape.stores import line_scan as scan
from bot.tape.stores.changes import stamp
from bot.tape.stores.folder import TapeFolder, finish_archive, successor_path
from bot.tape.stores.heads import HeadFile
from bot.tape.stores.line_scan import FileSource, LineMarks
from bot.tape.stores.part_reader import PartReader, TapeSnapshot

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class LiveTape:
    """An open tape.

    Attributes:
        tape: The session's key.
        file: The live file.
        head: The live file's header.
        chain: Link values of the newest entries by id; empty if the file is from before the chain.
        users: How many callers hold the tape.
        free: Set when a caller releases the tape, if somebody waits for that.
        marks: Places of lines in the live file. Whatever replaces the file opens the tape anew.
    """

    tape: str
    file: AppendFile
    header: TapeEntry
    chain: dict[int, bytes]
    users: int = 0
    free: anyio.Event | None = None
    marks: LineMarks = field(default_factory=LineMarks)
    _sealed: tuple[Segment, ...] | None = None

    @property
    def first_id(self) -> int:
        """The live file's first id."""
        return self.header.id

    @property
    def title(self) -> str | None:
        """The title in the header."""
        return header_title(self.header)

    @property
    def dropped(self) -> int:
        """Id of the last entry that a reset dropped; 0 without a reset."""
        return last_dropped(self.header)

    @property
    def chain_end(self) -> bytes:
        """The value that the next entry's link refers to."""
        return self.chain.get(self.file.queued_seq, CHAIN_START)

    def encode(self, entries: Sequence[TapeEntry]) -> bytes:
        """Return the lines of the next append.

        Raises:
            InvalidEntry: An entry would not read back exactly, or is nested too deeply.
        """
        if not self.chain:
            data = encode_entries(entries)
            check_depth(entries, data.split(b"\n"))
            return data
        data, value = encode_chained(entries, self.chain_end)
        check_depth(entries, data.split(b"\n"))
        # A failed append falls back to an earlier entry, whose link is still here.
        for number in [n for n in self.chain if n < self.file.durable_seq]:
            del self.chain[number]
        self.chain[entries[-1].id] = value
        return data

    def sealed(self, folder: TapeFolder) -> tuple[Segment, ...]:
        """Return the segments before the live file; the folder is read once. Blocking."""
        if self._sealed is None:
            # A reader beside the writer may find a segment that was sealed after it opened the
            # tape.
            segments = folder.segments(self.tape)
            self._sealed = tuple(
                segment
                for segment in segments
                if self.dropped < segment.first_id and segment.last_id < self.first_id
            )
        return self._sealed

    def parts(self, folder: TapeFolder, fd: int | None = None) -> TapeSnapshot:
        """Return a snapshot of the tape, read through another descriptor if one is given."""
        marks = self.marks if fd is None else None
        file = FileSource(self.file.fd if fd is None else fd, self.file.size, marks)
        return TapeSnapshot(
            self.tape, file, self.first_id, self.file.durable_seq, self.sealed(folder)
        )


class LiveFiles:
    """Open live files and repair them.

    Attributes:
        repaired: What was repaired so far.
        lost: Descriptions of lost or replaced entries, by tape.
        clock: Source of the entries' ``ts``.
        copied: How many forks are copying each tape now, whose dropped segments must stay.

    Args:
        folder: The tapes' folder.
        parts: Counts damaged lines.
        heads: The newest known entry of each tape.
        clock: Source of the entries' ``ts``.
        sync: Sync the disk at each append.
        read_only: Repair nothing.
    """

    def __init__(
        self,
        folder: TapeFolder,
        parts: PartReader,
        heads: HeadFile,
        clock: Clock,
        *,
        sync: bool,
        read_only: bool,
    ) -> None:
        self._folder = folder
        self._parts = parts
        self._heads = heads
        self.clock = clock
        self._sync = sync
        self._read_only = read_only
        self.repaired = {"torn_bytes": 0, "void_entries": 0}
        self.lost: dict[str, list[str]] = {}
        self.copied: Counter[str] = Counter()

    def open(self, tape: str) -> LiveTape:
        """Open a tape's live file.

        Raises:
            TapeNotFound: There is none.
            TapeError: It belongs to another tape, or the storage failed.
        """
        path = self._folder.live_path(tape)
        with map_os_errors(f"tape {tape} could not be opened", TapeError):
            if not self._read_only:
                finish_archive(path)
            file = self._descriptor(tape, path)
            if file is None:
                raise no_such_tape(tape)
            try:
                return self._opened(tape, file)
            except BaseException:
                file.close()
                raise

    def compare_heads(self, beat: Callable[[], None]) -> int:
        """Log which tapes lack recorded entries; return how many.

        Args:
            beat: Called between tapes; may raise to cancel.
        """
        lacking = 0
        for stem, head in self._heads.known().items():
            beat()
            path = self._folder.root / f"{stem}.jsonl"
            last_id = None
            for candidate in (path, successor_path(path), path):
                with suppress(OSError), scan.open_source(candidate) as source:
                    last_id = scan.read_tail(source).last_id
                    break
            if last_id is not None and last_id >= head.last_id:
                continue
            lacking += 1
            logger.error(
                "%s is %s: its entries up to %d were recorded; restore a copy that has them, or "
                "continue without",
                path.name,
                "gone" if last_id is None else f"cut short after entry {last_id}",
                head.last_id,
            )
        return lacking

    def note_head(self, tape: str, data: bytes) -> None:
        """Record a tape's newest entry from the lines that end its file."""
        self._note(self._folder.stem(tape), data)

    def _note(self, stem: str, data: bytes) -> None:
        self._heads.note(stem, *last_link(data))

    def drop_sealed(self, tape: str, last: int) -> None:
        """Remove the segments that a reset dropped, unless a fork is copying them.

        What remains is ignored, and removed when the tape is next opened.

        Args:
            tape: The session's key.
            last: Id of the last dropped entry.
        """
        if self.copied[tape]:
            return
        try:
            self._folder.drop_segments(tape, last)
        except OSError as error:
            logger.warning(
                "segments of tape %s that a reset dropped could not be removed (%s); retrying when "
                "the tape is opened",
                tape,
                disk_error_text(error),
            )

    def last_known_id(self, tape: str, version: int) -> int:
        """Return the newest recorded id of a tape without a live file; 0 if no entry is missing.

        Args:
            tape: The session's key.
            version: Id of the last sealed entry.
        """
        head = self._heads.get(self._folder.stem(tape))
        if head is None or head.last_id <= version:
            return 0
        logger.error("the file of a tape is missing, with its entries up to %d", head.last_id)
        self.lost[tape] = [f"its entries {version + 1} to {head.last_id} are missing"]
        return head.last_id

    def _descriptor(self, tape: str, path: Path) -> AppendFile | None:
        if not self._read_only:
            if not path.exists():
                return None
            note = partial(self._note, self._folder.stem(tape))
            return AppendFile(path, sync=self._sync, after_write=note)
        # While another process archives, the successor briefly is the live file.
        for candidate in (path, successor_path(path), path):
            with suppress(FileNotFoundError):
                return AppendFile(candidate, sync=False, writable=False)
        return None

    def _opened(self, tape: str, file: AppendFile) -> LiveTape:
        source = FileSource(file.fd, file.size)
        first = scan.first_line(source)
        ending = scan.read_tail(source)
        last_id = ending.last_id
        if first is None:
            # Nothing in the file is readable; its ids follow the sealed ones.
            sealed = self._folder.segments(tape)
            last_id += sealed[-1].last_id if sealed else 0
            head = replace(header_entry(tape, None, previous=sealed[-1] if sealed else None), id=1)
        else:
            head = first.entry
        named = head.data.get("session") if head.name == HEADER_EVENT else None
        if not isinstance(named, str):
            head = replace(header_entry(tape, None), id=head.id)
        elif named != tape:
            raise TapeError(
                _(
                    "the file of tape {tape} belongs to {named}: {name}",
                    tape=tape,
                    named=named,
                    name=file.path.name,
                )
            )
        lost = self._lost(tape, head, source, ending, last_id)
        file.set_sequence(max(last_id, lost.get("missing", 0)))
        chained = first is None or first.link is not None
        live = LiveTape(
            tape, file, head, {file.durable_seq: ending.chain or CHAIN_START} if chained else {}
        )
        self._parts.record_damage(tape, head.id, ending.damaged)
        if first is None:
            live.header = head = replace(head, id=file.durable_seq + 1)
        if self._read_only:
            return live
        if live.dropped:
            self.drop_sealed(tape, live.dropped)
        if not ending.clean or lost or first is None:
            self._repair(live, ending, lost, [head] if first is None else [])
        self._heads.note(
            self._folder.stem(tape), file.durable_seq, live.chain.get(file.durable_seq)
        )
        return live

    def _lost(
        self, tape: str, head: TapeEntry, source: FileSource, ending: scan.Tail, last_id: int
    ) -> dict[str, int]:
        """Compare a file with the newest recorded entry of its tape.

        Returns:
            ``missing``: the last recorded id, if the file ends before it; ``replaced``: the id of
            an entry whose digest differs.
        """
        known = self._heads.get(self._folder.stem(tape))
        if known is None or known.last_id < head.id - 1:
            return {}
        if known.last_id > last_id:
            self.lost[tape] = [f"its entries {last_id + 1} to {known.last_id} are missing"]
            return {"missing": known.last_id}
        if known.value == CHAIN_START or known.last_id < head.id or ending.damaged:
            return {}
        value = scan.link_at(source, known.last_id) if known.last_id < last_id else ending.chain
        if value in (None, known.value):
            return {}
        self.lost[tape] = ["it was replaced by another copy"]
        return {"replaced": known.last_id}

    def _repair(
        self, live: LiveTape, ending: scan.Tail, lost: dict[str, int], head: Sequence[TapeEntry]
    ) -> None:
        """Close a torn line and append a repair event, which takes the ids of a void append."""
        file = live.file
        found = {
            "torn_bytes": ending.torn,
            "void": ending.void,
            "damaged": len(ending.damaged) + ending.bad_newline,
            **lost,
        }
        note = stamp([*head, event(REPAIR_EVENT, found)], self.clock, file.queued_seq)
        close = CANCEL + b"\n" if ending.unterminated else b""
        with map_os_errors("a tape that was cut short could not be repaired", TapeWriteError):
            if ending.bad_newline:
                _end_line(file.path, file.size - 1)
            file.append_now(close + live.encode(note), note[-1].id)
        if lost:
            logger.error("%s has changed, entries are missing: %s", file.path.name, found)
        else:
            logger.warning("%s was cut short and has been repaired: %s", file.path.name, found)
        self.repaired["torn_bytes"] += ending.torn
        self.repaired["void_entries"] += ending.void


def _end_line(path: Path, offset: int) -> None:
    """Replace a damaged newline durably."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, b"\n", offset)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def no_such_tape(tape: str) -> TapeNotFound:
    """Return the error that says that there is no such tape."""
    return TapeNotFound(_("there is no tape {tape}", tape=tape))


@contextmanager
def map_os_errors(failure: str, kind: type[TapeError]) -> Iterator[None]:
    """Raise an ``OSError`` as an error that says what it means for the tape."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failure}: {disk_error_text(error)}; recorded entries are kept") from error
