"""Killed at any moment, with its index deleted at any moment, a store finds all that was acknowledged."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest
from nursery import nursery
from sampling import many

from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

pytestmark = pytest.mark.slow

HOST = Path(__file__).with_name("kill_tape_host.py")
TAPE = "telegram:42"


async def check(folder: Path, said: dict[int, str], some: list[int]) -> None:
    """See that words are found once and where they are, and that the index holds each message once."""
    store = FileTapeStore(folder, sync=False)
    try:
        if TAPE not in await store.list_tapes():
            assert not said
            return
        for number in some:
            hits = await store.search(SearchQuery(text=said[number], limit=20))
            found = [h.entry.id for h in hits if said[number] in str(h.entry.payload["content"])]
            assert found == [number]
        messages = {e.id: e.payload for e in await store.read(TAPE) if e.kind == "message"}
        assert all(word in messages[number]["content"] for number, word in said.items())
        for first in range(1, max(messages, default=0) + 1, 500):
            last = first + 499
            query = SearchQuery(
                text="harbour",
                tapes=(TAPE,),
                kinds=frozenset({"message"}),
                first=first,
                last=last,
                limit=1_000,
            )
            hits = await store.search(query)
            assert sorted(h.entry.id for h in hits) == [n for n in messages if first <= n <= last]
    finally:
        await store.close()


async def test_killed_while_it_indexes_a_store_finds_all_that_was_acknowledged(tmp_path):
    chance, said = random.Random(1), dict[int, str]()
    folder = tmp_path / "tapes"
    with nursery(HOST) as host:
        for number in range(many(20)):
            if number % 4 == 1:
                for path in folder.glob("*.index.db*"):
                    path.unlink()
            kill = {"times": chance.randint(5, 300), "part": chance.random()}
            if number % 2:
                kill = {"seconds": chance.uniform(0.05, 1.0)}
            life = partial(host.life, folder=folder, work="index", seed=number, kill=kill)
            fresh: dict[int, str] = {}
            for event in await anyio.to_thread.run_sync(life):
                assert "wrong" not in event, event
                fresh |= {int(one): word for one, word in event.get("said", {}).items()}
            said |= fresh
            # Otherwise the next start meets what this kill left.
            if chance.random() < 0.4:
                await check(folder, said, chance.sample([*fresh], min(20, len(fresh))))
    assert said
    await check(folder, said, chance.sample([*said], min(50, len(said))))
