"""Tapes to search, what is asked of them, and ways to damage their index.

``python index_talk.py FOLDER`` makes the index of the tapes in a folder, says so, and waits to be killed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio

from bot.tape.entries import TapeEntry, anchor, message
from bot.tape.search import Hit, SearchQuery
from bot.tape.stores.file import FileTapeStore

TAPES = ("telegram:1", "discord:2", "console:3")
_BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
WORDS = (
    "kestrel walnut harbour velvet compass orchard lantern thimble glacier saffron anvil bramble "
    "cobalt dolphin ember falcon gravel hazel ivory juniper kettle lagoon marble nectar opal "
    "pepper quarry ribbon sorrel timber umbrella vinegar willow yarrow zephyr книга море 猫在花园 ελιά"
).split()

QUERIES = (
    SearchQuery(text="kestrel walnut", limit=1_000),
    SearchQuery(text="Where did we see the dolphins in the lagoon?", limit=20, neighbours=2),
    SearchQuery(text='"compass orchard"', limit=1_000),
    SearchQuery(text="jumiper", tapes=(TAPES[0],), limit=50),
    SearchQuery(text="花园", senders=frozenset({"Ada"}), limit=1_000),
    SearchQuery(text="море ember", since=_BEGIN + timedelta(hours=3), limit=1_000),
    SearchQuery(tapes=(TAPES[1],), limit=1_000),
    SearchQuery(kinds=frozenset({"anchor"}), limit=1_000),
    SearchQuery(text="falcon", tapes=(TAPES[2],), after_anchor="mark", limit=1_000),
)

Answers = list[list[tuple[Any, ...]]]


def said(number: int, chance: random.Random) -> TapeEntry:
    """A message of a few words; its time is its own, so that no two fit equally well."""
    words = " ".join(chance.choices(WORDS, k=chance.randrange(3, 12)))
    if chance.random() < 0.1:
        words += " compass orchard"
    moment = (_BEGIN + timedelta(minutes=number)).isoformat()
    name = chance.choice(("Ada", "Bob"))
    if chance.random() < 0.3:
        return message("assistant", words, ts=moment)
    return message("user", words, ts=moment, sent=moment, sender={"id": name[0], "name": name})


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[FileTapeStore]:
    store = FileTapeStore(folder, sync=False, **options)
    try:
        yield store
    finally:
        await store.close()


async def write_tapes(folder: Path, *, seed: int = 1, each: int = 60) -> None:
    """Write tapes with a sealed part, and with entries that a reset dropped."""
    chance = random.Random(seed)
    numbers = iter(range(100_000))
    async with opened(folder) as store:
        for tape in TAPES:
            await store.create_tape(tape)
            for part in range(3):
                batch = [said(next(numbers), chance) for _ in range(each // 3)]
                await store.append_many(tape, batch)
                if part == 0:
                    await store.archive(tape, [said(next(numbers), chance)])
                elif part == 1 and tape == TAPES[1]:
                    await store.reset(tape, [said(next(numbers), chance)])
                await store.append(tape, anchor("session/new", ts=batch[-1].meta["ts"]))
            await store.create_anchor(tape, "mark", (await store.version(tape)) - 12)


def shape(hits: list[Hit]) -> list[tuple[Any, ...]]:
    """What counts of an answer: everything but the scores."""
    return [(hit.tape, hit.entry, hit.before, hit.after) for hit in hits]


async def answers(store: FileTapeStore) -> Answers:
    """What the store says to every question, and the anchors of every tape it still has."""
    found: Answers = [shape(await store.search(query)) for query in QUERIES]
    return [*found, *[[tuple(await store.list_anchors(tape))] for tape in TAPES]]


async def fresh_answers(folder: Path, scratch: Path) -> Answers:
    """What a store says of these tapes that has never had an index of them."""
    copy_tapes(folder, scratch)
    async with opened(scratch) as store:
        found = await answers(store)
    shutil.rmtree(scratch)
    return found


def index_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.index.db*"))


def copy_tapes(folder: Path, to: Path) -> None:
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*.index.db*", ".lock", ".owner"))


async def indexed_and_closed(folder: Path) -> None:
    async with opened(folder) as store:
        await answers(store)


def indexed_and_killed(folder: Path) -> None:
    """Leave an index as SIGKILL leaves it: with what was written ahead beside it."""
    child = subprocess.Popen(
        [sys.executable, __file__, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child:
        said = child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    assert said == "indexed\n"
    assert any(path.name.endswith("-wal") and path.stat().st_size for path in index_files(folder))


# Damage: each takes a file that is there and not empty.


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 5, 50))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def overwrite(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data))
    data[start : start + chance.choice((1, 16, 4096))] = chance.randbytes(
        min(len(data) - start, chance.choice((1, 16, 4096)))
    )
    path.write_bytes(data)


def zero(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    size = min(len(data), chance.choice((512, 4096, 32_768)))
    start = chance.randrange(0, len(data), 512)
    data[start : start + size] = bytes(len(data[start : start + size]))
    path.write_bytes(data)


def truncate(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def swap_pages(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    pages = [data[start : start + 4096] for start in range(0, len(data), 4096)]
    one, other = chance.randrange(len(pages)), chance.randrange(len(pages))
    pages[one], pages[other] = pages[other], pages[one]
    path.write_bytes(b"".join(pages))


def remove(path: Path, _: random.Random) -> None:
    path.unlink()


DAMAGE: tuple[Callable[[Path, random.Random], None], ...] = (
    flip,
    overwrite,
    zero,
    truncate,
    swap_pages,
    remove,
)


async def _index_and_wait(folder: Path) -> None:
    async with opened(folder) as store:
        await answers(store)
        # What is written behind the last checkpoint is only in the file beside.
        await store.append(TAPES[0], message("user", "ivory", ts=_BEGIN.isoformat()))
        await answers(store)
        sys.stdout.write("indexed\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(_index_and_wait, Path(sys.argv[1]))
