"""Kill -9 while something is saved, judged or consolidated: a fact is never gone without its successor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from folded import fold_entries
from kill_checks import check_tape
from killed_homes import STEP, killed
from waiting import until

from bot.llm.base import ModelReply, ModelRequest
from bot.memory.records.fact import Fact
from bot.tape.entries import SESSION_NEW
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    judgement_reply,
    text_reply,
    tool_call_reply,
)

OLD = "Lotte: piano on Wednesdays at 16:00"
NEW = "Lotte: piano on Wednesdays at 17:00"
MOVED = "Lotte's piano moved to 17:00, same day."
FLAT = "Sis got herself a flat near the harbour in Porto."
BOUGHT = "The user's sister bought an apartment by the docks of Porto."
GYM = "I went to the gym once in Porto."
ALWAYS = "The user goes to a gym in Porto."
WORKS = "I work at Kestrel now."
PERSON = "person:fake:7"
EMPLOYED = "I work at Equinor."
WANTED = {
    "save": {NEW, EMPLOYED},
    "consolidate": {OLD, WORKS, BOUGHT, f'On 10 February 2026 the user said: "{GYM}"'},
}


def turn(request: ModelRequest) -> ModelReply:
    last = request.messages[-1]
    if last["role"] == "user" and MOVED in str(last["content"]):
        change: dict[str, Any] = {"op": "change", "facts": [1], "text": NEW}
        return tool_call_reply(("memory_save", {"changes": [change]}))
    return text_reply("ok")


def consolidation(request: ModelRequest) -> ModelReply:
    """Learn one thing in other words, one that was not said so, and one in the place of a fact."""
    told = str(request.messages[-1]["content"]).splitlines()
    operations = []
    for said, claim, fact in ((FLAT, BOUGHT, None), (GYM, ALWAYS, None), (WORKS, WORKS, 2)):
        if any(one[:1] == "#" and said in one for one in told):
            named = [fact] if fact else []
            op = "change" if fact else "add"
            operations.append(fact_change(claim, said, op=op, facts=named, about="life"))
    return consolidation_reply("[2026-02-10 10:00] They talked.", *operations)


def judgement(request: ModelRequest) -> ModelReply:
    return judgement_reply(
        request, lambda one: "not_supported" if "gym" in one["claim"] else "supported"
    )


@asynccontextmanager
async def home(folder: Path) -> AsyncIterator[Host]:
    model = ScriptedModel(turn, consolidation=consolidation, judgement=judgement)
    async with session_host(folder, model, clock=ManualClock()) as host:
        yield host


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
        await host.channel.send(command, message_id=STEP)
        await host.bus.drain()
        await host.channel.wait_for_answer(await host.channel.send("hello", message_id="after"))

        async def settled() -> bool:
            facts = await believed(host)
            return bool(facts) and not any(one.awaits_judge for one in facts)

        host.clock.advance(60)
        await until(settled)
        assert {one.text for one in await believed(host)} == WANTED[step]
        check_tape(await host.tape())
        assert len(await host.events(SESSION_NEW)) == (step == "consolidate")
        batches = [one.data["key"] for one in await host.events("memory.facts", PERSON)]
        assert len(batches) == len(set(batches))
        judged = [one for one in batches if str(one).startswith("judged:")]
        assert len(judged) == 1


@pytest.mark.slow
@pytest.mark.parametrize("step", ["save", "consolidate"])
async def test_kill_9_at_any_change_of_a_file_loses_no_fact_and_judges_nothing_twice(
    tmp_path: Path, step: str
) -> None:
    ready = tmp_path / "prepared"
    command = await prepared(ready, step)
    async for folder, _ in killed("test_saving_kill", ready, command):
        await finished(folder, step, command)
