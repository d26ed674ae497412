"""Append entries once per idempotency key; a repeated key returns the entries of the first append.

Keys are stored on the tape. They are cached in memory, and read from a tape's newest entries once
per process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio

from bot.core.errors import HttpError, TapeError
from bot.tape.entries import TapeEntry
from bot.tape.http_protocol import IDEMPOTENCY_META_KEY
from bot.tape.store import TapeStore

LOOK_BACK = 1_000
"""Most entries of a tape that are searched for keys, and most keys cached for it."""

_TAPES = 256


@dataclass(slots=True, eq=False)
class _Keys:
    """The cached keys of a tape, with the id of the first entry of each append, oldest first."""

    first_ids: OrderedDict[str, int] = field(default_factory=OrderedDict)
    under_way: dict[str, anyio.Event] = field(default_factory=dict)
    loading: anyio.Lock = field(default_factory=anyio.Lock)
    loaded: bool = False
    users: int = 0


class IdempotentAppender:
    """Append entries to a store's tapes, once per key.

    Args:
        store: The tape store.
    """

    def __init__(self, store: TapeStore) -> None:
        self._store = store
        self._tapes: OrderedDict[str, _Keys] = OrderedDict()

    async def append(
        self,
        tape: str,
        entries: Sequence[TapeEntry],
        *,
        key: str | None = None,
        expect: int | None = None,
    ) -> list[TapeEntry]:
        """Append entries, or return those that were appended with this key before.

        A known key is answered whatever version is expected, since the response to the first
        request may have been lost.

        Raises:
            HttpError: The key was used for other entries.
            TapeError: As in ``TapeStore.append_many``.
        """
        if key is None or not entries:
            return await self._store.append_many(tape, entries, expect=expect)
        keys = self._hold(tape)
        try:
            await self._load(tape, keys)
            while (event := keys.under_way.get(key)) is not None:
                await event.wait()
            if (first := keys.first_ids.get(key)) is not None:
                return await self._again(tape, first, key, entries)
            return await self._once(tape, keys, key, entries, expect)
        finally:
            keys.users -= 1

    async def find(self, tape: str, key: str | None) -> TapeEntry | None:
        """Return the first entry of the append with this key, or None."""
        if key is None:
            return None
        keys = self._hold(tape)
        try:
            await self._load(tape, keys)
            first = keys.first_ids.get(key)
        finally:
            keys.users -= 1
        entries = await self._store.read(tape, first, first) if first is not None else []
        return entries[0] if entries else None

    def _hold(self, tape: str) -> _Keys:
        keys = self._tapes.setdefault(tape, _Keys())
        self._tapes.move_to_end(tape)
        keys.users += 1
        for name, held in list(self._tapes.items())[: max(0, len(self._tapes) - _TAPES)]:
            if not held.users:
                del self._tapes[name]
        return keys

    async def _load(self, tape: str, keys: _Keys) -> None:
        async with keys.loading:
            if keys.loaded:
                return
            seen = 0
            async with aclosing(self._store.read_back(tape)) as newest_first:
                async for entry in newest_first:
                    if isinstance(key := entry.meta.get(IDEMPOTENCY_META_KEY), str):
                        # Of several entries with one key the oldest is the append; the others are
                        # copies.
                        keys.first_ids[key] = entry.id
                        keys.first_ids.move_to_end(key, last=False)
                    seen += 1
                    if seen == LOOK_BACK:
                        break
            keys.loaded = True

    async def _once(
        self, tape: str, keys: _Keys, key: str, entries: Sequence[TapeEntry], expect: int | None
    ) -> list[TapeEntry]:
        done = keys.under_way[key] = anyio.Event()
        try:
            marked = [entries[0].with_meta(**{IDEMPOTENCY_META_KEY: key}), *entries[1:]]
            written = await self._store.append_many(tape, marked, expect=expect)
        except TapeError:
            raise
        except BaseException:
            # The outcome is unknown, so the keys are read from the tape again.
            keys.loaded = False
            raise
        else:
            keys.first_ids[key] = written[0].id
            if len(keys.first_ids) > LOOK_BACK:
                keys.first_ids.popitem(last=False)
            return written
        finally:
            del keys.under_way[key]
            done.set()

    async def _again(
        self, tape: str, first: int, key: str, entries: Sequence[TapeEntry]
    ) -> list[TapeEntry]:
        held = await self._store.read(tape, first, first + len(entries) - 1)
        asked = [entries[0].with_meta(**{IDEMPOTENCY_META_KEY: key}), *entries[1:]]
        same = len(held) == len(asked) and all(map(_same, held, asked))
        if not same:
            raise HttpError(
                422, "key_reused", "this Idempotency-Key was used for other entries; make a new one"
            )
        return held


def _same(entry: TapeEntry, asked: TapeEntry) -> bool:
    """Return whether an entry on the tape equals the one in the request."""
    meta = {"ts": entry.meta.get("ts"), **asked.meta}
    return (entry.kind, entry.payload, entry.meta) == (asked.kind, asked.payload, meta)
