"""Copy a home between files and PostgreSQL and verify the copy.

Rule 1: the source stays unchanged.
Rule 2: nothing is overwritten: if anything exists in both and differs, it is reported and nothing
    is copied.
Rule 3: an interrupted migration is continued by running it again, which compares what exists.
Rule 4: copies are read back and compared, tapes entry by entry.

Waiting messages are copied last, after everything that they refer to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic, TypeVar

from bot.bus.access.access_list import AccessList
from bot.core.errors import TapeLocked, TapeWriteError
from bot.core.i18n import _, format_number, ngettext
from bot.tape.batches import read_batches
from bot.transfer.storage import BusState, HomeStorage, Updates, read_tape_metadata
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

    Raises:
        TapeError: A tape cannot be read, or the storage failed; running it again continues.
        TapebotError: Something else cannot be read or written.
    """
    moved = MigrationResult()
    copy = _Copy(source, target, moved, say)
    await copy.compare()
    if not moved.differing:
        await (copy.announce() if dry_run else copy.run())
    return moved


@dataclass(frozen=True, slots=True)
class _Record(Generic[T]):
    """What a home holds as one value.

    Attributes:
        read: Returns a home's value.
        write: Writes what a home does not have.
        compare: Returns what the second home does not have, None if that is nothing, and
            descriptions of what differs.
        describe: Describes a value for people.
    """

    read: Callable[[HomeStorage], Awaitable[T]]
    write: Callable[[HomeStorage, T], Awaitable[None]]
    compare: Callable[[T, T], tuple[T | None, list[str]]]
    describe: Callable[[T], str]


class _Copy:
    """One copy of a home: what the target does not have."""

    def __init__(
        self,
        source: HomeStorage,
        target: HomeStorage,
        moved: MigrationResult,
        say: ReportProgress,
    ) -> None:
        self._source = source
        self._target = target
        self._moved = moved
        self._say = say
        self._blobs: list[str] = []
        self._tapes: list[str] = []
        self._rest: list[tuple[_Record[Any], Any]] = []

    async def compare(self) -> None:
        """Compare what exists in the target, and find what does not."""
        self._blobs = sorted(await _names(self._source) - await _names(self._target))
        there = set(await self._target.tapes.list_tapes())
        for tape in await self._source.tapes.list_tapes():
            if tape not in there:
                self._tapes.append(tape)
                continue
            compared = await compare_tape(self._source.tapes, self._target.tapes, tape)
            if compared.difference is None:
                self._moved.same(tape, compared)
                self._say("there", _described(tape, compared))
            else:
                self._differs(f"{tape}: {compared.difference}")
        for record in _RECORDS:
            ours, theirs = await record.read(self._source), await record.read(self._target)
            missing, conflicts = record.compare(ours, theirs)
            if missing is not None:
                self._rest.append((record, missing))
            for text in conflicts:
                self._differs(text)

    async def announce(self) -> None:
        """Report what the target does not have."""
        texts = (
            [_("{blobs} files that people sent", blobs=format_number(len(self._blobs)))]
            if self._blobs
            else []
        )
        for tape in self._tapes:
            tape_metadata = await read_tape_metadata(self._source.tapes, tape)
            told = ngettext(
                "{tape}: up to entry {version}, {n} sealed segment",
                "{tape}: up to entry {version}, {n} sealed segments",
                len(tape_metadata.segments),
                tape=tape,
                version=format_number(tape_metadata.version),
            )
            texts.append(told)
        texts += [record.describe(value) for record, value in self._rest]
        for text in texts:
            self._say("would move", text)  # for programs
        self._moved.copied = len(texts)

    async def run(self) -> None:
        """Copy what the target does not have, and read it back.

        Raises:
            TapeWriteError: It does not read back the same.
        """
        await self._copy_blobs()
        for tape in self._tapes:
            shape = await read_tape_metadata(self._source.tapes, tape)
            async with aclosing(read_batches(self._source.tapes, tape)) as entries:
                await self._target.write_tape(tape, shape, entries)
            compared = await compare_tape(self._source.tapes, self._target.tapes, tape)
            if compared.difference is not None:
                raise _unlike(_("tape {tape}", tape=tape), f": {compared.difference}")
            self._moved.same(tape, compared)
            self._copied(_described(tape, compared))
        for record, value in self._rest:
            await record.write(self._target, value)
            text = record.describe(value)
            if record.compare(value, await record.read(self._target)) != (None, []):
                raise _unlike(text)
            self._copied(text)

    async def _copy_blobs(self) -> None:
        """Copy attachments; reading checks them against their names."""
        copied = size = 0
        for name in self._blobs:
            data = await self._source.blobs.get(name)
            if data is None:
                self._moved.unreadable += 1
                continue
            await self._target.blobs.put(data)
            if await self._target.blobs.get(name) != data:
                raise _unlike(_("the file {name}", name=name))
            copied, size = copied + 1, size + len(data)
        if copied:
            self._copied(
                _(
                    "{copied} files that people sent, {size} bytes",
                    copied=format_number(copied),
                    size=format_number(size),
                ),
                copied,
            )
        if unread := self._moved.unreadable:
            self._say(
                "note",
                _(
                    "{unread} files that people sent cannot be read, and were left out",
                    unread=unread,
                ),
            )

    def _copied(self, text: str, count: int = 1) -> None:
        self._moved.copied += count
        self._say("moved", text)

    def _differs(self, text: str) -> None:
        self._moved.differing += 1
        self._say("differs", text)


async def _write_access_list(home: HomeStorage, access_list: AccessList) -> None:
    store = home.access
    await store.open()
    try:
        if await store.save(await store.read(), access_list) is None:
            raise TapeLocked(
                _(
                    "somebody else changes the access roster at {location}; move again",
                    location=home.location,
                )
            )
    finally:
        await store.close()


def _compare_access_lists(
    ours: AccessList, theirs: AccessList
) -> tuple[AccessList | None, list[str]]:
    if theirs in (ours, AccessList()):
        return None if theirs == ours else ours, []
    return None, [_("the access list: other people or chats have access there")]


def _people(access_list: AccessList) -> str:
    people, chats = len(access_list.people), len(access_list.chats)
    return _(
        "the access list: {people}, {chats}",
        people=ngettext("{n} person", "{n} people", people),
        chats=ngettext("{n} chat", "{n} chats", chats),
    )


def _compare_updates(ours: Updates, theirs: Updates) -> tuple[Updates | None, list[str]]:
    rest = {key: data for key, data in ours.items() if key not in theirs}
    other = [key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]]
    return rest or None, [
        _("the update {number} of {channel}", number=number, channel=channel)
        for channel, number in sorted(other)
    ]


def _compare_bus_states(ours: BusState, theirs: BusState) -> tuple[BusState | None, list[str]]:
    if theirs in (ours, BusState()):
        return None if theirs == ours else ours, []
    return None, [
        _(
            "what the bus holds: {counts} here, {counts2} there",
            counts=_counts(ours),
            counts2=_counts(theirs),
        )
    ]


_RECORDS: tuple[_Record[Any], ...] = (
    _Record(lambda home: home.access.peek(), _write_access_list, _compare_access_lists, _people),
    _Record(
        lambda home: home.read_updates(),
        lambda home, updates: home.write_updates(updates),
        _compare_updates,
        lambda updates: _("{updates} updates that channels have not handled", updates=len(updates)),
    ),
    _Record(
        lambda home: home.read_bus_state(),
        lambda home, state: home.write_bus_state(state),
        _compare_bus_states,
        lambda state: _("what the bus holds: {counts}", counts=_counts(state)),
    ),
)
"""In the order of copying."""


async def _names(home: HomeStorage) -> set[str]:
    async with aclosing(home.blobs.names()) as names:
        return {name async for name in names}


def _unlike(what: str, why: str = "") -> TapeWriteError:
    text = _("{what} was copied, and does not read back the same", what=what)
    return TapeWriteError(f"{text}{why}")


def _described(tape: str, compared: TapeComparison) -> str:
    return ngettext(
        "{tape}: {n} entry, SHA-256 {digest}",
        "{tape}: {n} entries, SHA-256 {digest}",
        compared.entries,
        tape=tape,
        digest=compared.digest,
    )


def _counts(state: BusState) -> str:
    messages = ngettext(
        "{n} message in progress or waiting",
        "{n} messages in progress or waiting",
        len(state.messages),
    )
    ids = ngettext("{n} id of earlier ones", "{n} ids of earlier ones", len(state.seen))
    return f"{messages}, {ids}"
