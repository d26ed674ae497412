"""Kill -9 while tapes in files are archived, packed and merged: nothing is lost, or halfway."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from nursery import nursery

from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder

HOST = Path(__file__).with_name("kill_tape_host.py")
TAPE = "telegram:42"


@dataclass
class Account:
    said: dict[int, str] = field(default_factory=dict)
    sealed: list[str] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)

    def hear(self, heard: list[dict[str, Any]]) -> None:
        for event in heard:
            fresh = {int(number): text for number, text in event.get("said", {}).items()}
            assert not fresh.keys() & self.said.keys(), "an id was given twice"
            self.said |= fresh
            if "sealed" in event:
                self.sealed.append(event["sealed"])
            if "merged" in event:
                self.merged.add(event["merged"])


async def check(folder: Path, account: Account) -> None:
    """What holds after any kill, at once and after the next start."""
    assert [str(problem) for problem in verify_folder(folder, "").problems] == []
    store = FileTapeStore(folder, sync=False)
    try:
        if TAPE not in await store.list_tapes():
            assert not account.said
            return
        found = await store.read(TAPE)
        assert [entry async for entry in store.read_back(TAPE)] == found[::-1]
        assert [entry.id for entry in found] == list(range(1, len(found) + 1)), "ids are not dense"
        by_id = {entry.id: entry.payload.get("content") for entry in found}
        assert {number: by_id.get(number) for number in account.said} == account.said
        segments = await store.segments(TAPE)
        heads = [entry.id for entry in found if entry.name == HEADER_EVENT]
        assert heads == [segment.first_id for segment in segments] + heads[-1:]
        assert not set(account.sealed) - {segment.name for segment in segments}
        check_merges(found, account.merged)
    finally:
        await store.close()
    assert [str(problem) for problem in verify_folder(folder, "").problems] == []
    assert not list(folder.glob("*.new"))
    assert not list(folder.glob("*.next"))


def check_merges(found: list[TapeEntry], acknowledged: set[str]) -> None:
    """Each merge is there whole and in one piece, or not at all."""
    texts = [str(entry.payload.get("content")) for entry in found]
    assert not any(text.startswith("discarded") for text in texts)
    starts = {text: place for place, text in enumerate(texts) if text.startswith("merged")}
    marks = {text.rpartition(".")[0] for text in starts}
    for mark in marks:
        first = next(place for text, place in starts.items() if text.startswith(f"{mark}."))
        size = int(texts[first].rpartition("/")[2])
        assert texts[first : first + size] == [f"{mark}.{n}/{size}" for n in range(size)]
        assert sum(text.startswith(f"{mark}.") for text in texts) == size
    assert not acknowledged - marks


def kills(count: int, moments: list[str], chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield kills: at one of the moments, at a change of any file, at any time."""
    for number in range(count):
        if number % 3 == 0:
            moment = moments[number // 3 % len(moments)]
            yield {"times": chance.randint(1, 3), "moment": moment, "part": chance.random()}
        elif number % 3 == 1:
            after = chance.random() < 0.5
            yield {"times": chance.randint(1, 60), "after": after, "part": chance.random()}
        else:
            yield {"seconds": chance.uniform(0.001, 0.25)}


async def kill_often(folder: Path, work: str, count: int, moments: list[str]) -> None:
    """Kill so many times, on a new folder after some; see that each moment was among them."""
    chance = random.Random(9)
    hit: Counter[str] = Counter()
    account = Account()
    with nursery(HOST) as host:
        for number, kill in enumerate(kills(count, moments, chance)):
            home = folder / str(number // 20)
            if number % 20 == 0:
                account = Account()
            life = partial(host.life, folder=home, work=work, seed=number, kill=kill)
            heard = await anyio.to_thread.run_sync(life)
            account.hear(heard)
            await check(home, account)
            hit.update(event.get("died", "late") for event in heard if "said" not in event)
    assert set(moments[: (count + 2) // 3]) <= hit.keys(), sorted(hit)


HUNDRED = pytest.mark.parametrize(
    "count", [6, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.night])]
)


@pytest.mark.slow
@HUNDRED
async def test_kills_while_archiving_and_packing_lose_nothing(tmp_path: Path, count: int):
    moments = [
        "after link live",
        "before unlink segment",
        "after fsync fresh",
        "after replace fresh",
        "before write packed",
        "after fsync packed",
        "before replace packed",
        "after replace packed",
        "after unlink segment",
        "before write live",
    ]
    await kill_often(tmp_path, "archive", count, moments)


@pytest.mark.slow
@HUNDRED
async def test_kills_while_merging_leave_whole_merges_or_none(tmp_path: Path, count: int):
    moments = ["before write live", "after write live", "before fdatasync live"]
    await kill_often(tmp_path, "merge", count, moments)
