"""Kills between reservation and settlement: nothing counts twice, and only calls in flight as estimates."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from databases import drop, fresh_database
from preloaded import open_program
from sampling import many
from spending_host import COST, opened

from bot.memory.records.spending import SPENDING_TAPE, SpendingFold
from bot.memory.records.spending_amounts import NANO
from bot.tape.entries import TapeEntry

HOST = Path(__file__).with_name("spending_host.py")
AT_ONCE = 4


async def live(where: str, name: str, lines: int) -> list[str]:
    """Run a process until it has told this many lines, kill it, and return all that it told."""
    process = await open_program([str(HOST), where, name], environment=dict(os.environ))
    told = b""
    async with process:
        with anyio.fail_after(60):
            assert process.stdout is not None
            while told.count(b"\n") < lines:
                told += await process.stdout.receive()
            process.send_signal(signal.SIGKILL)
            try:
                while True:
                    told += await process.stdout.receive()
            except anyio.EndOfStream:
                pass
    return told.decode().splitlines()


async def ledger(where: str) -> tuple[list[TapeEntry], SpendingFold]:
    async with opened(where) as store:
        entries = await store.read(SPENDING_TAPE)
    fold = SpendingFold()
    for entry in entries:
        fold.apply(entry)
    return entries, fold


def check(told: list[list[str]], entries: list[TapeEntry], fold: SpendingFold) -> int:
    """Check the ledger against what the model billed; return how many calls count as estimates."""
    began = {line.split()[1] for lines in told for line in lines if line.startswith("began")}
    ended = {line.split()[1] for lines in told for line in lines if line.startswith("ended")}
    sums = {key.session: amount for rows in fold.months.values() for key, amount in rows.items()}
    assert began <= set(sums)
    assert all(amount.calls == 1 for amount in sums.values())
    exact = {name for name, amount in sums.items() if amount.cost == round(COST * NANO)}
    reserved = {charge.key.session for charge in fold.open.values()}
    estimated = set(sums) - exact
    assert estimated <= reserved
    # A settlement is on the tape before the next reservation of its process but those at once.
    assert len(reserved) <= 2 * AT_ONCE * len(told)
    assert len(ended - exact) <= AT_ONCE * len(told)
    ids = [entry.data["id"] for entry in entries if entry.name == "settled"]
    assert len(ids) == len(set(ids))
    return len(reserved)


async def kills(where: str, times: int, workers: int, seed: int) -> None:
    chance = random.Random(seed)
    told: list[list[str]] = []

    async def one(name: str) -> None:
        told.append(await live(where, name, chance.randint(1, 40)))

    for turn in range(times):
        async with anyio.create_task_group() as tasks:
            for worker in range(workers):
                tasks.start_soon(one, f"p{turn}w{worker}")
        estimates = check(told, *await ledger(where))
    assert estimates > 0, "no kill came between a reservation and its settlement"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(many(5)))
async def test_after_ten_kills_each_call_counts_once_in_files(tmp_path: Path, seed: int) -> None:
    await kills(str(tmp_path / "tapes"), 10, 1, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(many(5)))
async def test_after_ten_kills_of_two_workers_each_call_counts_once_in_a_database(
    seed: int,
) -> None:
    url = await anyio.to_thread.run_sync(fresh_database)
    try:
        await kills(url, 5, 2, seed)
    finally:
        await anyio.to_thread.run_sync(drop, url)
