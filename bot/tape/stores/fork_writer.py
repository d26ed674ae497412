"""Copy a tape from an entry on into a new file. Blocking."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bot.core.files import PRIVATE_FILE
from bot.tape.chain import CHAIN_START
from bot.tape.codec import encode_chained
from bot.tape.entries import TapeEntry
from bot.tape.stores.part_reader import PartReader, TapeSnapshot

_PAGE = 512
_LAST_PAGE = 32


def write_fork(
    reader: PartReader,
    parts: TapeSnapshot,
    *,
    first: int | None,
    last: int | None = None,
    begin: Callable[[Sequence[TapeEntry], int], TapeEntry],
    out: Path,
    beat: Callable[[], None],
) -> None:
    """Write a fork's live file durably; if that fails, remove it.

    Args:
        reader: Reads the parent.
        parts: Snapshot of the parent.
        first: Id of the first entry to copy; None for all.
        last: Id of the last entry to copy; None for all.
        begin: Returns the header, given the first copied entries and the id of the last one.
        out: The new file.
        beat: Called now and then; may raise to cancel.

    Raises:
        TapeNotFound: There is no such entry.
        OSError: The storage failed.
    """
    newest = _newest(reader, parts) or 0
    last = newest if last is None else min(newest, last)
    copied = _between(reader, parts, first or 1, last)
    page = next(copied, [])
    head = begin(page, last)
    descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            data, value = encode_chained([head], CHAIN_START)
            file.write(data)
            while page:
                beat()
                # Each is an append of its own, since only complete appends were read.
                for entry in page:
                    if entry.id > head.id:
                        data, value = encode_chained([entry], value)
                        file.write(data)
                page = next(copied, [])
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        out.unlink()
        raise


def _between(
    reader: PartReader, parts: TapeSnapshot, first: int, last: int
) -> Iterator[list[TapeEntry]]:
    """Yield the entries of a range of ids in non-empty pages."""
    # Between parts there may be any number of ids, whose entries a reset dropped.
    ranges = [(segment.first_id, segment.last_id) for segment in parts.segments]
    for low, high in [*ranges, (parts.first_id, parts.last_id)]:
        top = min(high, last)
        for floor in range(max(low, first), top + 1, _PAGE):
            if page := reader.read(parts, floor, min(top, floor + _PAGE - 1)):
                yield page


def _newest(reader: PartReader, parts: TapeSnapshot) -> int | None:
    """Return the newest readable id."""
    ranges = [(segment.first_id, segment.last_id) for segment in parts.segments]
    for low, high in reversed([*ranges, (parts.first_id, parts.last_id)]):
        for top in range(high, low - 1, -_LAST_PAGE):
            if page := reader.read(parts, max(low, top - _LAST_PAGE + 1), top):
                return page[-1].id
    return None
