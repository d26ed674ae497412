"""``/memory clear`` and what the memory bus holds: ended by new versions, and honest about what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.core.clock import format_time
from bot.memory.records.compartment_records import (
    SharedReference,
    SynthesizedPattern,
    WorkingSet,
)
from bot.memory.records.compartments import Compartments
from bot.memory.records.fact_fold import bus_entry, fold_entries
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

HOME, CHAT = "person:fake:7", "fake:1"


def turn(request):
    newest = request.messages[-1]
    wipe = newest["role"] == "user" and "wipe it" in str(newest["content"])
    return tool_call_reply(("memory_clear", {})) if wipe else text_reply("Fine.")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with session_host(tmp_path, ScriptedModel(turn)) as host:
        await host.channel.ask("I like tea")
        await host.channel.ask("/memory add I like tea")
        yield host


async def held(host: Host, tape: str) -> Compartments:
    return fold_entries(await host.store.read(tape)).compartments


async def filled(host: Host, tmp_path: Path, *tapes: str) -> None:
    """Put a value, a belief and a working set where they belong, while nobody has it open."""
    now = host.clock.now()
    value = SharedReference("courier", "Hermes", 1, "fake:1#3", now, now, "person").as_json()
    content = {"text": "The user wants short answers."}
    belief = SynthesizedPattern("p1", "heuristic", content, ["fake:1#3"], 0.8, now, now).as_json()
    working = WorkingSet(GENERAL_PROBLEM, CHAT, now, now, open_questions=["when?"]).as_json()
    for tape in tapes:
        scope = ScopeMemory(TapeService(host.store, tape), "person", host.clock)
        own = {"working": [{**working, "expires": format_time(now.replace(year=now.year + 1))}]}
        data = own if tape == CHAT else {"references": [value], "patterns": [belief]}
        await scope.append_change(lambda _, s=scope, d=data: ([bus_entry(s.fold, d)], None))


@pytest.mark.parametrize("how", ["/memory clear yes", "wipe it"])
async def test_values_beliefs_and_working_notes_end_and_what_everybody_reads_stays(
    tmp_path: Path, how: str
) -> None:
    async with session_host(tmp_path, ScriptedModel(turn)) as host:
        await host.channel.ask("I like tea")
        await host.channel.ask("/memory add I like tea")
        await filled(host, tmp_path, HOME, CHAT, WORKSPACE_SCOPE)
    async with session_host(tmp_path, ScriptedModel(turn)) as host:
        asks = await host.channel.wait_for_answer(
            await host.channel.send("/memory clear", message_id="asks")
        )
        assert "1 shared value, 1 belief, the working notes of its problems" in asks
        told = await host.channel.wait_for_answer(await host.channel.send(how, message_id="does"))
        mine, chat = await held(host, HOME), await held(host, CHAT)
        assert mine.references["courier"].value is None
        assert mine.versions["courier"].keys() == {1, 2}
        assert (mine.patterns["p1"].status, mine.patterns["p1"].reason) == ("retired", "cleared")
        assert chat.working_sets == {}
        assert (await held(host, WORKSPACE_SCOPE)).references["courier"].value == "Hermes"
        if not how.startswith("/"):
            return
        assert "/reference rollback KEY N" in told
        assert "/memory accept p1" in told
        assert "Working notes cannot be restored" in told
        for number, command in enumerate(
            ("/memory undo", "/reference rollback courier 1", "/memory accept p1")
        ):
            await host.channel.wait_for_answer(
                await host.channel.send(command, message_id=f"back-{number}")
            )
        mine = await held(host, HOME)
        assert mine.references["courier"].value == "Hermes"
        assert mine.patterns["p1"].status == "active"
        assert [one.text for one in fold_entries(await host.store.read(HOME)).active()] == [
            "I like tea"
        ]
