"""What comes of a press reaches its person whole, and leaves the messages beside it as they are."""

from __future__ import annotations

import pytest
from acting import WriteArguments, obeying, writing_tool

from bot.agent.tools.registry import Tool, ToolOutcome
from bot.bus import Address, DeliveryReport
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel
from channels.delivery.messenger import MessageGone
from channels.telegram.api import TelegramTiming
from channels.telegram.moved_chats import MovedChats
from channels.telegram.presses import PressedButtons


class Calls:
    """Records what is called."""

    def __init__(self) -> None:
        self.texts: list[str | None] = []

    async def __call__(self, method, **_) -> bool:
        self.texts.append(method.text)
        return True


@pytest.mark.parametrize(("text", "whole"), [("a" * 200, True), ("a" * 201, False)])
async def test_a_result_that_an_alert_cannot_hold_is_not_reported_as_told(text, whole):
    calls = Calls()
    presses = PressedButtons(calls, TelegramTiming())
    assert await presses.tell("1", text) is whole
    assert calls.texts == [text if whole else None]


@pytest.mark.parametrize("edit", ["123.e55", "123", "123.x"])
async def test_an_edit_of_before_a_move_names_no_message_of_the_new_chat(edit):
    moved, chat = MovedChats(), Address("telegram", "-55")
    await moved.learn({-55: -1009})
    assert moved.number(chat, "123.s.e55") == moved.number(chat, "123.s") == 123
    with pytest.raises(MessageGone):
        moved.number(chat, edit)


async def test_a_decision_leaves_the_files_of_its_question_where_they_are(tmp_path):
    async def run(_, __):
        (tmp_path / "exports").mkdir(exist_ok=True)
        (tmp_path / "exports" / "chart.png").write_bytes(b"x")
        return ToolOutcome("made", files=(("chart.png", "chart.png"),))

    tools = [
        writing_tool(tmp_path / "acts.txt"),
        Tool("give.file", "give", WriteArguments, run, effect="reads_own"),
    ]
    model = ScriptedModel(obeying(("give_file", "x")))
    async with session_host(tmp_path, model, tools=tools) as host:
        host.channel.reports = False
        await host.channel.wait_for_answer(await host.channel.send("write tea"))
        [question] = host.channel.answers
        assert len(question.files) == 1
        port = host.bus.channel("fake")
        await port.report(DeliveryReport("fake:1", question.id, True, ("100", "101"), None))
        host.channel.reports = True
        await host.channel.ask("/deny 1")
        edits = lambda: [one for one in host.channel.answers if one.sent_message_ids]  # noqa: E731
        await host.channel.wait_until(edits)
        assert [one.sent_message_ids for one in edits()] == [("100",)]
