"""Every line of a tape carries its check: a flipped bit is found and costs one entry, a cut is noticed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import anyio
import pytest
from tape_files import live_file, opened, says
from waiting import until

from bot.tape import chain
from bot.tape.chain import CHAIN_START
from bot.tape.codec import decode_line, encode_chained, encode_entries
from bot.tape.entries import TapeEntry, message
from bot.tape.store import HEADER_EVENT, REPAIR_EVENT, header_entry
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder

TAPE = "telegram:42"


async def talked(folder: Path, turns: int = 12) -> list[TapeEntry]:
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
    for number in range(count):
        bit = chance.randrange(len(data) * 8)
        shutil.copytree(folder, work / str(number))
        path = live_file(work / str(number))
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        here = data[: bit // 8 + 1].count(b"\n") or 1
        assert wrong(path.parent), f"bit {bit} of line {here} was flipped unnoticed"
        # Also where the one that reads may repair.
        async with opened(path.parent) as store:
            await store.append(TAPE, says("goes on"))
            found = [one for one in await store.read(TAPE) if one.name != REPAIR_EVENT]
        assert [one.payload for one in found[-1:]] == [says("goes on").payload]
        lost = [one for one in entries if one not in found]
        assert len(lost) <= 1, f"bit {bit} of line {here} cost {[one.id for one in lost]}"
        assert all(one in entries for one in found[:-1])
        shutil.rmtree(path.parent)


async def test_a_flipped_bit_of_a_live_tape_is_found_and_costs_at_most_its_entry(tmp_path):
    await flips_are_found(tmp_path / "tape", tmp_path / "work", 150)


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(600)
async def test_ten_thousand_flipped_bits_are_all_found(tmp_path):
    await flips_are_found(tmp_path / "tape", tmp_path / "work", 10_000)


@pytest.mark.parametrize("lines", [0, 1, 5])
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


async def test_an_older_copy_in_the_place_of_a_tape_is_noticed(tmp_path):
    await talked(tmp_path, 2)
    older = live_file(tmp_path).read_bytes()
    async with opened(tmp_path) as store:
        recorded = await store.append(TAPE, says("the truth"))
    path = live_file(tmp_path)
    path.write_bytes(older)
    async with opened(tmp_path) as store:
        assert [
            e.data.get("missing") for e in await store.read(TAPE) if e.name == REPAIR_EVENT
        ] == [recorded.id]
    # Another entry of the same id is none of this tape, though its own digest is right.
    other = older + encode_chained([TapeEntry(recorded.id, "message", {}, {})], CHAIN_START)[0]
    path.write_bytes(other)
    for heads in tmp_path.glob("*.heads"):
        heads.unlink()
    shutil.rmtree(tmp_path / "again", ignore_errors=True)
    assert any("does not follow" in problem for problem in wrong(tmp_path))


async def test_a_kill_right_after_an_append_leaves_nothing_to_complain_of(tmp_path):
    """The head is written after the entry, so it may be behind, and is never before it."""
    await talked(tmp_path)
    heads = next(tmp_path.glob("*.heads"))
    before = heads.read_bytes()
    async with opened(tmp_path) as store:
        await store.append(TAPE, says("one more"))
    heads.write_bytes(before)
    async with opened(tmp_path) as store:
        assert not [one for one in await store.read(TAPE) if one.name == REPAIR_EVENT]
    assert wrong(tmp_path) == []


def links(path: Path) -> list[chain.ChainLink]:
    lines = map(decode_line, path.read_bytes().splitlines())
    return [line.link for line in lines if line is not None and line.link is not None]


async def test_a_tape_from_before_the_chain_opens_and_gets_its_chain_at_the_next_seal(tmp_path):
    store = FileTapeStore(tmp_path, sync=False)
    path = store._folder.live_path(TAPE)
    old = [header_entry(TAPE, None), says("hello"), says("there")]
    entries = [TapeEntry(n, e.kind, e.payload, {"ts": "x"}) for n, e in enumerate(old, 1)]
    path.write_bytes(b"".join(encode_entries([one]) for one in entries))
    await store.close()
    async with opened(tmp_path) as store:
        assert await store.read(TAPE) == entries
        await store.append(TAPE, says("still without"))
        assert links(live_file(tmp_path)) == []
        await store.archive(TAPE)
        await store.append(TAPE, says("with"))
        assert len(links(live_file(tmp_path))) == 2
        assert len(await store.read(TAPE)) == 6
    report = verify_folder(tmp_path, "", None)
    assert (report.problems, report.unchained) == ([], 4)


async def test_cut_and_missing_tapes_are_told_in_the_log_at_the_start(tmp_path, caplog):
    async with opened(tmp_path) as store:
        for number in range(4):
            await store.create_tape(f"telegram:{number}")
            await store.append_many(f"telegram:{number}", [says("a"), says("b")])
        paths = [store._folder.live_path(f"telegram:{number}") for number in range(4)]
    paths[1].unlink()
    paths[2].write_bytes(b"")
    paths[3].write_bytes(b"".join(paths[3].read_bytes().splitlines(keepends=True)[:2]))
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await until(lambda: store.statistics()["cut_tapes"] >= 3)
        tasks.cancel_scope.cancel()
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    # Mending goes on behind it, and may tell more of the same files.
    assert [any(path.name in one for one in told) for path in paths] == [False, True, True, True]
    assert f"{paths[1].name} is gone" in "".join(told)
