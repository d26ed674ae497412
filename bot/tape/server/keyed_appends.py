"""Append entries once per key: a repeated key is answered with the entries of the first append.

Keys are stored on the tape, in the last entry, so that the newest entries have that of a long append, too. A process
reads those of a tape's newest entries once, and keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio

from bot.core.errors import HttpError, InvalidEntry, VersionConflict
from bot.tape.entries import TapeEntry
from bot.tape.http_protocol import KEY_META
from bot.tape.store import TapeStore

LOOK_BACK = 1_000
"""Most entries of a tape that are searched for keys, and most keys kept for it."""

_TAPES = 256


@dataclass(slots=True)
class _Keys:
    """The keys of a tape, with the id of the last entry of each append, oldest first; None if not read yet."""

    last_ids: dict[str, int] | None = None
    appending: anyio.Lock = field(default_factory=anyio.Lock)


class KeyedAppends:
    """Append entries to a store's tapes, once per key."""

    def __init__(self, store: TapeStore) -> None:
        self._store = store
        self._tapes: dict[str, _Keys] = {}

    async def append(
        self, tape: str, entries: Sequence[TapeEntry], key: str | None, expect: int | None
    ) -> list[TapeEntry]:
        """Append entries, or return those that were appended with this key before.

        A known key is answered whatever version is expected: the answer to the first request may be lost. Raises
        ``HttpError`` if the key was used for other entries, and what ``TapeStore.append_many`` raises.
        """
        if key is None:
            return await self._store.append_many(tape, entries, expect=expect)
        if len(self._tapes) > _TAPES:
            self._tapes = {name: one for name, one in self._tapes.items() if one.appending.locked()}
        keys = self._tapes.setdefault(tape, _Keys())
        marked = [*entries[:-1], entries[-1].with_meta(**{KEY_META: key})]
        async with keys.appending:
            if keys.last_ids is None:
                keys.last_ids = await self._stored(tape)
            known = keys.last_ids
            if (last := known.get(key)) is not None:
                return await self._written(tape, last, marked)
            # After a failure the outcome may be unknown: then they are read from the tape again.
            keys.last_ids = None
            try:
                written = await self._store.append_many(tape, marked, expect=expect)
            except (InvalidEntry, VersionConflict):
                keys.last_ids = known
                raise
            known[key] = written[-1].id
            if len(known) > LOOK_BACK:
                del known[next(iter(known))]
            keys.last_ids = known
            return written

    async def _stored(self, tape: str) -> dict[str, int]:
        found: dict[str, int] = {}
        seen = 0
        async with aclosing(self._store.read_back(tape)) as newest_first:
            async for entry in newest_first:
                if isinstance(key := entry.meta.get(KEY_META), str):
                    # Of several entries with one key the oldest is the append; others are copies.
                    found.pop(key, None)
                    found[key] = entry.id
                seen += 1
                if seen == LOOK_BACK:
                    break
        return dict(reversed(found.items()))

    async def _written(self, tape: str, last: int, marked: Sequence[TapeEntry]) -> list[TapeEntry]:
        held = await self._store.read(tape, last - len(marked) + 1, last)
        if len(held) != len(marked) or not all(map(_same, held, marked)):
            raise HttpError(
                422, "key_reused", "this key was used for other entries; make a new one"
            )
        return held


def _same(held: TapeEntry, asked: TapeEntry) -> bool:
    meta = {"ts": held.meta.get("ts"), **asked.meta}
    return (held.kind, held.payload, held.meta) == (asked.kind, asked.payload, meta)
