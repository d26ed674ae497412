"""Kill -9 while something is saved, judged or consolidated: a fact is never gone without its successor."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from nursery import nursery
from sampling import some
from saving_home import BOUGHT, FLAT, GYM, MOVED, NEW, OLD, WORKS, home
from waiting import until

from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import fold_entries
from bot.tape.stores.folder_verification import verify_folder
from bot.testing.host import Host

HOST = Path(__file__).with_name("saving_host.py")
PERSON = "person:fake:7"
EMPLOYED = "I work at Equinor."
WANTED = {
    "save": {NEW, EMPLOYED},
    "consolidate": {OLD, WORKS, BOUGHT, f'said: "{GYM}"'},
}


async def prepared(folder: Path, step: str) -> str:
    """Bring a home to where a step is next; return the message that takes it."""
    async with home(folder) as host:
        for fact in (OLD, EMPLOYED):
            await host.channel.ask(f"/memory add {fact}")
        if step == "consolidate":
            for said in (FLAT, GYM, WORKS):
                await host.channel.ask(said)
        await host.bus.drain()
    return MOVED if step == "save" else "/new"


async def believed(host: Host) -> list[Fact]:
    return fold_entries(await host.tape(PERSON)).active()


async def finished(folder: Path, step: str, command: str) -> None:
    """Open the home again, and have the step come to its end; look at what is believed before and after."""
    async with home(folder) as host:
        assert len(await believed(host)) >= 2, "a fact is gone, and its successor is not there"
        await host.channel.send(command, message_id="step")
        await host.bus.drain()
        await host.channel.wait_for_answer(await host.channel.send("hello", message_id="after"))

        async def settled() -> bool:
            facts = await believed(host)
            return bool(facts) and not any(one.unverified for one in facts)

        await until(settled)
        assert {one.text for one in await believed(host)} == WANTED[step]
        batches = [one.data["key"] for one in await host.events("memory.facts", PERSON)]
        assert len(batches) == len(set(batches))
        judged = [one for one in batches if str(one).startswith("judged:")]
        assert len(judged) == (step == "save")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["save", "consolidate"])
async def test_kill_9_at_any_change_of_a_file_loses_no_fact_and_judges_nothing_twice(
    tmp_path: Path, step: str
) -> None:
    chance = random.Random(step)
    ready = tmp_path / "prepared"
    command = await prepared(ready, step)
    with nursery(HOST) as children:
        whole = tmp_path / "whole"
        shutil.copytree(ready, whole)
        [done, _] = children.life(folder=whole, command=command, times=0, part=0.0)
        await finished(whole, step, command)
        for at in some([*range(1, done["changes"] + 1)]):
            folder = tmp_path / f"killed-{at}"
            shutil.copytree(ready, folder)
            part = chance.choice((0.0, 0.5, 1.0))
            children.life(folder=folder, command=command, times=at, part=part)
            await finished(folder, step, command)
            assert not verify_folder(folder / "tapes", "").problems, at
            shutil.rmtree(folder)
