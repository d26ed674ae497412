"""Copy a home between files and PostgreSQL and verify the copy.

Rule 1: the source stays unchanged.
Rule 2: nothing is overwritten: if anything exists in both and differs, it is reported and nothing
    is copied.
Rule 3: an interrupted migration is continued by running it again, which compares what exists.
Rule 4: copies are read back and compared, tapes entry by entry.

Waiting messages are copied last, after everything that they refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256

from bot.bus.access.access_list import AccessList
from bot.core.errors import TapebotError, TapeWriteError
from bot.transfer.storage import BusState, HomeStorage, TapeMetadata, UpdateKey
from bot.transfer.tape_comparison import (
    TapeComparison,
    compare_tape,
    read_line_pages,
    read_tape_metadata,
)

ReportProgress = Callable[[str, str], None]
"""Receives an outcome and a description of the item."""


@dataclass(slots=True)
class MigrationResult:
    """The result of a migration.

    Attributes:
        copied: How many items were copied, or would be.
        tapes: How many tapes are the same in both places.
        entries: How many entries these tapes have.
        differing: How many items differ; if any do, nothing is copied.
        unreadable: How many attachments are missing or damaged.
    """

    copied: int = 0
    tapes: int = 0
    entries: int = 0
    differing: int = 0
    unreadable: int = 0
    _digest: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 over the names of all tapes and the digests of their entries."""
        lines = (f"{name.encode().hex()} {one}\n" for name, one in sorted(self._digest.items()))
        return sha256("".join(lines).encode()).hexdigest()

    def same(self, tape: str, compared: TapeComparison) -> None:
        """Count a tape that is the same in both places."""
        self.tapes += 1
        self.entries += compared.entries
        self._digest[tape] = compared.digest


@dataclass(slots=True)
class _Rest:
    """The items that the target does not have yet."""

    tapes: list[str] = field(default_factory=list)
    blobs: list[str] = field(default_factory=list)
    updates: dict[UpdateKey, bytes] = field(default_factory=dict)
    access_list: AccessList | None = None
    waiting: BusState | None = None


async def migrate_home(
    source: HomeStorage, target: HomeStorage, *, say: ReportProgress, dry_run: bool = False
) -> MigrationResult:
    """Copy what the target does not have, and compare the rest.

    Args:
        source: The home to copy from; stays unchanged. Nothing else may write to either home.
        target: The home to copy to.
        say: Called for each item.
        dry_run: Only report what would be done.

    Raises:
        TapeError: A tape cannot be read, or the storage failed; running it again continues.
        TapebotError: Something else cannot be read or written.
    """
    moved = MigrationResult()
    rest = await _compared(source, target, moved, say)
    if moved.differing:
        return moved
    if dry_run:
        _would(rest, await _sizes(source, rest.tapes), moved, say)
        return moved
    await _copy_blobs(source, target, rest.blobs, moved, say)
    for tape in rest.tapes:
        compared = await _copy_tape(source, target, tape)
        moved.same(tape, compared)
        moved.copied += 1
        say("moved", _told(tape, compared))
    if rest.access_list is not None:
        await target.write_access_list(rest.access_list)
        _same("the access roster", await target.read_access_list(), rest.access_list)
        say("moved", _roster_told(rest.access_list))
        moved.copied += 1
    if rest.updates:
        await target.write_updates(rest.updates)
        found = await target.read_updates()
        _same("the updates that wait", {key: found.get(key) for key in rest.updates}, rest.updates)
        say("moved", f"{len(rest.updates)} updates that channels have not handled")
        moved.copied += 1
    if rest.waiting is not None:
        await target.write_bus_state(rest.waiting)
        _same("what the bus holds", await target.read_bus_state(), rest.waiting)
        say("moved", _waiting_told(rest.waiting))
        moved.copied += 1
    return moved


async def _compared(
    source: HomeStorage, target: HomeStorage, moved: MigrationResult, say: ReportProgress
) -> _Rest:
    """Compare what exists in the target; return what does not."""
    rest = _Rest()
    there = set(await target.tapes.list_tapes())
    for tape in await source.tapes.list_tapes():
        if tape not in there:
            rest.tapes.append(tape)
            continue
        compared = await compare_tape(source.tapes, target.tapes, tape)
        if compared.difference is None:
            moved.same(tape, compared)
            say("there", _told(tape, compared))
        else:
            moved.differing += 1
            say("differs", f"{tape}: {compared.difference}")
    ours, theirs = await source.read_access_list(), await target.read_access_list()
    if ours != theirs:
        if theirs == AccessList():
            rest.access_list = ours
        else:
            moved.differing += 1
            say("differs", "the access roster: other people or chats were let in there")
    held, found = await source.read_bus_state(), await target.read_bus_state()
    if held != found:
        if found == BusState():
            rest.waiting = held
        else:
            moved.differing += 1
            say("differs", f"what the bus holds: {_counts(held)} here, {_counts(found)} there")
    await _compared_updates(source, target, rest, moved, say)
    have = await _names(target)
    rest.blobs = sorted(await _names(source) - have)
    return rest


async def _compared_updates(
    source: HomeStorage,
    target: HomeStorage,
    rest: _Rest,
    moved: MigrationResult,
    say: ReportProgress,
) -> None:
    found = await target.read_updates()
    for key, data in (await source.read_updates()).items():
        if key not in found:
            rest.updates[key] = data
        elif found[key] != data:
            moved.differing += 1
            say("differs", f"the update {key[1]} of {key[0]}")


async def _copy_tape(source: HomeStorage, target: HomeStorage, tape: str) -> TapeComparison:
    """Copy a tape, then read both back and compare them.

    Raises:
        TapeWriteError: The tapes differ.
    """
    seen = await read_tape_metadata(source.tapes, tape)
    async with aclosing(read_line_pages(source.tapes, tape)) as entries:
        await target.write_tape(tape, seen, entries)
    compared = await compare_tape(source.tapes, target.tapes, tape)
    if compared.difference is not None:
        raise TapeWriteError(
            f"tape {tape} was copied, and does not read back the same: {compared.difference}"
        )
    return compared


async def _copy_blobs(
    source: HomeStorage,
    target: HomeStorage,
    names: Sequence[str],
    moved: MigrationResult,
    say: ReportProgress,
) -> None:
    """Copy attachments; reading checks them against their names."""
    copied = size = 0
    for name in names:
        data = await source.read_blob(name)
        if data is None:
            moved.unreadable += 1
            continue
        await target.write_blob(data)
        if await target.read_blob(name) != data:
            raise TapebotError(f"the file {name} was copied, and does not read back the same")
        copied, size = copied + 1, size + len(data)
    if copied:
        moved.copied += copied
        say("moved", f"{copied:,} files that people sent, {size:,} bytes")
    if moved.unreadable:
        say("note", f"{moved.unreadable} files that people sent cannot be read, and were left out")


async def _names(place: HomeStorage) -> set[str]:
    async with aclosing(place.blob_names()) as names:
        return {name async for name in names}


async def _sizes(source: HomeStorage, tapes: Sequence[str]) -> dict[str, TapeMetadata]:
    return {tape: await read_tape_metadata(source.tapes, tape) for tape in tapes}


def _would(
    rest: _Rest, sizes: dict[str, TapeMetadata], moved: MigrationResult, say: ReportProgress
) -> None:
    """Report what would be done."""
    texts = [
        f"{tape}: up to entry {one.version:,}, {_many(len(one.segments), 'sealed segment')}"
        for tape, one in sizes.items()
    ]
    if rest.blobs:
        texts.append(f"{len(rest.blobs):,} files that people sent")
    if rest.access_list is not None:
        texts.append(_roster_told(rest.access_list))
    if rest.updates:
        texts.append(f"{len(rest.updates)} updates that channels have not handled")
    if rest.waiting is not None:
        texts.append(_waiting_told(rest.waiting))
    for text in texts:
        say("would move", text)
    moved.copied = len(texts)


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise TapebotError(f"{what}: copied, and does not read back the same")


def _told(tape: str, compared: TapeComparison) -> str:
    return f"{tape}: {_many(compared.entries, 'entry', 'entries')}, SHA-256 {compared.digest}"


def _roster_told(access_list: AccessList) -> str:
    people, chats = len(access_list.people), len(access_list.chats)
    return f"the access roster: {_many(people, 'person', 'people')}, {_many(chats, 'chat')}"


def _waiting_told(waiting: BusState) -> str:
    return f"what the bus holds: {_counts(waiting)}"


def _counts(waiting: BusState) -> str:
    messages = _many(len(waiting.messages), "message")
    return f"{messages} in work or waiting, {_many(len(waiting.seen), 'id')} of earlier ones"


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"
