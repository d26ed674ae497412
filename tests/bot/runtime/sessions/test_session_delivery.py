"""Buttons, parts that a platform shows already, and receipts of them."""

from __future__ import annotations

import anyio

from bot.bus import DeliveryReport
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply


async def test_a_destructive_command_asks_with_buttons_and_the_press_takes_their_place(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.channel.ask("/memory add I like tea")
        asked = await host.channel.send("/memory clear")
        await host.channel.wait_for_answer(asked)
        buttons = host.channel.answers[-1].buttons
        assert [button.label for button in buttons] == ["Clear it", "Keep it"]
        pressed = await host.channel.send(buttons[0].command, pressed="out-2")
        assert "is cleared" in await host.channel.wait_for_answer(pressed)
        assert host.channel.answers[-1].replaced_message_id == "out-2"


async def test_a_stale_button_clears_nothing(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.channel.ask("/memory add I like tea")
        await host.channel.ask("/memory clear")
        clear = host.channel.answers[-1].buttons[0]
        await host.channel.ask("/memory add I like cake")
        pressed = await host.channel.send(clear.command, pressed="out-2")
        assert "nothing was cleared" in await host.channel.wait_for_answer(pressed)
        assert "cake" in await host.channel.ask("/memory")


async def test_buttons_and_what_they_replace_survive_a_restart(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.channel.ask("/memory add I like tea")
        host.channel.reports = False
        asked = await host.channel.send("/memory clear", pressed="out-9")
        await host.channel.wait_for_answer(asked)
    async with session_host(tmp_path, ScriptedModel()) as host:
        await host.channel.wait_until(lambda: bool(host.channel.answers))
        again = host.channel.answers[0]
        assert again.replaced_message_id == "out-9"
        assert again.buttons[1].label == "Keep it"


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


async def test_long_memory_has_pages_that_buttons_turn(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        for number in range(40):
            await host.channel.ask(f"/memory add Fact number {number} is {'x' * 50}")
        first = await host.channel.ask("/memory")
        assert "Page 1 of" in first
        (more,) = host.channel.answers[-1].buttons
        pressed = await host.channel.send(more.command, pressed="out-41")
        second = await host.channel.wait_for_answer(pressed)
        assert "Page 2 of" in second
        assert not set(first.splitlines()[:-1]) & set(second.splitlines()[:-1]) - {""}
