"""Shared values and prompts of joined channels, and two programs on one store."""

from __future__ import annotations

import anyio
from link_home import consolidation, home, turn

from bot.bus import Sender
from bot.memory.session.bus.shared_reference import current_references
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.testing.host import HostLimits
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    text_reply,
    tool_call_reply,
)

ADA, ELSE = "fake:7", "other:9"


async def test_a_shared_value_follows_and_leaves_the_prompts_of_the_others_at_once(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ELSE, "/reference set tone zqxformal")
        assert "zqxformal" not in await here.prompt(ADA)
        await here.join(ADA, ELSE)
        await here.ask(ADA, "/reference set units zqxmetric")
        for where in (ADA, ELSE):
            told = await here.prompt(where)
            assert "zqxformal" in told
            assert "zqxmetric" in told
            # From now on it is in the prompt's unchanging beginning.
            await here.ask(where, "/new")
        assert "zqxformal" not in await here.prompt("fake:g", private=False)
        await here.part(ELSE)
        told = await here.prompt(ADA, "What now?")
        assert "zqxformal" not in told.replace("/reference set tone zqxformal", "")
        assert "zqxmetric" in told
        told = await here.prompt(ELSE, "What now?")
        assert "zqxmetric" not in told
        assert "zqxformal" in told


async def test_a_value_that_is_forgotten_on_one_channel_is_gone_from_all(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ELSE, "/reference set tone zqxformal")
        await here.join(ADA, ELSE)
        await here.ask(ADA, "/memory forget zqxformal")
        await here.ask(ADA, here.told(ADA)[-1].buttons[0].command)
        for tape in await here.host.store.list_tapes():
            assert "zqxformal" not in str(await here.host.tape(tape)), tape
        await here.part(ELSE)
        assert "no value" in await here.ask(ELSE, "/reference tone")


async def test_a_consolidation_that_ends_after_another_process_parted_them_learns_for_its_own_side(
    tmp_path,
):
    quote = "I like yaks a lot."
    held = PausedStep(
        consolidation_reply(
            "[2026-02-10 10:00] x", fact_operation("The user likes yaks.", quote, 1)
        )
    )
    steps = iter([held])
    model = ScriptedModel(
        turn, consolidation=lambda request: next(steps, None) or consolidation(request)
    )
    async with home(tmp_path, model=model, bounds=HostLimits(window=4)) as here:
        await here.join(ADA, ELSE)
        for text in (quote, "Well.", "Yes."):
            await here.ask(ELSE, text)
        with anyio.fail_after(30):
            await held.entered.wait()
        other = ScopeRegistry(here.host.store, here.clock)
        await other.identity_linker.open()
        move = await other.identity_linker.unlink(ELSE, "elsewhere")
        assert move is not None
        await other.apply_move(move)
        held.release.set()
        await here.host.wait_for_event("memory/consolidated", session=ELSE)
        assert await here.facts("fake:7") == set()
        assert await here.facts("other:9") == {"The user likes yaks."}


async def test_a_turn_that_runs_while_another_process_parts_them_saves_for_its_own_side(tmp_path):
    said = "I like yaks, and call me Bo."
    saves = [
        ("memory_save", {"changes": [{"op": "add", "text": "I like yaks"}]}),
        ("memory_refer", {"key": "name", "value": "Bo"}),
    ]
    held = PausedStep(tool_call_reply(*saves))
    steps = iter([held, tool_call_reply(*saves)])
    model = ScriptedModel(lambda request: next(steps, None) or text_reply("ok"))
    async with home(tmp_path, model=model) as here:
        await here.join(ADA, ELSE)
        running = await here.send(ELSE, said)
        with anyio.fail_after(30):
            await held.entered.wait()
        other = ScopeRegistry(here.host.store, here.clock)
        await other.identity_linker.open()
        move = await other.identity_linker.unlink(ELSE, "elsewhere")
        assert move is not None
        await other.apply_move(move)
        held.release.set()
        await here.channels["other"].wait_for_answer(running)
        assert await here.facts("fake:7") == set()
        assert current_references((await here.scope("fake:7")).compartments) == []
        assert await here.facts("other:9") == {"I like yaks"}
        assert [
            one.value for one in current_references((await here.scope("other:9")).compartments)
        ] == ["Bo"]


async def test_undoing_a_clearing_after_parting_brings_nothing_of_the_other_back(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ADA, "/memory add I like zebras")
        await here.ask(ELSE, "/memory add I like yaks")
        await here.join(ADA, ELSE)
        await here.ask(ADA, "/memory clear yes")
        await here.part(ELSE)
        assert "nothing to undo" in await here.ask(ADA, "/memory undo")
        assert await here.facts("fake:7") == set()
        assert await here.facts("other:9") == {"I like yaks"}


async def test_somebody_without_an_id_is_nobody_who_could_be_joined(tmp_path):
    async with home(tmp_path) as here:
        for command in ("/link", "/link ABCD-2345", "/unlink"):
            told = await here.ask(ADA, command, sender=Sender("", "Ada"))
            assert "private chat" in told
