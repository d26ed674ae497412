"""The inbox journal of the local bus: damage costs itself alone, and the file stays small."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.bus import Address, Inbound, Sender
from bot.bus.local import LocalBus

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


@pytest.mark.parametrize("damage", [b"\xff\xfe", b'{"op":"in"}', b"[" * 5_000])
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


async def test_killed_at_any_byte_of_the_last_line_all_earlier_messages_are_there(tmp_path):
    bus = open_bus(tmp_path)
    await publish(bus, 1, 2)
    path = tmp_path / "bus" / "inbox.jsonl"
    before = path.stat().st_size
    await publish(bus, 3)
    whole = path.read_bytes()
    await bus.aclose()
    for cut in (*range(before, len(whole), 4), len(whole) - 1):
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


async def test_a_journal_that_grows_is_rewritten_while_it_runs_and_loses_nothing(tmp_path):
    bus = open_bus(tmp_path)
    path, sizes, number = tmp_path / "bus" / "inbox.jsonl", [0], 0
    await publish(bus, 0)
    inbox = await bus.claim()
    kept = await inbox.receive()
    while sizes == sorted(sizes):
        number += 1
        large = replace(inbound(number), text="x" * 300_000)
        await bus.channel("fake").publish(large)
        await (await inbox.receive()).ack()
        sizes.append(path.stat().st_size)
        assert number < 100
    await publish(bus, 1_000)
    again = open_bus(tmp_path)
    assert await pending(again) == [kept.inbound.id, "m1000"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert (await again.channel("fake").publish(inbound(7))).duplicate
    await again.aclose()
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
