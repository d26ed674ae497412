"""Erases from tapes until it is killed: one more work of ``tests/e2e/kill_tape_host.py``."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import anyio
import kill_tape_host as host

from bot.tape.entries import message
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore
from bot.testing.waiting import until

LETTERS = "bcdfghjklmnpqrtvwxz"


async def say(store: FileTapeStore, chance: random.Random) -> None:
    """Append a few entries of one unique word each, and acknowledge them."""
    words = ["".join(chance.choices(LETTERS, k=20)) for _ in range(chance.randint(1, 6))]
    written = await store.append_many(host.TAPE, [message("user", word) for word in words])
    host.emit(said={entry.id: entry.payload["content"] for entry in written})


async def erase(store: FileTapeStore, chance: random.Random, folder: Path) -> None:
    """Append, archive, let be packed, be indexed; erase some of what is there while more is said."""
    while True:
        for _ in range(chance.randint(1, 3)):
            await say(store, chance)
        if chance.random() < 0.3:
            await store.archive(host.TAPE)
        if chance.random() < 0.5:
            await until(lambda: not list(folder.glob("*-*.jsonl")))
        if chance.random() < 0.7:
            await store.search(SearchQuery("word"))
        held = [e for e in await store.read(host.TAPE) if e.payload.get("content")]
        wanted = chance.sample(held, min(len(held), chance.randint(1, 5)))
        numbers = [entry.id for entry in wanted]
        host.emit(erasing=numbers)
        tombstones = [replace(entry, payload={"content": ""}, meta={}) for entry in wanted]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say, store, chance)
            await store.erase(host.TAPE, tombstones)
            host.emit(erased=numbers)


host.WORKS["erase"] = erase

if __name__ == "__main__":
    host.main()
