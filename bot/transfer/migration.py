"""Copy a home between files and PostgreSQL and verify the copy.

Rule 1: the source stays unchanged.
Rule 2: nothing is overwritten: if anything exists in both and differs, it is reported and nothing
    is copied.
Rule 3: an interrupted migration is continued by running it again, which compares what exists.
Rule 4: copies are read back and compared, tapes entry by entry.

Waiting messages are copied last, after everything that they refer to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Generic, TypeVar

from bot.bus.access.access_list import AccessList
from bot.core.errors import TapebotError, TapeLocked, TapeWriteError
from bot.tape.batches import read_line_batches
from bot.transfer.storage import BusState, HomeStorage, UpdateKey, read_tape_metadata
from bot.transfer.tape_verification import TapeComparison, compare_tape

ReportProgress = Callable[[str, str], None]
"""Receives an outcome and a description of the item."""

T = TypeVar("T")


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
    parts = [part(source, target, moved, say) for part in _PARTS]
    for part in parts:
        await part.compare()
    if moved.differing:
        return moved
    for part in parts:
        if not dry_run:
            await part.copy()
            continue
        for text in await part.missing():
            say("would move", text)
            moved.copied += 1
    return moved


class _Part(ABC):
    """One kind of what a home holds."""

    def __init__(
        self,
        source: HomeStorage,
        target: HomeStorage,
        moved: MigrationResult,
        say: ReportProgress,
    ) -> None:
        self.source = source
        self.target = target
        self.moved = moved
        self.say = say

    @abstractmethod
    async def compare(self) -> None:
        """Compare what exists in the target, and find what does not."""

    @abstractmethod
    async def missing(self) -> list[str]:
        """Describe what the target does not have."""

    @abstractmethod
    async def copy(self) -> None:
        """Copy what the target does not have, and read it back.

        Raises:
            TapebotError: It does not read back the same.
        """

    def differs(self, text: str) -> None:
        """Report an item that differs."""
        self.moved.differing += 1
        self.say("differs", text)

    def copied(self, text: str, count: int = 1) -> None:
        """Report copied items."""
        self.moved.copied += count
        self.say("moved", text)


class _Blobs(_Part):
    """Attachments; reading checks them against their names."""

    async def compare(self) -> None:
        self.names = sorted(await _names(self.source) - await _names(self.target))

    async def missing(self) -> list[str]:
        return [f"{len(self.names):,} files that people sent"] if self.names else []

    async def copy(self) -> None:
        copied = size = 0
        for name in self.names:
            data = await self.source.blobs.get(name)
            if data is None:
                self.moved.unreadable += 1
                continue
            await self.target.blobs.put(data)
            if await self.target.blobs.get(name) != data:
                raise TapebotError(f"the file {name} was copied, and does not read back the same")
            copied, size = copied + 1, size + len(data)
        if copied:
            self.copied(f"{copied:,} files that people sent, {size:,} bytes", copied)
        if unreadable := self.moved.unreadable:
            self.say(
                "note", f"{unreadable} files that people sent cannot be read, and were left out"
            )


class _Tapes(_Part):
    """Tapes with their segments."""

    async def compare(self) -> None:
        self.names: list[str] = []
        there = set(await self.target.tapes.list_tapes())
        for tape in await self.source.tapes.list_tapes():
            if tape not in there:
                self.names.append(tape)
                continue
            compared = await compare_tape(self.source.tapes, self.target.tapes, tape)
            if compared.difference is None:
                self.moved.same(tape, compared)
                self.say("there", _described(tape, compared))
            else:
                self.differs(f"{tape}: {compared.difference}")

    async def missing(self) -> list[str]:
        shapes = {one: await read_tape_metadata(self.source.tapes, one) for one in self.names}
        return [
            f"{tape}: up to entry {one.version:,}, {_many(len(one.segments), 'sealed segment')}"
            for tape, one in shapes.items()
        ]

    async def copy(self) -> None:
        for tape in self.names:
            shape = await read_tape_metadata(self.source.tapes, tape)
            async with aclosing(read_line_batches(self.source.tapes, tape)) as entries:
                await self.target.write_tape(tape, shape, entries)
            compared = await compare_tape(self.source.tapes, self.target.tapes, tape)
            if compared.difference is not None:
                raise TapeWriteError(
                    f"tape {tape} was copied, and does not read back the same: {compared.difference}"
                )
            self.moved.same(tape, compared)
            self.copied(_described(tape, compared))


class _Record(_Part, Generic[T]):
    """What is read and written as a whole."""

    empty: T

    @abstractmethod
    async def read(self, home: HomeStorage) -> T:
        """Return what a home has."""

    @abstractmethod
    async def write(self, value: T) -> None:
        """Write what the target does not have."""

    @abstractmethod
    def describe(self, value: T) -> str:
        """Describe it for people."""

    @abstractmethod
    def conflicts(self, ours: T, theirs: T) -> list[str]:
        """Describe how the target differs, given that it does."""

    def split(self, ours: T, theirs: T) -> tuple[T, list[str]]:
        """Return what the target does not have, and descriptions of what differs."""
        if theirs in (ours, self.empty):
            return self.empty if theirs == ours else ours, []
        return self.empty, self.conflicts(ours, theirs)

    async def compare(self) -> None:
        self.rest, conflicts = self.split(
            await self.read(self.source), await self.read(self.target)
        )
        for text in conflicts:
            self.differs(text)

    async def missing(self) -> list[str]:
        return [] if self.rest == self.empty else [self.describe(self.rest)]

    async def copy(self) -> None:
        if self.rest == self.empty:
            return
        await self.write(self.rest)
        text = self.describe(self.rest)
        if self.split(self.rest, await self.read(self.target)) != (self.empty, []):
            raise TapebotError(f"{text}: copied, and does not read back the same")
        self.copied(text)


class _Access(_Record[AccessList]):
    """Who may use the bot."""

    empty = AccessList()

    async def read(self, home: HomeStorage) -> AccessList:
        return await home.access.peek()

    async def write(self, value: AccessList) -> None:
        store = self.target.access
        await store.open()
        try:
            if await store.save(await store.read(), value) is None:
                raise TapeLocked(
                    f"somebody else changes the access roster at {self.target.location}; move again"
                )
        finally:
            await store.close()

    def describe(self, value: AccessList) -> str:
        people, chats = len(value.people), len(value.chats)
        return f"the access roster: {_many(people, 'person', 'people')}, {_many(chats, 'chat')}"

    def conflicts(self, ours: AccessList, theirs: AccessList) -> list[str]:  # noqa: ARG002 (names of people)
        return ["the access roster: other people or chats were let in there"]


class _Updates(_Record[dict[UpdateKey, bytes]]):
    """Updates that channels have not handled."""

    empty: dict[UpdateKey, bytes] = {}  # noqa: RUF012 (never changed)

    async def read(self, home: HomeStorage) -> dict[UpdateKey, bytes]:
        return await home.read_updates()

    async def write(self, value: dict[UpdateKey, bytes]) -> None:
        await self.target.write_updates(value)

    def describe(self, value: dict[UpdateKey, bytes]) -> str:
        return f"{len(value)} updates that channels have not handled"

    def conflicts(self, ours: dict[UpdateKey, bytes], theirs: dict[UpdateKey, bytes]) -> list[str]:
        other = [key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]]
        return [f"the update {number} of {channel}" for channel, number in sorted(other)]

    def split(
        self, ours: dict[UpdateKey, bytes], theirs: dict[UpdateKey, bytes]
    ) -> tuple[dict[UpdateKey, bytes], list[str]]:
        rest = {key: data for key, data in ours.items() if key not in theirs}
        return rest, self.conflicts(ours, theirs)


class _Bus(_Record[BusState]):
    """Messages that wait."""

    empty = BusState()

    async def read(self, home: HomeStorage) -> BusState:
        return await home.read_bus_state()

    async def write(self, value: BusState) -> None:
        await self.target.write_bus_state(value)

    def describe(self, value: BusState) -> str:
        return f"what the bus holds: {_counts(value)}"

    def conflicts(self, ours: BusState, theirs: BusState) -> list[str]:
        return [f"what the bus holds: {_counts(ours)} here, {_counts(theirs)} there"]


_PARTS: tuple[type[_Part], ...] = (_Blobs, _Tapes, _Access, _Updates, _Bus)
"""In the order of copying."""


async def _names(home: HomeStorage) -> set[str]:
    async with aclosing(home.blobs.names()) as names:
        return {name async for name in names}


def _described(tape: str, compared: TapeComparison) -> str:
    return f"{tape}: {_many(compared.entries, 'entry', 'entries')}, SHA-256 {compared.digest}"


def _counts(state: BusState) -> str:
    messages = _many(len(state.messages), "message")
    return f"{messages} in work or waiting, {_many(len(state.seen), 'id')} of earlier ones"


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"
