"""Open a tape's files, and read them as they are at one moment. Blocking.

A gap in the ids of a part is damage. It is skipped, counted, and logged once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain, dropwhile, islice
from typing import TypeVar

from bot.core.append_file import AppendFile
from bot.core.clock import Clock
from bot.core.errors import TapeError, TapeNotFound
from bot.core.files import PRIVATE_FILE
from bot.core.i18n import _
from bot.tape.codec import decode_lines, encode_append, quick_id
from bot.tape.entries import TapeEntry
from bot.tape.store import FORMAT, Segment, header_entry, last_dropped
from bot.tape.stores.changes import stamp
from bot.tape.stores.folder import TapeFolder
from bot.tape.stores.parts import PartFile, as_they_are, is_at, write_part

logger = logging.getLogger(__name__)

_APART = 3
"""Entries further apart than this are read separately: that costs as much as to decode three lines."""

_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class OpenTape:
    """An open tape: its live file with its header, the ids that could not be read, the bytes that were cut off."""

    tape: str
    folder: TapeFolder
    file: AppendFile
    head: TapeEntry
    damage: set[int]
    torn: int = 0
    sealed: list[Segment] | None = None

    def note_damage(self, ids: range) -> None:
        """Note the ids of unreadable entries; what is new is logged."""
        if fresh := set(ids) - self.damage:
            logger.warning("damaged lines of a tape cannot be read: %d", len(fresh))
            self.damage |= fresh


@dataclass(frozen=True, slots=True)
class TapeSnapshot:
    """A tape at one moment: its live file, and the newest durable id in it; what comes later does not count."""

    opened: OpenTape
    live: PartFile
    last_id: int

    def sealed(self) -> list[Segment]:
        """Return the segments before the live file, oldest first; the folder is read once.

        Raises:
            FileNotFoundError: Another live file took this one's place, perhaps by a reset, which removes segments.
        """
        opened = self.opened
        if opened.sealed is None:
            low, high = last_dropped(opened.head), opened.head.id
            found = opened.folder.segments(opened.tape) if high > 1 else []
            if high > 1 and not self.is_live:
                raise FileNotFoundError
            opened.sealed = [one for one in found if low < one.first_id and one.last_id < high]
        return opened.sealed

    def parts(self, first: int = 1) -> list[tuple[Segment | None, int, int]]:
        """Return segments, and None for the live file, with ids from one on, each with its first and last."""
        head = self.opened.head.id
        sealed = self.sealed() if first < head else []
        found = [(one, one.first_id, one.last_id) for one in sealed if one.last_id >= first]
        return [*found, (None, head, self.last_id)]

    @contextmanager
    def open(self, segment: Segment | None) -> Iterator[PartFile]:
        """Open a segment, or for None the live file."""
        sealed = segment and self.opened.folder.open_segment(segment)
        with sealed or nullcontext(self.live) as part:
            yield part

    def entries(self, first: int = 1, last: int | None = None) -> Iterator[TapeEntry]:
        """Yield the entries of an id range, both ends included."""
        for segment, begin, end in self.parts(first):
            low, high = max(first, begin), end if last is None else min(last, end)
            if low > high:
                continue
            try:
                with self.open(segment) as part:
                    for entry, _more in part.lines(low, high):
                        if entry.id > low:
                            self.opened.note_damage(range(low, entry.id))
                        low = entry.id + 1
                        yield entry
            except FileNotFoundError:
                if not self.is_live:
                    raise
            self.opened.note_damage(range(low, high + 1))

    def of_ids(self, ids: Collection[int]) -> list[TapeEntry]:
        """Return the existing entries among these ids, in order."""
        ranges: list[tuple[int, int]] = []
        for other in sorted(ids):
            if ranges and other - ranges[-1][1] <= _APART:
                ranges[-1] = ranges[-1][0], other
            else:
                ranges.append((other, other))
        read = (entry for first, last in ranges for entry in self.entries(first, last))
        return [entry for entry in read if entry.id in ids]

    @property
    def is_live(self) -> bool:
        """Whether the live file still is the tape's."""
        return is_at(self.opened.folder.live_path(self.opened.tape), self.live.fd)


def look_once(seen: TapeSnapshot, look: Callable[[TapeSnapshot], _T]) -> list[_T]:
    """Return what a function reads from a tape; nothing if that was reset before its segments were read."""
    try:
        return [look(seen)]
    except FileNotFoundError:
        if seen.is_live:
            raise
        return []


def open_tape(
    folder: TapeFolder, tape: str, clock: Clock | None, damage: set[int], *, sync: bool = True
) -> OpenTape:
    """Open a tape; with a clock, cut off what was not finished, and write anew a header that cannot be read.

    Raises:
        TapeNotFound: There is no such tape.
        TapeError: Its file is of a newer format, or of another session.
    """
    path = folder.live_path(tape)
    if not path.exists():
        raise no_such_tape(tape)
    file = AppendFile(path, sync=sync, writable=clock is not None)
    try:
        part = PartFile(file.fd, file.size)
        tail, head = part.tail(), part.header()
        if head is None:
            head = _lost_header(folder, tape, part)
            if clock is not None:
                logger.warning("the header of %s cannot be read; it is written anew", path.name)
                whole = as_they_are(PartFile(file.fd, tail.end))
                # The first line was the header, whatever follows.
                kept = dropwhile(_is_damaged, whole) if tail.last_id else islice(whole, 1, None)
                data = encode_append(stamp([head], clock, head.id - 1))
                write_part(path, chain([data], kept), PRIVATE_FILE, lambda: None)
                damage.add(head.id)
                file.close()
                return open_tape(folder, tape, clock, damage, sync=sync)
        _check_header(tape, head, path.name)
        last_id = max(tail.last_id, head.id - 1)
        opened = OpenTape(tape, folder, file, head, damage, file.size - tail.end)
        if clock is not None:
            _mend(file, tail.end)
            if dropped := last_dropped(head):
                # A reset that was killed left them.
                with suppress(OSError):
                    folder.drop(tape, dropped)
    except BaseException:
        file.close()
        raise
    opened.note_damage(range(last_id - tail.damaged + 1, last_id + 1))
    file.size = tail.end
    file.set_sequence(last_id)
    return opened


def no_such_tape(tape: str) -> TapeNotFound:
    """Return the error that says that there is no such tape."""
    return TapeNotFound(_("there is no tape {tape}", tape=tape))


def _is_damaged(raw: bytes) -> bool:
    return not decode_lines(raw[:-1])


def _check_header(tape: str, head: TapeEntry, name: str) -> None:
    if (named := head.data.get("session")) != tape:
        raise TapeError(
            _(
                "the file of tape {tape} belongs to {named}: {name}",
                tape=tape,
                named=named,
                name=name,
            )
        )
    if type(form := head.data.get("format")) is int and form > FORMAT:
        raise TapeError(
            _(
                "tape {tape} was written by a newer tapebot (format {form}); update this one",
                tape=tape,
                form=form,
            )
        )


def _lost_header(folder: TapeFolder, tape: str, part: PartFile) -> TapeEntry:
    """Return what a header that cannot be read must have been, as far as that is known; its title is not."""
    sealed, lost, begin = folder.segments(tape), list[int](), 0
    for raw in part.raw_lines():
        if found := decode_lines(raw):
            begin = found[0].entry.id
            sealed = [one for one in sealed if one.last_id < begin]
            break
        lost.append(quick_id(raw))
    if sealed and begin:
        first = sealed[-1].last_id + 1
    elif begin:
        first = max(1, begin - max(1, len(lost)))
    else:
        # No id is used again that a line or a segment seems to have.
        seems = (number - place for place, number in enumerate(lost))
        first = max([1, *seems, *(one.last_id + 1 for one in sealed)])
    dropped = (sealed[0].first_id if sealed else first) - 1
    previous = sealed[-1] if sealed else None
    return replace(header_entry(tape, None, previous=previous, dropped=dropped), id=first)


def _mend(file: AppendFile, end: int) -> None:
    """Write a damaged last newline again, and cut off what follows the last whole append."""
    if end < file.size:
        logger.warning(
            "%s ends with %d bytes of an append that was not finished; they were removed",
            file.path.name,
            file.size - end,
        )
    whole = not end or os.pread(file.fd, 1, end - 1) == b"\n"
    if end < file.size or not whole:
        # The file's own descriptor appends only.
        fd = os.open(file.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            if not whole:
                os.pwrite(fd, b"\n", end - 1)
            os.ftruncate(fd, end)
            os.fsync(fd)
        finally:
            os.close(fd)
