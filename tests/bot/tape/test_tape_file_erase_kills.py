"""Kill -9 while entries are erased: each is the old one or its tombstone, and erasing again completes it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from erased_words import bytes_below
from nursery import nursery
from tape_files import opened

from bot.tape.search import SearchQuery
from bot.tape.stores.folder_verification import verify_folder

HOST = Path(__file__).parents[2] / "e2e" / "kill_tape_host.py"
TAPE = "telegram:42"
MOMENTS = [
    "before unlink other",
    "after unlink other",
    "before fsync fresh",
    "after fsync fresh",
    "before replace fresh",
    "after replace fresh",
    "before replace packed",
    "after replace packed",
]
"""Of the index's digest; of a part written anew; of one packed anew."""


@dataclass
class Account:
    """What was said and erased on one folder, over all lives."""

    words: dict[int, str] = field(default_factory=dict)
    pending: set[int] = field(default_factory=set)
    erased: set[int] = field(default_factory=set)

    def hear(self, heard: list[dict[str, Any]]) -> None:
        for event in heard:
            fresh = {int(number): word for number, word in event.get("said", {}).items()}
            assert not fresh.keys() & self.words.keys(), "an id was given twice"
            self.words |= fresh
            self.pending |= set(event.get("erasing", ()))
            self.erased |= set(event.get("erased", ()))
            self.pending -= self.erased

    def left(self, folder: Path) -> list[tuple[str, str]]:
        """Return where fragments of erased words are."""
        return [
            (name, word)
            for name, data in bytes_below(folder).items()
            for word in map(self.words.__getitem__, self.erased)
            if any(word[start : start + 8].encode() in data for start in (0, 4, 8, 12))
        ]


async def check(folder: Path, account: Account) -> None:
    """What holds after any kill, at once, after the next start, and once it is completed."""
    assert [str(problem) for problem in verify_folder(folder, "").problems] == []
    assert account.left(folder) == []
    async with opened(folder) as store:
        assert not list(folder.glob("*.new*"))
        if TAPE not in await store.list_tapes():
            assert not account.words
            return
        held = {entry.id: entry for entry in await store.read(TAPE)}
        assert list(held) == list(range(1, len(held) + 1))
        for number, word in account.words.items():
            allowed = {"" if number in account.erased else word}
            allowed |= {""} if number in account.pending else set()
            assert held[number].payload["content"] in allowed, number
        # What was appended and not acknowledged may have been erased, too.
        account.words |= {
            n: e.payload["content"] for n, e in held.items() if e.payload.get("content")
        }
        tombstones = [
            replace(held[number], payload={"content": ""}, meta={}) for number in account.pending
        ]
        await store.erase(TAPE, tombstones)
        account.erased |= account.pending
        account.pending = set()
        query = SearchQuery(tapes=(TAPE,), kinds=frozenset({"message"}), limit=999)
        messages = [number for number, entry in held.items() if entry.kind == "message"]
        assert {hit.entry.id for hit in await store.search(query)} == set(messages[-999:])
        kept = sorted(account.words.keys() - account.erased)[-3:]
        for number in kept:
            [first, *_] = await store.search(SearchQuery(f'"{account.words[number]}"'))
            assert first.entry.id == number
        assert account.left(folder) == []
    assert [str(problem) for problem in verify_folder(folder, "").problems] == []
    assert account.left(folder) == []


def kills(count: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield kills: at one of the moments, at a change of any file, at any time."""
    for number in range(count):
        if number % 3 < 2:
            moment = MOMENTS[(number - number // 3) % len(MOMENTS)]
            yield {"times": chance.randint(1, 3), "moment": moment, "part": chance.random()}
        elif chance.random() < 0.5:
            after = chance.random() < 0.5
            yield {"times": chance.randint(1, 60), "after": after, "part": chance.random()}
        else:
            yield {"seconds": chance.uniform(0.02, 0.4)}


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, pytest.param(90, marks=pytest.mark.night)])
async def test_kills_while_erasing_leave_old_entries_or_tombstones_and_nothing_of_what_was_erased(
    tmp_path: Path, count: int
):
    chance = random.Random(9)
    hit: Counter[str] = Counter()
    account = Account()
    with nursery(HOST) as host:
        for number, kill in enumerate(kills(count, chance)):
            folder = tmp_path / str(number // 15)
            if number % 15 == 0:
                account = Account()
            with anyio.fail_after(60):
                life = partial(host.life, folder=folder, work="erase", seed=number, kill=kill)
                heard = await anyio.to_thread.run_sync(life)
            account.hear(heard)
            await check(folder, account)
            hit.update(
                event.get("died", "late") for event in heard if "dead" in event or "died" in event
            )
    assert account.erased
    if count > 60:
        assert set(MOMENTS) <= hit.keys(), sorted(hit)
