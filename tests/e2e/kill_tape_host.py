"""Works on tapes in files until it is killed; a nursery, since a fork of a process starts at once.

In, one JSON object a line: ``{"folder", "work", "seed", "kill"}``, where ``kill`` is ``{"times", "moment",
"part", "after"}`` (at so many changes of a file, of one kind if a moment is named as in ``after rename
live``, in the middle of it if it is a write, or right after it) or ``{"seconds"}``. Out: what the work
acknowledged, ``{"died": moment}`` where it killed itself, and ``{"dead": true}`` at the end of each life.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from home_host import FAULT, emit, live_and_die

from bot.tape.entries import message
from bot.tape.search import SearchQuery
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

TAPE = "telegram:42"
LETTERS = "bcdfghjklmnpqrtvwxz"

Work = Callable[[FileTapeStore, random.Random, Path], Awaitable[None]]


async def say(store: FileTapeStore, chance: random.Random) -> None:
    mark = f"{os.getpid()}.{chance.random()}"
    batch = [message("user", f"{mark}.{place}") for place in range(chance.randint(1, 4))]
    written = await store.append_many(TAPE, batch)
    emit(said={entry.id: entry.payload["content"] for entry in written})


async def archive(store: FileTapeStore, chance: random.Random, folder: Path) -> None:
    """Append, archive, and let the segments be packed now and then."""
    while True:
        for _ in range(chance.randint(1, 3)):
            await say(store, chance)
        segment = await store.archive(TAPE, [message("user", "carried")])
        emit(sealed=segment.name)
        if chance.random() < 0.5:
            while list(folder.glob("*-*.jsonl")):
                await anyio.sleep(0.001)


async def merge(store: FileTapeStore, chance: random.Random, folder: Path) -> None:
    """Write in an overlay, and merge it; discard every third."""
    tape = TapeService(store, TAPE)
    number = 0
    while True:
        await say(store, chance)
        number += 1
        kept = number % 3 > 0
        mark, size = (
            f"{'merged' if kept else 'discarded'}.{os.getpid()}.{number}",
            chance.randint(1, 60),
        )
        async with tape.fork(merge_back=kept) as inside:
            for place in range(size):
                await inside.append(message("user", f"{mark}.{place}/{size}"))
        if kept:
            emit(merged=mark)


async def index(store: FileTapeStore, chance: random.Random, folder: Path) -> None:
    """Append, archive now and then, and search for what was appended, all at once."""
    said: dict[int, str] = {}

    async def search() -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            if said:
                number, word = chance.choice([*said.items()])
                hits = await store.search(SearchQuery(text=word, limit=20))
                if [hit.entry.id for hit in hits if word in hit.entry.payload["content"]] != [
                    number
                ]:
                    emit(wrong=f"{word} of {number}: {hits}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(search)
        while True:
            words = [
                "".join(chance.choices("bcdfghjklm", k=20)) for _ in range(chance.randint(1, 12))
            ]
            batch = [message("user", f"{word} beside the harbour") for word in words]
            for entry, word in zip(await store.append_many(TAPE, batch), words, strict=True):
                said[entry.id] = word
                emit(said={entry.id: word})
            if chance.random() < 0.05:
                await store.archive(TAPE)


async def erase(store: FileTapeStore, chance: random.Random, folder: Path) -> None:
    """Append, archive, let be packed, be indexed; erase some of what is there while more is said."""

    async def say_words() -> None:
        words = ["".join(chance.choices(LETTERS, k=20)) for _ in range(chance.randint(1, 6))]
        written = await store.append_many(TAPE, [message("user", word) for word in words])
        emit(said={entry.id: entry.payload["content"] for entry in written})

    while True:
        for _ in range(chance.randint(1, 3)):
            await say_words()
        if chance.random() < 0.3:
            await store.archive(TAPE)
        if chance.random() < 0.5:
            while list(folder.glob("*-*.jsonl")):
                await anyio.sleep(0.001)
        if chance.random() < 0.7:
            await store.search(SearchQuery("word"))
        held = [entry for entry in await store.read(TAPE) if entry.payload.get("content")]
        wanted = chance.sample(held, min(len(held), chance.randint(1, 5)))
        emit(erasing=(numbers := [entry.id for entry in wanted]))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say_words)
            await store.erase(
                TAPE, [replace(one, payload={"content": ""}, meta={}) for one in wanted]
            )
            emit(erased=numbers)


WORKS: dict[str, Work] = {"archive": archive, "merge": merge, "index": index, "erase": erase}


async def live(order: dict[str, Any]) -> None:
    folder, chance = Path(order["folder"]), random.Random(order["seed"])
    if "times" in order["kill"]:
        FAULT.arm(**order["kill"])
    store = FileTapeStore(folder, sync=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await store.create_tape(TAPE)
        await WORKS[order["work"]](store, chance, folder)


if __name__ == "__main__":
    for line in sys.stdin:
        live_and_die(live, json.loads(line))
