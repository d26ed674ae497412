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
from bot.transfer.home_data import ACCESS, BUS, HomeData, read_tape_metadata, update_of
from bot.transfer.tape_verification import compare_tape

ReportProgress = Callable[[str, str], None]
"""Receives an outcome and a description of the item."""


@dataclass(slots=True)
class Migration:
    """One copy of what the target does not have; it counts what was copied, is the same, or differs.

    If anything differs, nothing is copied. In a dry run nothing is written.
    """

    source: HomeData
    target: HomeData
    say: ReportProgress
    dry_run: bool = False
    copied: int = 0
    tapes: int = 0
    entries: int = 0
    differing: int = 0
    _digests: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 over the names of all tapes and the digests of their entries."""
        lines = (f"{name.encode().hex()} {one}\n" for name, one in sorted(self._digests.items()))
        return sha256("".join(lines).encode()).hexdigest()

    async def run(self) -> None:
        """Compare what exists in both places, copy the rest, and read it back.

        Raises:
            TapeError: A tape cannot be read, or the storage failed; running it again continues.
            TapebotError: Something else cannot be read or written.
        """
        tapes, values = await self._missing()
        if self.differing:
            return
        await self._copy_blobs()
        for tape in tapes:
            await self._copy_tape(tape)
        for name, data in {} if self.dry_run else values.items():
            await self.target.write_value(name, data)
        theirs = values if self.dry_run else await self.target.values()
        for name, data in values.items():
            if theirs.get(name) != data:
                raise _unlike(_value_text(name, data))
            self._copied(_value_text(name, data))

    async def _missing(self) -> tuple[list[str], dict[str, bytes]]:
        """Return the tapes and values that the target does not have; compare the others."""
        there, tapes = set(await self.target.tapes.list_tapes()), []
        for tape in await self.source.tapes.list_tapes():
            if tape not in there:
                tapes.append(tape)
            elif (difference := await self._compare("there", tape)) is not None:
                self._differs(difference)
        theirs, values = await self.target.values(), {}
        for name, data in (await self.source.values()).items():
            if name not in theirs:
                values[name] = data
            elif theirs[name] != data:
                self._differs(_value_text(name, data))
        return tapes, values

    async def _compare(self, word: str, tape: str) -> str | None:
        """Count and tell a tape that is the same in both places; return what differs in another."""
        compared = await compare_tape(self.source.tapes, self.target.tapes, tape)
        if compared.difference is not None:
            return f"{tape}: {compared.difference}"
        self.tapes += 1
        self.entries += compared.entries
        self._digests[tape] = compared.digest
        text = ngettext(
            "{tape}: {n} entry, SHA-256 {digest}",
            "{tape}: {n} entries, SHA-256 {digest}",
            compared.entries,
            tape=tape,
            digest=compared.digest,
        )
        self.say(word, text)
        return None

    async def _copy_tape(self, tape: str) -> None:
        shape = await read_tape_metadata(self.source.tapes, tape)
        if self.dry_run:
            text = ngettext(
                "{tape}: up to entry {version}, {n} sealed segment",
                "{tape}: up to entry {version}, {n} sealed segments",
                len(shape.segments),
                tape=tape,
                version=format_number(shape.version),
            )
            self._copied(text)
            return
        async with aclosing(read_batches(self.source.tapes, tape)) as entries:
            await self.target.write_tape(tape, shape, entries)
        if (difference := await self._compare("moved", tape)) is not None:
            raise _unlike(difference)
        self.copied += 1

    async def _copy_blobs(self) -> None:
        """Copy attachments; reading checks them against their names."""
        copied = size = unread = 0
        for name in sorted(await _blob_names(self.source) - await _blob_names(self.target)):
            data = await self.source.blobs.get(name)
            if data is None:
                unread += 1
                continue
            if not self.dry_run:
                await self.target.blobs.put(data)
                if await self.target.blobs.get(name) != data:
                    raise _unlike(_("the file {name}", name=name))
            copied, size = copied + 1, size + len(data)
        if copied:
            counts = {"copied": format_number(copied), "size": format_number(size)}
            self._copied(_("{copied} files that people sent, {size} bytes", **counts), copied)
        if unread:
            told = _(
                "{unread} files that people sent cannot be read, and were left out", unread=unread
            )
            self.say("note", told)

    def _copied(self, text: str, count: int = 1) -> None:
        self.copied += count
        self.say("would move" if self.dry_run else "moved", text)  # for programs

    def _differs(self, text: str) -> None:
        self.differing += 1
        self.say("differs", text)


async def _blob_names(home: HomeData) -> set[str]:
    async with aclosing(home.blobs.names()) as names:
        return {name async for name in names}


def _unlike(what: str) -> TapeWriteError:
    return TapeWriteError(_("{what} was copied, and does not read back the same", what=what))


def _value_text(name: str, data: bytes) -> str:
    if name == ACCESS:
        return _("the access list, {size} bytes", size=format_number(len(data)))
    if name == BUS:
        return ngettext(
            "the bus: {n} message or id of an earlier one",
            "the bus: {n} messages and ids of earlier ones",
            data.count(b"\n"),
        )
    channel, number = update_of(name)
    return _("the update {number} of {channel}", number=number, channel=channel)
