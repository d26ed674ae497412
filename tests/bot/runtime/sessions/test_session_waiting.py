"""Many chats at once: who waits for a model sees it, and is answered."""

from __future__ import annotations

from bot.llm.call_slots import CallSlots
from bot.llm.retry import RetryingModel
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply


async def test_a_chat_that_waits_for_the_model_shows_it_and_goes_on(tmp_path):
    paused = PausedStep(text_reply("first"))
    scripted = ScriptedModel([paused, text_reply("second")])
    model = RetryingModel(scripted, timeout_total=60, slots=CallSlots(1))
    async with session_host(tmp_path, model) as host:
        one = await host.channel.send("hello", chat="1")
        await paused.entered.wait()
        two = await host.channel.send("hello", chat="2")

        def states(chat: str) -> list[str]:
            found = [one for one in host.channel.activity if one.address.chat_id == chat]
            return [activity.state for activity in found]

        await host.channel.wait_until(lambda: "waiting" in states("2"))
        assert "waiting" not in states("1")
        paused.release.set()
        assert await host.channel.wait_for_answer(one) == "first"
        assert await host.channel.wait_for_answer(two) == "second"
        await host.channel.wait_until(lambda: states("2")[-1] == "idle")
        assert states("2")[-2] == "thinking"
