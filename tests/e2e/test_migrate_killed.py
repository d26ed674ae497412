"""A move that is killed again and again is finished by running it once more, and nothing differs."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from preloaded import environment, open_program, run_program
from sampling import many

from bot.bus import Address, Inbound, Sender
from bot.bus.access.access_list import AccessList, AllowedPerson
from bot.bus.access.file_store import FILE
from bot.bus.access.store import encode
from bot.bus.local import LocalBus
from bot.bus.media.blobs import FolderBlobs
from bot.core.clock import SystemClock
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.files import replace_file
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder
from bot.transfer.database_home import DatabaseHome
from bot.transfer.file_home import FileHome
from bot.transfer.home_data import HomeData, read_tape_metadata

TAPES, ENTRIES, KILLS = 12, 4 * many(100), many(many(10))
PATIENCE = 120.0


async def _fill(home: Path) -> None:
    store = FileTapeStore(home / "tapes", sync=False)
    for number in range(TAPES):
        tape = f"telegram:{number}"
        await store.create_tape(tape, f"talk {number}")
        for part in range(3):
            said = [message("user", f"{part} {n} \x00 \ud83d") for n in range(ENTRIES // 4)]
            await store.append_many(tape, said)
            await (store.reset(tape) if part == 1 else store.archive(tape))
        await store.append_many(tape, [message("user", str(n)) for n in range(ENTRIES // 4)])
    await store.close()
    bus, now = LocalBus(home / "bus", max_queued_messages=1_000), SystemClock().now()
    for number in range(200):
        address, sender = Address("telegram", str(number % TAPES)), Sender("7", "Ada")
        inbound = Inbound(address, str(number), sender, f"{number} \x00 \ud83d", now)
        await bus.channel("telegram").publish(inbound)
    await bus.aclose()
    blobs = FolderBlobs(home / "blobs")
    for number in range(20):
        await blobs.put(os.urandom(20_000) + bytes([number]))
    people = (AllowedPerson("telegram:7", "owner", "Ada", now),)
    replace_file(home / FILE, encode(AccessList(people)))


async def _held(place: HomeData) -> dict[str, Any]:
    return {
        "tapes": {
            name: (await read_tape_metadata(place.tapes, name), await place.tapes.read(name))
            for name in await place.tapes.list_tapes()
        },
        "blobs": {name async for name in place.blobs.names()},
        "values": await place.values(),
    }


async def _in_database(url: str) -> dict[str, Any]:
    database = Database(url)
    await database.open()
    try:
        return await _held(DatabaseHome(database, Wakeups(database)))
    finally:
        await database.close()


class Mover:
    def __init__(self, home: Path, url: str, source: str, target: str) -> None:
        self._command = ["-m", "bot", "migrate", source, target]
        known = environment(home.parent, TAPEBOT_HOME=str(home), TAPEBOT_DATABASE_URL=url)
        self._life = {"environment": known, "cwd": home.parent}

    async def killed(self, lines: int, seconds: float) -> bool:
        """Kill a move some time after it told of so many things; return whether it was at work."""
        said = b""
        async with await open_program(self._command, **self._life) as process:
            with anyio.fail_after(PATIENCE), suppress(anyio.EndOfStream):
                while said.count(b"\n") < lines:
                    said += await process.stdout.receive()
            await anyio.sleep(seconds)
            process.kill()
            return await process.wait() < 0

    async def finished(self) -> str:
        run = partial(run_program, self._command, timeout=PATIENCE, **self._life)
        done = await anyio.to_thread.run_sync(run)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


async def _kills(mover: Mover, scene: random.Random) -> int:
    """Kill it in the middle of its work; a move tells of some things that are there, then of more."""
    # Also in the middle of a tape, and before anything is told.
    places = [(scene.randrange(TAPES + 4), scene.uniform(0, 0.3)) for _ in range(KILLS)]
    return sum([await mover.killed(lines, seconds) for lines, seconds in places])


@pytest.mark.slow
@pytest.mark.timeout(900)  # 22 starts, which take minutes on a busy machine
async def test_a_move_that_is_killed_ten_times_each_way_loses_and_changes_nothing(tmp_path, url):
    home, back = tmp_path / "home", tmp_path / "back"
    await _fill(home)
    scene = random.Random(7)
    before = await _held(FileHome(home))
    mover = Mover(home, url, "files", "postgres")
    assert await _kills(mover, scene) >= KILLS // 2
    assert f"{TAPES} tapes" in await mover.finished()
    assert await _in_database(url) == before
    assert await _held(FileHome(home)) == before
    mover = Mover(back, url, "postgres", "files")
    assert await _kills(mover, scene) >= KILLS // 2
    assert f"{TAPES} tapes" in await mover.finished()
    assert await _held(FileHome(back)) == before
    assert verify_folder(back / "tapes", "").problems == []
    assert not list(back.rglob("*.new"))
