"""The inbox journal of the local bus: damage costs itself alone, and the file stays small."""

from __future__ import annotations

import asyncio
import os
import resource
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import anyio.lowlevel
import pytest

from bot.bus import Address, BusError, Inbound, Sender
from bot.bus import inbox_journal as journal_file
from bot.bus.local import LocalBus
from bot.core.storage_threads import StorageThreads

HERE = Address("fake", "1")


def open_bus(folder: Path) -> LocalBus:
    return LocalBus(folder / "bus", max_queued_messages=100, sync=False)


def inbound(number: int) -> Inbound:
    return Inbound(HERE, f"m{number}", Sender("7", "Ada"), "hi", datetime.now(UTC))


async def publish(bus: LocalBus, *numbers: int) -> None:
    for number in numbers:
        await bus.channel("fake").publish(inbound(number))


async def pending(bus: LocalBus) -> list[str]:
    inbox = await bus.claim()
    found = []
    while (item := inbox.receive_nowait()) is not None:
        found.append(item.inbound.id)
    return found


@pytest.mark.parametrize(
    "damage", [b"\xff\xfe", b'{"op":"in"}', b"[" * 5_000, b'{"op":"??"}', b"7"]
)
async def test_a_damaged_line_costs_itself_alone_and_is_counted(tmp_path, damage):
    bus = open_bus(tmp_path)
    await publish(bus, 1, 2, 3)
    await bus.aclose()
    path = tmp_path / "bus" / "inbox.jsonl"
    first, _, third = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + damage + b"\n" + third + b"\n")
    bus = open_bus(tmp_path)
    assert await pending(bus) == ["m1", "m3"]
    assert (await bus.statistics())["damaged_lines"] == 1
    await bus.aclose()


async def test_a_line_from_before_commands_came_from_elsewhere_still_reads(tmp_path):
    bus = open_bus(tmp_path)
    await publish(bus, 1)
    await bus.aclose()
    line = (tmp_path / "bus" / "inbox.jsonl").read_bytes()
    assert b"via" not in line
    bus = open_bus(tmp_path)
    inbox = await bus.claim()
    assert (await inbox.receive()).inbound.answer_to is None
    await bus.aclose()


async def test_a_line_whose_via_is_no_address_costs_itself_alone(tmp_path):
    bus = open_bus(tmp_path)
    asked = replace(inbound(1), answer_to=Address("web", "desk.1"))
    await bus.channel("web").publish(asked)
    await publish(bus, 2)
    await bus.aclose()
    path = tmp_path / "bus" / "inbox.jsonl"
    path.write_bytes(path.read_bytes().replace(b"web:desk.1", b"nowhere"))
    bus = open_bus(tmp_path)
    assert await pending(bus) == ["m2"]
    await bus.aclose()


async def test_killed_at_any_byte_of_the_last_line_all_earlier_messages_are_there(tmp_path):
    bus = open_bus(tmp_path)
    await publish(bus, 1, 2)
    path = tmp_path / "bus" / "inbox.jsonl"
    before = path.stat().st_size
    await publish(bus, 3)
    whole = path.read_bytes()
    await bus.aclose()
    for cut in range(before, len(whole)):
        path.write_bytes(whole[:cut])
        bus = open_bus(tmp_path)
        await publish(bus, 4)
        # A whole line that lacks only its end is as good as one that has it.
        expected = ["m1", "m2", "m4"] if cut < len(whole) - 1 else ["m1", "m2", "m3", "m4"]
        assert await pending(bus) == expected
        await bus.aclose()
        bus = open_bus(tmp_path)
        assert await pending(bus) == expected
        await bus.aclose()


async def test_a_reopened_journal_holds_only_what_still_matters(tmp_path):
    bus = open_bus(tmp_path)
    for number in range(50):
        await publish(bus, number)
        inbox = await bus.claim()
        await (await inbox.receive()).ack()
        inbox.release()
    await bus.aclose()
    path = tmp_path / "bus" / "inbox.jsonl"
    before = path.stat().st_size
    await open_bus(tmp_path).aclose()
    assert path.stat().st_size < before / 2
    assert path.stat().st_mode & 0o777 == 0o600
    bus = open_bus(tmp_path)
    assert (await bus.channel("fake").publish(inbound(7))).duplicate
    await bus.aclose()


async def test_a_journal_that_grows_is_rewritten_while_it_runs_and_loses_nothing(tmp_path):
    """Large messages pass the size at which it is rewritten within a few of them."""
    bus = open_bus(tmp_path)
    size = journal_file._COMPACT_BYTES // 12
    for number in range(36):
        large = Inbound(HERE, f"m{number}", Sender("7", "Ada"), "x" * size, datetime.now(UTC))
        await bus.channel("fake").publish(large)
        if number < 34:
            inbox = await bus.claim()
            await (await inbox.receive()).ack()
            inbox.release()
    path = tmp_path / "bus" / "inbox.jsonl"
    assert path.stat().st_size < 27 * size
    again = open_bus(tmp_path)
    assert await pending(again) == ["m34", "m35"]
    await again.aclose()
    await bus.aclose()


async def test_a_message_that_the_disk_refuses_is_refused_in_words_and_may_come_again(tmp_path):
    bus = open_bus(tmp_path)
    await publish(bus, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    full = (tmp_path / "bus" / "inbox.jsonl").stat().st_size + 10
    resource.setrlimit(resource.RLIMIT_FSIZE, (full, before[1]))
    try:
        with pytest.raises(BusError, match="could not be recorded"):
            await publish(bus, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (await bus.channel("fake").publish(inbound(2))).duplicate
    assert await pending(bus) == ["m1", "m2"]
    await bus.aclose()
    bus = open_bus(tmp_path)
    assert await pending(bus) == ["m1", "m2"]
    assert (await bus.statistics())["damaged_lines"] == 0
    await bus.aclose()


async def test_a_message_that_no_thread_can_write_is_refused_and_may_come_again(
    tmp_path, monkeypatch
):
    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("bot.core.append_file._THREADS", StorageThreads(1))
    bus = open_bus(tmp_path)
    with monkeypatch.context() as without_threads:
        without_threads.setattr(Thread, "start", refuse)
        with pytest.raises(BusError):
            await publish(bus, 1)
    assert not (await bus.channel("fake").publish(inbound(1))).duplicate
    assert b'"m1"' in (tmp_path / "bus" / "inbox.jsonl").read_bytes()
    assert await pending(bus) == ["m1"]
    await bus.aclose()


async def test_a_message_whose_writer_was_taken_away_may_come_again(tmp_path):
    """The event loop itself takes it away, past any shield."""
    bus = open_bus(tmp_path)
    writer = asyncio.ensure_future(publish(bus, 1))
    while not (await bus.statistics())["pending"]:
        await anyio.lowlevel.checkpoint()
    drained = asyncio.ensure_future(bus.channel("fake").wait_drained())
    await anyio.lowlevel.checkpoint()
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer
    with anyio.fail_after(30):
        await drained
    assert not (await bus.channel("fake").publish(inbound(1))).duplicate
    assert await pending(bus) == ["m1"]
    await bus.aclose()


async def test_messages_that_cannot_be_written_take_no_place_in_their_session(tmp_path):
    bus = LocalBus(tmp_path / "bus", max_queued_messages=1, sync=False)
    odd = replace(inbound(1), role=object())
    with pytest.raises(TypeError):
        await bus.channel("fake").publish(odd)
    await publish(bus, 2)
    assert await pending(bus) == ["m2"]
    await bus.aclose()


async def test_a_message_is_on_the_disk_before_it_is_accepted(tmp_path, monkeypatch):
    """What the system was asked to write to the disk holds it, should the power fail right behind."""
    path, on_disk = tmp_path / "bus" / "inbox.jsonl", [b""]
    real = os.fdatasync

    def kept(descriptor: int) -> None:
        real(descriptor)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            on_disk.append(path.read_bytes())

    monkeypatch.setattr(os, "fdatasync", kept)
    bus = LocalBus(tmp_path / "bus", max_queued_messages=100)
    for number in range(3):
        await publish(bus, number)
        assert f'"m{number}"'.encode() in on_disk[-1]
    await bus.aclose()
