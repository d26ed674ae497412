"""What every message bus must do when words have to leave the disk."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import bus_talk
import pytest
from bus_backends import BUSES, Backend
from bus_talk import ids, inbound, publish, take

from bot.bus import BusError

HOST = Path(__file__).with_name("bus_kill_host.py")
ROOT = Path(__file__).parents[2]
SECRET = "xyzzy-plugh"


backend = bus_talk.backend


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Backend]:
    """The bus whose storage is a disk of this machine, which can be full."""
    async with BUSES["local"](tmp_path) as held:
        with anyio.fail_after(60):
            yield held


async def test_what_waited_for_its_answer_leaves_with_its_acknowledgement(backend):
    await publish(backend.bus, inbound("m1", f"/memory forget {SECRET}"), inbound("m2", SECRET))
    inbox = await backend.bus.claim()
    request, other = await take(inbox, 2)
    await backend.bus.purge()
    assert await backend.counted(SECRET) == 2
    await request.ack()
    assert await backend.counted(SECRET) == 1
    await other.ack()
    assert await backend.counted(SECRET) == 0


async def test_it_leaves_with_its_acknowledgement_also_after_a_kill(backend):
    await publish(backend.bus, inbound("m1", SECRET))
    await backend.bus.purge()
    await take(await backend.bus.claim(), 1)
    for _ in range(2):
        [again] = await take(await (await backend.killed()).claim(), 1)
        assert again.redelivered
        assert await backend.counted(SECRET) == 1
    await again.ack()
    assert await backend.counted(SECRET) == 0


async def test_duplicates_are_known_after_a_compaction_and_a_kill(backend):
    await publish(backend.bus, inbound("m1"), inbound("m2"))
    first, _ = await take(await backend.bus.claim(), 2)
    await first.ack()
    await backend.bus.purge()
    assert (await backend.bus.channel("fake").publish(inbound("m1"))).duplicate
    bus = await backend.killed()
    for one in ("m1", "m2"):
        assert (await bus.channel("fake").publish(inbound(one))).duplicate
    found = await bus.statistics()
    assert (found["pending"], found.get("damaged_lines", 0)) == (1, 0)


@contextmanager
def full_disk() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_storage_that_refuses_loses_nothing_and_the_words_go_later(local):
    await publish(local.bus, inbound("m1", SECRET), inbound("m2"))
    first, _ = await take(await local.bus.claim(), 2)
    await first.ack()
    with full_disk(), pytest.raises(BusError, match="try again"):
        await local.bus.purge()
    await publish(local.bus, inbound("m3"))
    assert await local.counted(SECRET) == 0
    assert ids(await take(await (await local.killed()).claim(), 2)) == ["m2", "m3"]


def life(folder: Path, bus: str, calls: int) -> tuple[dict[str, list[str]], bool]:
    """Run the host until its end or its kill; return what it told and whether it was killed."""
    run = subprocess.run(
        [sys.executable, str(HOST), str(folder), bus, str(calls)],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert run.returncode in (0, -signal.SIGKILL)
    told: dict[str, list[str]] = {"sent": [], "accepted": [], "acknowledging": [], "acked": []}
    for line in run.stdout.decode().splitlines():
        what, _, rest = line.partition(" ")
        told.setdefault(what, []).append(rest)
    return told, run.returncode != 0


async def killed_at(folder: Path, bus_name: str, calls: int) -> bool:
    async with BUSES[bus_name](folder) as before:
        await before.bus.aclose()
        told, killed = await anyio.to_thread.run_sync(life, folder, bus_name, calls)
        backend = before
        bus = await backend.killed()
        waiting: list[str] = []
        deliveries = []
        if pending := (await bus.statistics())["pending"]:
            inbox = await bus.claim()
            deliveries = await take(inbox, pending)
            waiting = ids(deliveries)
            assert inbox.receive_nowait() is None
        order = [one for one in told["sent"] if one in waiting]
        assert waiting == order
        # Done with before the kill may come again; what was not, must.
        assert {*told["accepted"]} - {*told["acknowledging"]} <= {*waiting}
        for one in told["accepted"]:
            assert (await bus.channel("fake").publish(inbound(one))).duplicate
        if "compacted" in told:
            # Words of what is done with are gone; those that wait go as they are done with.
            assert {one for one in told["acked"] if one in waiting} <= {"m6"}
            for one in deliveries:
                await one.ack()
            assert not [n for n in range(1, 6) if await backend.counted(f"words of m{n}.")]
        return killed


@pytest.mark.slow
@pytest.mark.parametrize("bus_name", BUSES)
async def test_a_kill_at_a_call_around_a_compaction_loses_nothing(tmp_path, bus_name):
    """A few of the places; all of them are among the long proofs."""
    for calls in {"local": (9, 11, 15, 19), "postgres": (6, 11)}[bus_name]:
        assert await killed_at(tmp_path / str(calls), bus_name, calls)


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.parametrize("bus_name", BUSES)
async def test_a_kill_at_any_call_around_a_compaction_loses_nothing(tmp_path, bus_name):
    calls = 1
    while await killed_at(tmp_path / str(calls), bus_name, calls):
        calls += 1
    assert calls > {"local": 20, "postgres": 16}[bus_name]
