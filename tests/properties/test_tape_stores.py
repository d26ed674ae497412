"""Any history of a tape, with kills and damage in it, against a list that plays the tape."""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.tape.codec import decode_line, encode_entries
from bot.tape.entries import TapeEntry, event, message
from bot.tape.short_lines import expand_line
from bot.tape.store import HEADER_EVENT, REPAIR_EVENT, TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore

TAPE = "telegram:42"
proved = settings(max_examples=examples(60))

text = st.text(st.characters(exclude_categories=()), max_size=8)
batches = st.lists(text, max_size=4)
payloads = st.dictionaries(
    text,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=8,
    ).filter(lambda value: "inf" not in repr(value)),
    max_size=3,
)
# What may happen to a tape, each with what it carries.
steps = st.one_of(
    st.tuples(st.just("append"), batches),
    st.tuples(st.just("archive"), batches),
    st.tuples(st.just("reset"), batches),
    st.tuples(st.just("replace"), st.just([])),
    st.tuples(st.just("reopen"), st.just([])),
)


def says(texts: list[str]) -> list[TapeEntry]:
    return [message("user", text) for text in texts]


def live_file(folder: Path) -> Path:
    [path] = [path for path in folder.glob("*.jsonl") if path.name.count(".") == 1]
    return path


class Model:
    """The tape as a list: what each entry says, under its id."""

    def __init__(self) -> None:
        self.version = 1
        self.sealed: dict[int, str] = {}
        self.live = {1: HEADER_EVENT}

    def extend(self, texts: list[str]) -> None:
        for said in texts:
            self.version += 1
            self.live[self.version] = said

    def begin(self, texts: list[str], *, keep: bool) -> None:
        self.sealed = self.sealed | self.live if keep else {}
        self.live = {}
        self.extend([HEADER_EVENT, *texts])

    @property
    def entries(self) -> dict[int, str]:
        return self.sealed | self.live


def said(entries: list[TapeEntry]) -> dict[int, str]:
    return {entry.id: entry.name or entry.payload["content"] for entry in entries}


async def take(store: TapeStore, model: Model, step: str, texts: list[str]) -> None:
    if step == "append":
        await store.append_many(TAPE, says(texts), expect=model.version)
        model.extend(texts)
    elif step == "archive":
        segment = await store.archive(TAPE, says(texts))
        assert (segment.first_id, segment.last_id) == (min(model.live), max(model.live))
        model.begin(texts, keep=True)
    elif step in ("reset", "replace"):
        if step == "reset":
            await store.reset(TAPE, says(texts))
        else:
            await store.create_tape(TAPE, replace_if_exists=True)
        model.begin(texts, keep=False)


async def check(store: TapeStore, model: Model, first: int, last: int) -> None:
    found = await store.read(TAPE)
    assert said(found) == model.entries
    assert await store.version(TAPE) == model.version
    assert [entry async for entry in store.read_back(TAPE)] == found[::-1]
    assert await store.read(TAPE, first, last) == [e for e in found if first <= e.id <= last]
    back = [entry async for entry in store.read_back(TAPE, last)]
    assert back == [entry for entry in found if entry.id < last][::-1]


@asynccontextmanager
async def opened(folder: Path, **options: bool) -> AsyncIterator[FileTapeStore]:
    store = FileTapeStore(folder, sync=False, **options)
    try:
        yield store
    finally:
        await store.close()


@proved
@given(st.lists(payloads, min_size=1, max_size=4))
async def test_any_payload_comes_back_exactly_from_every_store(found):
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder)) as files:
            for store in (InMemoryTapeStore(), files):
                await store.create_tape(TAPE)
                written = await store.append_many(TAPE, [event("e", data) for data in found])
                read = await store.read(TAPE, 2)
                assert read == written
                assert repr([entry.data for entry in read]) == repr(found)


@proved
@given(st.lists(steps, max_size=8), st.integers(1, 20), st.integers(1, 20))
async def test_the_memory_store_is_the_list(history, first, last):
    store, model = InMemoryTapeStore(), Model()
    await store.create_tape(TAPE)
    for step, texts in history:
        await take(store, model, step, texts)
        await check(store, model, first, last)


@proved
@given(st.lists(steps, max_size=8), st.integers(1, 20), st.integers(1, 20))
async def test_the_file_store_is_the_list_over_any_history_and_reopening(history, first, last):
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        store = FileTapeStore(Path(folder), sync=False)
        try:
            await store.create_tape(TAPE)
            for step, texts in history:
                if step == "reopen":
                    await store.close()
                    store = FileTapeStore(Path(folder), sync=False)
                await take(store, model, step, texts)
                await check(store, model, first, last)
        finally:
            await store.close()


def cut(folder: Path, safe: int, share: float) -> None:
    """Shorten the live file to a point inside what came after ``safe``."""
    path = live_file(folder)
    data = path.read_bytes()
    path.write_bytes(data[: safe + int((len(data) - safe) * share)])
    for heads in folder.glob("*.heads"):
        heads.unlink()  # what was cut off was not acknowledged


def damage(folder: Path, which: int) -> int | None:
    """Make one message of the live file unreadable; return its id."""
    path = live_file(folder)
    raw = path.read_bytes().splitlines(keepends=True)
    places = [
        place
        for place, line in enumerate(raw)
        if (found := decode_line(line)) and "kept" in str(found.entry.payload)
    ]
    if not places:
        return None
    place = places[which % len(places)]
    line = decode_line(raw[place])
    raw[place] = b"\xff" * (len(raw[place]) - 1) + b"\n"
    path.write_bytes(b"".join(raw))
    return line.entry.id if line else None


# A round of life: what is kept, what is being written at the kill, how much of it arrives, and
# which line the disk spoils, if any.
rounds = st.tuples(
    st.integers(0, 3),
    st.integers(1, 4),
    st.floats(0, 1, exclude_max=True),
    st.none() | st.integers(0, 20),
)


@proved
@given(st.lists(rounds, min_size=1, max_size=4))
async def test_kills_and_damage_cost_what_they_hit_and_no_more(history):
    """Acknowledged entries stay, cut batches are not there, no id is ever given twice."""
    acknowledged: dict[int, str] = {}
    spoiled: set[int] = set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kept, lost, share, which in history:
            async with opened(folder) as store:
                await store.create_tape(TAPE)
                batch = says([f"kept {number}" for number in range(kept)])
                fresh = said(await store.append_many(TAPE, batch))
                assert not fresh.keys() & (acknowledged.keys() | spoiled)
                acknowledged |= fresh
                safe = live_file(folder).stat().st_size
                await store.append_many(TAPE, says([f"lost {n}" for n in range(lost)]))
            cut(folder, safe, share)
            if which is not None and (hit := damage(folder, which)) is not None:
                acknowledged.pop(hit)
                spoiled.add(hit)
            async with opened(folder, read_only=True) as beside:
                before = await beside.read(TAPE)
                assert [entry async for entry in beside.read_back(TAPE)] == before[::-1]
            async with opened(folder) as store:
                found = await store.read(TAPE)
                assert [entry async for entry in store.read_back(TAPE)] == found[::-1]
                for entry in found:
                    assert await store.read(TAPE, entry.id, entry.id) == [entry]
            assert found[: len(before)] == before
            talk = [entry for entry in found if entry.name not in (HEADER_EVENT, REPAIR_EVENT)]
            assert said(talk) == acknowledged


@proved
@given(st.binary(max_size=300), st.booleans())
async def test_any_bytes_in_a_tapes_file_open_and_lose_no_later_append(junk, after):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with opened(folder) as store:
            await store.create_tape(TAPE)
            await store.append(TAPE, says(["good"])[0])
        path = live_file(folder)
        path.write_bytes((path.read_bytes() if after else b"") + junk)
        async with opened(folder) as store:
            written = await store.append_many(TAPE, says(["first", "second"]))
            written.append(await store.append(TAPE, says(["third"])[0]))
            statistics = store.statistics()
            for reader in (store.read(TAPE), store.read(TAPE, written[0].id)):
                assert (await reader)[-3:] == written
        async with opened(folder) as store:
            found = await store.read(TAPE)
            assert found[-3:] == written
            assert after <= ("good" in said(found).values())
            assert [entry.id for entry in found] == sorted({entry.id for entry in found})
        assert not junk or any(statistics[key] for key in ("torn_bytes", "damaged_lines"))


@proved
@given(st.lists(batches.filter(bool), min_size=1, max_size=4))
async def test_a_file_says_what_its_lines_say(history):
    """Nothing but the lines is needed to read a tape: any program can."""
    with tempfile.TemporaryDirectory() as name:
        async with opened(Path(name)) as store:
            await store.create_tape(TAPE)
            for texts in history:
                await store.append_many(TAPE, says(texts))
            found = await store.read(TAPE)
        raw = live_file(Path(name)).read_bytes()
    read = [decode_line(line) for line in raw[:-1].split(b"\n")]
    assert [line.entry for line in read if line] == found
    groups = [found[:1]]
    for texts in history:
        start = sum(len(group) for group in groups)
        groups.append(found[start : start + len(texts)])
    bare = re.sub(rb',"chain":"[A-Za-z0-9+/]{48}"\}(?=\n)', b"", raw)
    full = b"".join(encode_entries(group) for group in groups)
    assert [expand_line(line) for line in bare.splitlines()] == [
        line.removesuffix(b"}") for line in full.splitlines()
    ]
