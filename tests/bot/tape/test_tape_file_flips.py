"""Each line of a tape carries its CRC: a flipped bit is found, told, and costs the append that it hits at most."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
from tape_files import flip, live_file, opened, pack_all, says

from bot.core.errors import TapeError
from bot.tape.codec import decode_line
from bot.tape.entries import TapeEntry, message
from bot.tape.stores.folder_verification import verify_folder

TAPE = "telegram:42"
ZCAT = shutil.which("zcat")


async def talked(folder: Path, turns: int = 6, *, long: int = 0) -> list[TapeEntry]:
    async with opened(folder) as store:
        await store.create_tape(TAPE)
        for number in range(turns):
            await store.append_many(
                TAPE,
                [
                    says(f"Überraschung {number} {'x ' * long}"),
                    message("assistant", '{"id":1}' * number),
                ],
            )
            await store.append(TAPE, says("alone"))
        return await store.read(TAPE)


def wrong(folder: Path) -> list[str]:
    return [str(problem) for problem in verify_folder(folder, "", None).problems]


async def flips_are_found(folder: Path, work: Path, count: int) -> None:
    entries = await talked(folder)
    data = live_file(folder).read_bytes()
    lines = [decode_line(raw) for raw in data.splitlines()]
    appends = {line.entry.id: line.entry.id + line.more for line in lines if line}
    chance = random.Random(7)
    newlines = [place * 8 for place, byte in enumerate(data) if byte == ord("\n")]
    assert wrong(folder) == []
    header = range(5, data.index(b"\n") * 8, 200)
    for bit in (*newlines, *header, *(chance.randrange(len(data) * 8) for _ in range(count))):
        shutil.copytree(folder, work)
        path = live_file(work)
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        # The very last newline is what a kill may lack.
        assert wrong(work) or bit // 8 == len(data) - 1, f"bit {bit} was flipped unnoticed"
        async with opened(work) as store:
            added = await store.append(TAPE, says("goes on"))
            found = await store.read(TAPE)
        assert found[-1] == added
        assert added.id > entries[-1].id
        lost = [one.id for one in entries if one not in found]
        assert len({appends[number] for number in lost}) <= 1, f"bit {bit} cost {lost}"
        assert bit not in newlines or not lost
        # A header that cannot be read is written anew.
        assert all(one in entries for one in found[:-1] if one.id > 1)
        shutil.rmtree(work)


async def test_a_flipped_bit_of_a_live_tape_is_found_and_costs_at_most_its_append(tmp_path):
    await flips_are_found(tmp_path / "tape", tmp_path / "work", 10)


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(600)
async def test_ten_thousand_flipped_bits_are_all_found(tmp_path):
    await flips_are_found(tmp_path / "tape", tmp_path / "work", 10_000)


@pytest.mark.slow
async def test_a_flipped_byte_of_a_sealed_part_is_found_and_costs_its_block_at_most(tmp_path):
    """Nothing wrong is ever read, and what is in other blocks is there."""
    found = await talked(tmp_path, 120, long=200)
    async with opened(tmp_path) as store:
        await store.archive(TAPE)
    [packed] = await pack_all(tmp_path)
    whole = packed.read_bytes()
    begins = [at for at in range(len(whole)) if whole.startswith(b"\x1f\x8b\x08\x04", at)]
    assert len(begins) > 2
    # Headers, the middle of blocks, checksums, and any other place.
    chance = random.Random(3)
    spots = [at + more for at in begins[:2] for more in (0, 5, 12, 18, 30, 200)]
    for spot in (*spots, len(whole) - 3, *(chance.randrange(len(whole)) for _ in range(10))):
        flip(packed, spot)
        assert wrong(tmp_path), f"byte {spot} was flipped unnoticed"
        async with opened(tmp_path, read_only=True) as store:
            left = (await store.read(TAPE))[:-1]
            assert [entry for entry in found if entry in left] == left
            for number in (2, found[len(found) // 2].id, found[-1].id):
                assert await store.read(TAPE, number, number) == [e for e in left if e.id == number]
            lost = len(found) - len(left)
            assert lost < 2 * len(found) / len(begins), f"byte {spot} cost {lost}"
            assert bool(lost) == bool(store.damage(TAPE))
        packed.write_bytes(whole)
    assert wrong(tmp_path) == []


@pytest.mark.skipif(ZCAT is None, reason="needs zcat")
async def test_a_sealed_part_is_an_ordinary_gzip_file_of_lines_with_their_crc(tmp_path):
    await talked(tmp_path, 120, long=200)
    before = live_file(tmp_path).read_bytes()
    async with opened(tmp_path) as store:
        await store.archive(TAPE)
    [packed] = await pack_all(tmp_path)
    assert ZCAT is not None
    done = subprocess.run([ZCAT, str(packed)], check=True, stdout=subprocess.PIPE)
    assert done.stdout == before
    for raw in before.splitlines():
        record = json.loads(raw)
        text = raw[: raw.rindex(b',"crc"')]
        assert record["crc"] == f"{zlib.crc32(text):08x}"
        assert {"id", "kind", "payload", "meta"} <= record.keys()


async def test_a_line_that_was_taken_out_is_noticed_by_its_id(tmp_path):
    await talked(tmp_path)
    path = live_file(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], *lines[5:]]))
    assert any("entries 5 to 5 are missing" in problem for problem in wrong(tmp_path))
    async with opened(tmp_path) as store:
        assert [entry.id for entry in await store.read(TAPE, 3, 6)] == [3, 4, 6]
        assert store.damage(TAPE) == ["1 of its entries cannot be read"]


async def test_a_tape_of_a_newer_format_is_refused_and_left_as_it_is(tmp_path):
    await talked(tmp_path)
    path = live_file(tmp_path)
    head, rest = path.read_bytes().split(b"\n", 1)
    newer = head[: head.rindex(b',"crc"')].replace(b'"format":1', b'"format":99')
    path.write_bytes(b'%b,"crc":"%08x"}\n%b' % (newer, zlib.crc32(newer), rest))
    before = path.read_bytes()
    async with opened(tmp_path) as store:
        with pytest.raises(TapeError, match="newer tapebot"):
            await store.append(TAPE, says("not there"))
    assert path.read_bytes() == before
