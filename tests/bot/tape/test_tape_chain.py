"""Every line of a tape carries its check: a flipped bit is found and costs one entry, a cut is noticed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from tape_files import live_file, opened, says

from bot.tape.entries import TapeEntry, message
from bot.tape.store import HEADER_EVENT, REPAIR_EVENT
from bot.tape.stores.folder_repair import repair_folder
from bot.tape.stores.folder_verification import verify_folder

TAPE = "telegram:42"


async def talked(folder: Path, turns: int = 6) -> list[TapeEntry]:
    async with opened(folder) as store:
        await store.create_tape(TAPE)
        for number in range(turns):
            await store.append_many(
                TAPE, [says(f"Überraschung {number}"), message("assistant", '{"id":1}' * number)]
            )
            await store.append(TAPE, says("alone"))
        return await store.read(TAPE)


async def read_all(folder: Path) -> list[TapeEntry]:
    async with opened(folder, read_only=True) as store:
        return await store.read(TAPE)


def wrong(folder: Path) -> list[str]:
    return [str(problem) for problem in verify_folder(folder, "", None).problems]


async def flips_are_found(folder: Path, work: Path, count: int) -> None:
    entries = await talked(folder)
    data = live_file(folder).read_bytes()
    chance = random.Random(7)
    assert wrong(folder) == []
    for bit in (chance.randrange(len(data) * 8) for _ in range(count)):
        shutil.copytree(folder, work)
        path = live_file(work)
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert wrong(work), f"bit {bit} was flipped unnoticed"
        if bit % 2:
            repair_folder(work, "")
            assert path.read_bytes() == data, f"bit {bit} was not flipped back"
        # Also where the one that reads may repair.
        async with opened(work) as store:
            await store.append(TAPE, says("goes on"))
            found = [one for one in await store.read(TAPE) if one.name != REPAIR_EVENT]
        assert found[-1].payload == says("goes on").payload
        lost = [one for one in entries if one not in found]
        assert len(lost) <= 1 - bit % 2, f"bit {bit} cost {[one.id for one in lost]}"
        assert all(one in entries for one in found[:-1])
        shutil.rmtree(work)


async def test_a_flipped_bit_of_a_live_tape_is_found_and_mended_and_costs_at_most_its_entry(
    tmp_path,
):
    await flips_are_found(tmp_path / "tape", tmp_path / "work", 10)


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(600)
async def test_ten_thousand_flipped_bits_are_all_found(tmp_path):
    await flips_are_found(tmp_path / "tape", tmp_path / "work", 10_000)


@pytest.mark.parametrize("lines", [0, 5])
async def test_a_tape_that_was_cut_is_noticed_when_it_is_opened_and_goes_on(tmp_path, lines):
    entries = await talked(tmp_path)
    path = live_file(tmp_path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))
    assert any(f"up to {entries[-1].id} were recorded" in problem for problem in wrong(tmp_path))
    async with opened(tmp_path) as store:
        added = await store.append(TAPE, says("after"))
        assert added.id > entries[-1].id
        found = await store.read(TAPE)
        assert found[:lines] == entries[:lines]
        [note] = [one for one in found if one.name == REPAIR_EVENT]
        assert note.data["missing"] == entries[-1].id
        assert await store.list_tapes() == [TAPE]
    async with opened(tmp_path) as store:
        # It is told once.
        assert len([one for one in await store.read(TAPE) if one.name == REPAIR_EVENT]) == 1


async def test_a_tape_whose_file_was_taken_away_never_gives_an_id_again(tmp_path):
    entries = await talked(tmp_path)
    live_file(tmp_path).unlink()
    assert any("is missing" in problem for problem in wrong(tmp_path))
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        head, note = await store.read(TAPE)
        assert (head.name, note.name) == (HEADER_EVENT, REPAIR_EVENT)
        assert (head.id, note.data["missing"]) == (entries[-1].id + 1, entries[-1].id)
