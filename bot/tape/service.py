"""One tape as the application uses it: bootstrap, handoffs, queries between anchors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from bot.errors import TapeNotFound
from bot.tape.entries import SESSION_START, TapeEntry, anchor, event, system
from bot.tape.store import Segment, TapeStore

# Within so many entries a tape has its first anchor.
_BOOTSTRAP = 8

Observer = Callable[[TapeEntry], object]

Compose = Callable[[int], Sequence[TapeEntry]]
"""Given a tape's version, returns what to append."""


@dataclass(frozen=True, slots=True)
class TapeInfo:
    """A snapshot of a tape.

    Attributes:
        name: The session's key.
        title: Shown to people.
        entries: How many entries it has ever had; also the id of the last.
        segments: How many sealed parts it has.
    """

    name: str
    title: str | None
    entries: int
    segments: int


class TapeService:
    """Reads and writes one tape, and shows each entry it appends to its observers, in order.

    Args:
        store: Where the tape lives.
        name: The session's key.
    """

    def __init__(self, store: TapeStore, name: str) -> None:
        self.store = store
        self.name = name
        self._observers: list[Observer] = []
        self._writing = anyio.Lock()

    def observe(self, observer: Observer) -> None:
        """Call this with every entry appended from now on, in the order of ids."""
        self._observers.append(observer)

    # Writing.

    async def append_many(
        self, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries atomically; see ``TapeStore.append_many`` for errors."""
        async with self._writing:
            return await self._append(entries, expect)

    async def append_composed(self, compose: Compose) -> list[TapeEntry]:
        """Append entries that depend on the tape's state, atomically.

        Args:
            compose: Given the version, returns the entries. When it is called, observers have
                seen every entry up to that version, and nothing else is being written.

        Raises:
            VersionConflict: Somebody else wrote to the tape meanwhile.
        """
        async with self._writing:
            version = await self.store.version(self.name)
            return await self._append(compose(version), version)

    async def _append(self, entries: Sequence[TapeEntry], expect: int | None) -> list[TapeEntry]:
        written = await self.store.append_many(self.name, entries, expect=expect)
        self._show(written)
        return written

    async def append(self, entry: TapeEntry) -> TapeEntry:
        """Append one entry."""
        return (await self.append_many([entry]))[0]

    async def append_event(self, name: str, data: dict[str, Any]) -> TapeEntry:
        """Append an event."""
        return await self.append(event(name, data))

    async def append_system(self, content: str) -> TapeEntry:
        """Append a system prompt."""
        return await self.append(system(content))

    async def handoff(self, name: str, state: dict[str, Any] | None = None) -> TapeEntry:
        """Write an anchor; a boundary anchor begins a new phase that inherits its state.

        State contract: ``{summary, next_steps, source: [first_id, last_id], owner, reason}``.
        """
        return await self.append(anchor(name, state))

    async def ensure_bootstrap_anchor(self) -> None:
        """Make the tape, with its first anchor ``session/start``, if it is not there yet."""
        await self.store.create_tape(self.name)
        # A tape cut short at its first anchor holds the note of its repair, and no anchor yet.
        if await self.store.version(self.name) <= _BOOTSTRAP and not any(
            entry.kind == "anchor" for entry in await self.read_entries(1, _BOOTSTRAP)
        ):
            await self.handoff(SESSION_START, {"owner": "human"})

    async def archive(self, carry: Sequence[TapeEntry] = ()) -> Segment:
        """Seal the live part; go on with a header and ``carry``."""
        return await self.archive_composed(lambda _: carry)

    async def archive_composed(self, compose: Compose) -> Segment:
        """Seal the live part; go on with a header and what ``compose`` gives.

        Args:
            compose: As for ``append_composed``.
        """
        # Observers must see what was written, whatever is cancelled meanwhile.
        with anyio.CancelScope(shield=True):
            async with self._writing:
                version = await self.store.version(self.name)
                segment = await self.store.archive(self.name, compose(version))
                self._show(await self.store.read(self.name, version + 1))
        return segment

    async def reset(self, *, archive: bool = False, carry: Sequence[TapeEntry] = ()) -> None:
        """Clear the live part, sealed first with ``archive``; begin again at ``session/start``."""
        fresh = [anchor(SESSION_START, {"owner": "human"}), *carry]
        with anyio.CancelScope(shield=True):
            async with self._writing:
                before = await self.store.version(self.name)
                if archive:
                    await self.store.archive(self.name, fresh)
                else:
                    await self.store.reset(self.name, fresh)
                self._show(await self.store.read(self.name, before + 1))

    # Reading.

    async def version(self) -> int:
        """Return the id of the last entry."""
        return await self.store.version(self.name)

    async def read_entries(
        self, first: int | None = None, last: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, by default all of them."""
        return await self.store.read(self.name, first, last)

    def read_back(self, before: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first."""
        return self.store.read_back(self.name, before)

    async def from_last_anchor(self, kinds: Collection[str] | None = None) -> list[TapeEntry]:
        """Return the last boundary anchor and what follows it.

        Args:
            kinds: Only these kinds; None for all.
        """
        return _of_kinds(await self._back_to(lambda entry: entry.is_boundary), kinds)

    async def after_anchor(
        self, name: str, kinds: Collection[str] | None = None
    ) -> list[TapeEntry]:
        """Return what follows the last anchor of this name.

        Raises:
            TapeNotFound: No anchor has this name.
        """
        found = await self._back_to(lambda entry: entry.kind == "anchor" and entry.name == name)
        if not found or found[0].kind != "anchor" or found[0].name != name:
            raise TapeNotFound(f"tape {self.name} has no anchor {name}")
        return _of_kinds(found[1:], kinds)

    async def between_anchors(
        self, start: str, end: str, kinds: Collection[str] | None = None
    ) -> list[TapeEntry]:
        """Return what lies between the last ``end`` and the last ``start`` before it.

        Raises:
            TapeNotFound: One of them is not there.
        """
        after: TapeEntry | None = None
        found: list[TapeEntry] = []
        async for entry in self.read_back():
            named = entry.name if entry.kind == "anchor" else None
            if after is None:
                after = entry if named == end else None
            elif named == start:
                return _of_kinds(found[::-1], kinds)
            else:
                found.append(entry)
        missing = end if after is None else start
        raise TapeNotFound(f"tape {self.name} has no anchor {missing}")

    async def info(self) -> TapeInfo:
        """Return a snapshot."""
        return TapeInfo(
            self.name,
            await self.store.get_title(self.name),
            await self.store.version(self.name),
            len(await self.store.segments(self.name)),
        )

    def _show(self, entries: Sequence[TapeEntry]) -> None:
        for entry in entries:
            for observer in self._observers:
                observer(entry)

    async def _back_to(self, wanted: Callable[[TapeEntry], bool]) -> list[TapeEntry]:
        found: list[TapeEntry] = []
        async for entry in self.read_back():
            found.append(entry)
            if wanted(entry):
                break
        return found[::-1]


def _of_kinds(entries: list[TapeEntry], kinds: Collection[str] | None) -> list[TapeEntry]:
    return [entry for entry in entries if kinds is None or entry.kind in kinds]
