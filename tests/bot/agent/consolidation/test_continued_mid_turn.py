"""A consolidation continues the prompt that the model has read, whatever changed while it answered."""

from __future__ import annotations

from continued_talk import CACHED, kept
from counting_talk import LEARNED, talk

from bot.bus import Sender
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply

BOB = Sender("8", "Bob")


async def test_a_chat_that_becomes_a_group_during_an_answer_shows_no_persons_facts(tmp_path):
    answer = text_reply("ok", usage=CACHED)
    paused = PausedStep(answer)
    model = ScriptedModel([*[answer] * 3, paused], consolidation=[kept(), kept(), LEARNED])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add I prefer trains to planes.", chat="2")
        await talk(host, 1)
        await host.channel.ask("/new")
        await talk(host, 2)
        sent = await host.channel.send("I count number 3.")
        await paused.entered.wait()
        assert "trains" in str(model.requests_for("turn")[-1].messages)
        await host.channel.send("hi all", private=False, sender=BOB, asks=False)
        window = host.services.scopes.active_sessions["fake:1"].fold.window
        await host.wait_until(lambda: bool(window.overheard_messages()))
        paused.release.set()
        await host.channel.wait_for_answer(sent)
        await host.channel.ask("/new", private=False, sender=BOB)
    assert "trains" not in str(model.requests_for("consolidation")[-1].messages)
