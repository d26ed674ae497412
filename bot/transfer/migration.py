"""Copy a home between files and PostgreSQL and verify the copy.

Rule 1: the source stays unchanged.
Rule 2: nothing is overwritten: if anything exists in both and differs, it is reported and nothing
    is copied.
Rule 3: an interrupted migration is continued by running it again, which compares what exists.
Rule 4: copies are read back and compared, tapes entry by entry.

Waiting messages are copied last, after everything that they refer to.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256

from bot.core.errors import TapeWriteError
from bot.core.i18n import _, format_number, ngettext
from bot.tape.batches import read_batches
from bot.transfer.home_data import ACCESS, BUS, UPDATES, HomeData, read_tape_metadata
from bot.transfer.tape_verification import TapeComparison, compare_tape

ReportProgress = Callable[[str, str], None]
"""Receives an outcome and a description of the item."""


@dataclass(slots=True)
class MigrationResult:
    """How many items were copied, are the same, differ, or cannot be read; if any differ, none is copied."""

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
    source: HomeData, target: HomeData, *, say: ReportProgress, dry_run: bool = False
) -> MigrationResult:
    """Copy what the target does not have, and compare the rest.

    Raises:
        TapeError: A tape cannot be read, or the storage failed; running it again continues.
        TapebotError: Something else cannot be read or written.
    """
    copy = _Copy(source, target, say, dry_run=dry_run)
    await copy.compare()
    if not copy.moved.differing:
        await copy.run()
    return copy.moved


class _Copy:
    """One copy of a home: what the target does not have."""

    def __init__(
        self, source: HomeData, target: HomeData, say: ReportProgress, *, dry_run: bool
    ) -> None:
        self.moved = MigrationResult()
        self._source, self._target, self._say, self._dry_run = source, target, say, dry_run
        self._blobs: list[str] = []
        self._tapes: list[str] = []
        self._values: dict[str, bytes] = {}

    async def compare(self) -> None:
        """Compare what exists in the target, and find what does not."""
        self._blobs = sorted(await _blob_names(self._source) - await _blob_names(self._target))
        there = set(await self._target.tapes.list_tapes())
        for tape in await self._source.tapes.list_tapes():
            if tape not in there:
                self._tapes.append(tape)
                continue
            compared = await compare_tape(self._source.tapes, self._target.tapes, tape)
            if compared.difference is None:
                self.moved.same(tape, compared)
                self._say("there", _described(tape, compared))
            else:
                self._differs(f"{tape}: {compared.difference}")
        theirs = await self._target.values()
        for name, data in (await self._source.values()).items():
            if name not in theirs:
                self._values[name] = data
            elif theirs[name] != data:
                self._differs(_value_text(name, data))

    async def run(self) -> None:
        """Copy what the target does not have, and read it back; in a dry run only tell it."""
        await self._copy_blobs()
        for tape in self._tapes:
            await self._copy_tape(tape)
        for name, data in {} if self._dry_run else self._values.items():
            await self._target.write_value(name, data)
        there = self._values if self._dry_run else await self._target.values()
        for name, data in self._values.items():
            if there.get(name) != data:
                raise _unlike(_value_text(name, data))
            self._copied(_value_text(name, data))

    async def _copy_tape(self, tape: str) -> None:
        shape = await read_tape_metadata(self._source.tapes, tape)
        if self._dry_run:
            text = ngettext(
                "{tape}: up to entry {version}, {n} sealed segment",
                "{tape}: up to entry {version}, {n} sealed segments",
                len(shape.segments),
                tape=tape,
                version=format_number(shape.version),
            )
        else:
            async with aclosing(read_batches(self._source.tapes, tape)) as entries:
                await self._target.write_tape(tape, shape, entries)
            compared = await compare_tape(self._source.tapes, self._target.tapes, tape)
            if compared.difference is not None:
                raise _unlike(f"{tape}: {compared.difference}")
            self.moved.same(tape, compared)
            text = _described(tape, compared)
        self._copied(text)

    async def _copy_blobs(self) -> None:
        """Copy attachments; reading checks them against their names."""
        copied = size = 0
        for name in self._blobs:
            data = await self._source.blobs.get(name)
            if data is None:
                self.moved.unreadable += 1
                continue
            if not self._dry_run:
                await self._target.blobs.put(data)
                if await self._target.blobs.get(name) != data:
                    raise _unlike(_("the file {name}", name=name))
            copied, size = copied + 1, size + len(data)
        if copied:
            counts = {"copied": format_number(copied), "size": format_number(size)}
            self._copied(_("{copied} files that people sent, {size} bytes", **counts), copied)
        if unread := self.moved.unreadable:
            text = _(
                "{unread} files that people sent cannot be read, and were left out", unread=unread
            )
            self._say("note", text)

    def _copied(self, text: str, count: int = 1) -> None:
        self.moved.copied += count
        self._say("would move" if self._dry_run else "moved", text)  # for programs

    def _differs(self, text: str) -> None:
        self.moved.differing += 1
        self._say("differs", text)


async def _blob_names(home: HomeData) -> set[str]:
    async with aclosing(home.blobs.names()) as names:
        return {name async for name in names}


def _unlike(what: str) -> TapeWriteError:
    return TapeWriteError(_("{what} was copied, and does not read back the same", what=what))


def _described(tape: str, compared: TapeComparison) -> str:
    return ngettext(
        "{tape}: {n} entry, SHA-256 {digest}",
        "{tape}: {n} entries, SHA-256 {digest}",
        compared.entries,
        tape=tape,
        digest=compared.digest,
    )


def _value_text(name: str, data: bytes) -> str:
    size = format_number(len(data))
    if name == ACCESS:
        return _("the access list, {size} bytes", size=size)
    if name == BUS:
        lines = data.count(b"\n")
        return ngettext(
            "the bus: {n} message or id of an earlier one",
            "the bus: {n} messages and ids of earlier ones",
            lines,
        )
    channel, _slash, number = name.removeprefix(UPDATES).partition("/")
    return _("the update {number} of {channel}", number=number, channel=channel)
