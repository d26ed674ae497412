"""Tapes to search, what is asked of them, and what is answered."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tape_files import opened

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
