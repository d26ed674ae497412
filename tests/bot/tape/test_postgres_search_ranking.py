"""The search in PostgreSQL finds what the index in files finds, in the same order, over any tapes."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio.to_thread
import pytest
from databases import drop, fresh_database

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.tape.entries import TapeEntry, anchor, event, message, system, tool_result
from bot.tape.index import ranking
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import TapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.tape.stores.postgres import PostgresTapeStore

TAPES = ("telegram:1", "discord:2", "console:3")
BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
WORDS = (
    "kestrel walnut harbour velvet compass orchard lantern thimble glacier saffron anvil bramble "
    "cobalt dolphin ember falcon gravel hazel ivory juniper kettle lagoon marble nectar opal the of "
    "and pepper quarry ribbon sorrel timber willow книга море 猫在花园 花园里 ελιά january 5"
).split()
PROBLEMS = ("", "p1", "p2")


@pytest.fixture
async def stores() -> AsyncIterator[tuple[TapeStore, TapeStore]]:
    url = await anyio.to_thread.run_sync(fresh_database)
    database = Database(url)
    await database.open()
    memory = InMemoryTapeStore()
    yield memory, PostgresTapeStore(database, Wakeups(database))
    await memory.close()
    await database.close()
    await anyio.to_thread.run_sync(drop, url)


class Talk:
    """Random talk, the same for both stores; each entry has a time of its own."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._minutes = 0

    def words(self, most: int) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randrange(1, most)))

    def entry(self) -> TapeEntry:
        self._minutes += 1
        when = (BEGIN + timedelta(minutes=self._minutes)).isoformat()
        meta: dict[str, Any] = {"ts": when}
        if problem := self.chance.choice(PROBLEMS):
            meta["problem"] = problem
        if self.chance.random() < 0.2:
            meta["tags"] = self.chance.sample(["red", "blue"], k=self.chance.randrange(3))
        draw = self.chance.random()
        if draw < 0.45:
            who = self.chance.choice(("Ada", "Bo"))
            meta |= {"sent": when, "sender": {"id": who[0], "name": who}}
            if self.chance.random() < 0.1:
                meta["attachments"] = [{"name": "a.txt", "text": self.words(900)}]
            return message("user", self.words(12), **meta)
        if draw < 0.75:
            return message("assistant", self.words(20), **meta)
        if draw < 0.85:
            return tool_result("c", "web.read", self.words(600), **meta)
        if draw < 0.9:
            return event("episode", {"content": {"d": self.words(6)}}, **meta)
        if draw < 0.95:
            return system(self.words(5), **meta)
        return anchor("session/new", {"summary": self.words(5)}, **meta)

    def entries(self, count: int) -> list[TapeEntry]:
        return [self.entry() for _ in range(count)]

    def question(self) -> SearchQuery:
        pick = self.chance
        text = self.words(6)
        draw = pick.random()
        if draw < 0.15:
            text = f'"{" ".join(text.split()[:2])}" {self.words(3)}'
        elif draw < 0.3:
            word = pick.choice(WORDS[:20])
            text = word[:3] + word[4:]
        elif draw < 0.4:
            text = f"{text} Ada"
        elif draw < 0.5:
            text = ""
        filters: dict[str, Any] = {}
        if pick.random() < 0.3:
            filters["kinds"] = frozenset(pick.sample(["message", "tool_result", "anchor"], k=2))
        if pick.random() < 0.2:
            filters["senders"] = frozenset({pick.choice(("ada", "B", "assistant"))})
        if pick.random() < 0.3:
            filters["problem"] = pick.choice(("general", "p1", "p2", "p3"))
        if pick.random() < 0.15:
            filters["tags"] = frozenset({"red"})
        if pick.random() < 0.15:
            filters["since"] = BEGIN + timedelta(minutes=pick.randrange(150))
        if pick.random() < 0.15:
            filters["first"] = pick.randrange(40)
        tapes = pick.choice([None, TAPES[:1], TAPES[1:2], TAPES[1:], (TAPES[2], "nobody")])
        if filters.get("problem") == "general":
            # In files all that has no label counts as one, whatever tapes are asked for.
            tapes = None
        return SearchQuery(
            text,
            tapes=tapes,
            limit=pick.choice((1, 5, 50, 1_000)),
            neighbours=pick.choice((0, 2)),
            **filters,
        )


async def live(stores: Sequence[TapeStore], talk: Talk) -> None:
    """Do the same to the tapes of both."""
    for tape in TAPES:
        for store in stores:
            await store.create_tape(tape)
    for _ in range(12):
        tape, draw = talk.chance.choice(TAPES), talk.chance.random()
        entries = talk.entries(talk.chance.randrange(1, 14))
        for store in stores:
            if draw < 0.1:
                await store.archive(tape, entries)
            elif draw < 0.17:
                await store.reset(tape, entries)
            else:
                await store.append_many(tape, entries)
        if draw > 0.85:
            held = [one for one in await stores[0].read(tape) if one.kind == "message"]
            gone = talk.chance.sample(held, k=min(2, len(held)))
            empty = {"role": "user", "content": talk.words(3)}
            for store in stores:
                stones = [
                    TapeEntry(one.id, "message", empty, {"ts": one.meta["ts"]}) for one in gone
                ]
                await store.erase(tape, stones)


def shape(hits: list[Hit]) -> list[Any]:
    return [
        (hit.tape, hit.entry.id, hit.direct, [e.id for e in hit.before], [e.id for e in hit.after])
        for hit in hits
    ]


@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))]
)
async def test_both_stores_give_the_same_hits_in_the_same_order(stores, monkeypatch, seed):
    # How many beyond the best are read, to be ranked, differs in portions only.
    monkeypatch.setattr(ranking, "_RANKED", 10_000)
    talk = Talk(seed)
    await live(stores, talk)
    found = 0
    for _ in range(60):
        query = talk.question()
        here, there = [await store.search(query) for store in stores]
        assert shape(there) == shape(here), query
        assert [hit.score for hit in there] == pytest.approx([hit.score for hit in here]), query
        found += len(here)
    assert found > 60
