"""Buttons, parts that a platform shows already, and receipts of them."""

from __future__ import annotations

import anyio

from bot.bus import DeliveryReport
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply


async def test_a_part_that_was_shown_before_a_kill_is_named_to_the_channel_again(tmp_path):
    held = PausedStep(text_reply("It was a dark and stormy night."), partial="It was a dark and")
    async with session_host(tmp_path, ScriptedModel([held])) as host:
        story = await host.channel.send("tell a story")
        await host.channel.wait_until(lambda: bool(host.channel.partials))
        stream = host.channel.partials[-1].stream
        port = host.bus.channel("fake")
        await port.report(DeliveryReport("fake:1", stream, platform_ids=("55",), final=False))
        await host.wait_for_event("delivery")
    model = ScriptedModel([PausedStep(text_reply("It was a dark night."), partial="It was")])
    async with session_host(tmp_path, model) as host:
        await host.channel.wait_until(lambda: bool(host.channel.partials))
        assert host.channel.partials[0].sent_message_ids == ("55",)
        assert host.channel.partials[0].reply_to == story.id
    async with session_host(tmp_path, ScriptedModel([text_reply("The end.")])) as host:
        await host.channel.wait_for_answer(story)
        assert host.channel.answers[0].sent_message_ids == ("55",)
        await host.wait_for_pending(0)
        final = (await host.events("delivery"))[-1].data
        assert (final["delivered"], final["turn"]) == (True, stream)


async def test_a_kill_as_a_message_is_acknowledged_shows_its_answer_no_second_time(
    tmp_path, monkeypatch
):
    """By then it is on the tape that the answer was shown."""
    acknowledged = anyio.Event()

    async def never_done(_) -> None:
        acknowledged.set()
        await anyio.sleep_forever()

    async with session_host(tmp_path, ScriptedModel([text_reply("hello Ada")])) as host:
        monkeypatch.setattr(host.bus, "done", never_done)
        assert await host.channel.ask("hello") == "hello Ada"
        with anyio.fail_after(60):
            await acknowledged.wait()
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.wait_for_pending(0)
        assert host.channel.answers == []
