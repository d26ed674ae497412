"""Damage to packed segments costs nothing where parity mends it; it is found, told and repaired."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tape_files import LOCATOR, flip, opened, pack_all, says, spoil

from bot.cli.main import main
from bot.tape.entries import TapeEntry
from bot.tape.stores.folder_repair import repair_folder
from bot.tape.stores.folder_verification import verify_folder
from bot.tape.stores.parity import CHUNK, protected_length

TAPE = "telegram:42"


async def sealed(folder: Path, count: int = 700) -> tuple[list[TapeEntry], Path]:
    """Write a tape with a packed segment of so many entries, and one entry live."""
    chance = random.Random(3)
    async with opened(folder) as store:
        await store.create_tape(TAPE)
        await store.append_many(
            TAPE, [says(f"{chance.random()} {'Grüße 你好 ' * 4}") for _ in range(count)]
        )
        await store.archive(TAPE)
        await store.append(TAPE, says("live"))
        found = await store.read(TAPE)
    [packed] = await pack_all(folder)
    return found, packed


async def read(folder: Path) -> list[TapeEntry]:
    async with opened(folder, read_only=True) as store:
        return await store.read(TAPE)


def problems(folder: Path) -> list[str]:
    return [str(problem) for problem in verify_folder(folder, "").problems]


@pytest.mark.slow
async def test_a_flipped_bit_512_bytes_or_the_end_cost_nothing_are_found_and_mended(tmp_path):
    found, packed = await sealed(tmp_path, 100)
    whole = packed.read_bytes()
    end = protected_length(len(whole) - 2 * LOCATOR)
    # Headers, trailer, both locators and the parity; whole chunks, across the seams too; the end cut off.
    spots = [(at, 1) for at in (0, 9, end - 1, end + 12, end + LOCATOR + 20, len(whole) - 1)]
    bursts = [(at, CHUNK) for at in (0, end - CHUNK, end - 60, end)]
    for start, count in [*spots, *bursts, (len(whole) - 1, 0), (end + LOCATOR, 0)]:
        if count:
            flip(packed, *range(start, min(start + count, len(whole))))
        else:
            packed.chmod(0o600)
            packed.write_bytes(whole[:start])
        damaged = packed.read_bytes()
        assert await read(tmp_path) == found
        assert problems(tmp_path)
        for dry, left in ((True, damaged), (False, whole)):
            [told] = repair_folder(tmp_path, "", dry_run=dry).damaged
            assert told.mendable
            assert packed.read_bytes() == left


async def test_the_command_says_what_is_wrong_and_mends_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TAPEBOT_HOME", str(tmp_path))
    repair = ["tape", "repair"]
    found, packed = await sealed(tmp_path / "tapes", 300)
    whole = packed.read_bytes()
    assert main(repair) == 0
    assert capsys.readouterr().out == "tapes: 1; nothing to repair\n"
    flip(packed, 700)
    assert main([*repair, "--dry-run"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{packed.name}: bytes that differ from what was sealed: 1; can be repaired",
        "tapes: 1; damaged files: 1, can be repaired: 1",
    ]
    async with opened(tmp_path / "tapes") as store:
        assert await store.read(TAPE) == found
        assert main([*repair, TAPE]) == 1
        assert "in use by another tapebot" in capsys.readouterr().err
        assert packed.read_bytes() != whole
    assert main([*repair, TAPE]) == 0
    assert "repaired, byte for byte" in capsys.readouterr().out
    assert packed.read_bytes() == whole
    assert packed.stat().st_mode & 0o777 == 0o400
    assert main([*repair, "nobody"]) == 1


async def test_what_nothing_mends_costs_its_block_alone_and_is_told_and_left(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("TAPEBOT_HOME", str(tmp_path))
    found, packed = await sealed(tmp_path / "tapes")
    spoil(packed, 700)
    damaged = packed.read_bytes()
    left = await read(tmp_path / "tapes")
    assert 0 < len(left) < len(found)
    assert [entry for entry in found if entry in left] == left
    lost = [entry.id for entry in found if entry not in left]
    assert main(["tape", "repair"]) == 1
    told = capsys.readouterr().out
    assert f"entries {lost[0]} to {lost[-1]} are lost; cannot be repaired, left unchanged" in told
    assert packed.read_bytes() == damaged


_KILLED = """
import os
import signal
import sys
from bot.cli.main import main

left = int(sys.argv[1])

def count(event, arguments):
    global left
    if event in ("open", "os.rename", "os.remove", "os.chmod") and ".gz" in str(arguments[0]):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
sys.exit(main(["tape", "repair"]))
"""


@pytest.mark.slow
async def test_a_repair_killed_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path):
    found, packed = await sealed(tmp_path / "first", 300)
    whole = packed.read_bytes()
    flip(packed, 700)
    for step in range(30):
        home = tmp_path / f"{step}"
        folder = shutil.copytree(tmp_path / "first", home / "tapes")
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, str(step)],
            env={**os.environ, "TAPEBOT_HOME": str(home)},
            check=False,
        )
        assert await read(folder) == found
        # The next start clears away what was half written; then it is done again.
        async with opened(folder) as store:
            assert await store.read(TAPE) == found
        assert not list(folder.glob("*.new"))
        repair_folder(folder, "")
        assert problems(folder) == []
        assert (folder / packed.name).read_bytes() == whole
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert step >= 4
