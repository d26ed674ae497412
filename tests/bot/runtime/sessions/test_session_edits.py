"""Edits of messages: which words count, and what is answered again."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from session_rig import settled, shown

from bot.tape.entries import event
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply


async def test_an_edit_of_a_message_that_waits_is_what_the_turn_takes_in(tmp_path):
    held = PausedStep(text_reply("done"))
    model = ScriptedModel([held, text_reply("both")])
    async with session_host(tmp_path, model) as host:
        await host.channel.send("begin")
        await held.entered.wait()
        waits = await host.channel.send("then teh cat")
        await host.channel.send("then the cat", edits=waits.id, message_id="w.e1")
        await host.wait_for_pending(2)
        held.release.set()
        await host.channel.wait_for_answer(waits)
    assert shown(model)[-1].endswith("then the cat")
    assert "teh" not in str(model.requests_for()[-1].messages)


async def test_a_part_of_what_was_overheard_that_now_asks_is_answered_with_the_other_parts(
    tmp_path,
):
    model = ScriptedModel([text_reply("hi")])
    async with session_host(tmp_path, model) as host:
        heard = await host.channel.send("aside", asks=False, private=False)
        parts = (("1", 0, 5), ("2", 6, 11))
        await host.bus.channel("fake").publish(
            replace(heard, id="1", text="a cat\na dog", parts=parts)
        )
        asked = await host.channel.send("@bot dogs?", edits="2", private=False)
        await host.channel.wait_for_answer(asked)
    assert shown(model)[-1].endswith("a cat\n@bot dogs?")


@pytest.mark.slow
async def test_an_edit_of_a_message_that_is_too_far_back_is_told_and_shown_to_no_problem(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        await host.channel.ask("hello", chat="2", private=False)
        await host.channel.ask("/problem new Music private")
        for tape in ("fake:1", "fake:2"):
            await host.store.append_many(tape, [event("x", {})] * 5_000)
        await host.channel.send("I play the harp", edits="m0")
        await host.channel.wait_until(lambda: "as a new message" in host.channel.answers[-1].text)
        assert "harp" not in str(await host.tape())
        unheard = await host.channel.send("@bot?", chat="2", private=False, edits="9")
        assert await host.channel.wait_for_answer(unheard) == "ok"


async def test_an_edit_that_comes_while_the_answer_is_written_down_is_answered(tmp_path):
    """Whichever of the two is first on the tape: the person never gets an answer to old words."""
    for attempt in (0, 2, 5, 8, 11):
        held = PausedStep(text_reply("to the old"))
        model = ScriptedModel([held, text_reply("to the new"), text_reply("ok")])
        async with session_host(tmp_path / str(attempt), model) as host:
            first = await host.channel.send("old")
            await held.entered.wait()
            held.release.set()
            for _ in range(attempt):
                await anyio.lowlevel.checkpoint()
            await host.channel.send("new", edits=first.id, message_id="m1.e1")
            answer = await host.channel.wait_for_answer(first)
            await settled(host)
            edit = next(e for e in await host.tape() if e.meta.get("edits") == first.id)
            in_time = "replaces" in edit.meta
            assert answer == ("to the new" if in_time else "to the old")
            await host.channel.ask("and?")
        assert ("(corrects an earlier message) new" in str(shown(model))) is not in_time


async def test_one_person_who_keeps_editing_costs_few_calls_and_gets_an_answer(tmp_path):
    steps = [PausedStep(text_reply(f"answer {number}")) for number in range(6)]
    model = ScriptedModel([*steps, text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("text 0")
        for number in range(5):
            await steps[min(number, 3)].entered.wait()
            await host.channel.send(f"text {number + 1}", edits=first.id, message_id=f"e{number}")
            await host.wait_for_pending(1)
        steps[3].release.set()
        assert await host.channel.wait_for_answer(first) == "answer 3"
    assert len(model.requests_for()) == 4


async def test_an_edit_to_what_is_to_be_remembered_is_told_to_be_sent_anew(tmp_path):
    async with session_host(tmp_path, ScriptedModel([text_reply("hi")])) as host:
        for text, edit in (
            ("hello", "remember: I like tea"),
            ("remember: I ski", "remember: I sk8"),
        ):
            first = await host.channel.send(text)
            await host.channel.wait_for_answer(first)
            count = len(host.channel.answers)
            await host.channel.send(edit, edits=first.id, message_id=f"{first.id}.e1")
            await host.channel.wait_until(lambda count=count: len(host.channel.answers) > count)
            assert "as a new message" in host.channel.answers[-1].text
        told = await host.channel.ask("/memory")
    assert "I ski" in told
    assert "sk8" not in told
    assert "tea" not in told
