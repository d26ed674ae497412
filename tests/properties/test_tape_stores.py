"""What a tape's file holds after kills and damage: all that was acknowledged, and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.tape.codec import decode_line
from bot.tape.entries import TapeEntry, message
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.file import FileTapeStore

TAPE = "telegram:42"
proved = settings(max_examples=examples(60))

text = st.text(st.characters(exclude_categories=()), max_size=8)
batches = st.lists(text, max_size=4).filter(bool)


def says(texts: list[str]) -> list[TapeEntry]:
    return [message("user", text) for text in texts]


def live_file(folder: Path) -> Path:
    [path] = [path for path in folder.glob("*.jsonl") if path.name.count(".") == 1]
    return path


def said(entries: list[TapeEntry]) -> dict[int, str]:
    return {entry.id: entry.name or entry.payload["content"] for entry in entries}


@asynccontextmanager
async def opened(folder: Path, **options: bool) -> AsyncIterator[FileTapeStore]:
    store = FileTapeStore(folder, sync=False, **options)
    try:
        yield store
    finally:
        await store.close()


def cut(folder: Path, safe: int, share: float) -> None:
    """Shorten the live file to a point inside what came after ``safe``."""
    path = live_file(folder)
    data = path.read_bytes()
    path.write_bytes(data[: safe + int((len(data) - safe) * share)])


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
            talk = [entry for entry in found if entry.name != HEADER_EVENT]
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
