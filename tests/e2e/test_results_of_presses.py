"""What comes of a press reaches its person whole, and leaves the messages beside it as they are."""

from __future__ import annotations

import anyio
import pytest
from acting import WriteArguments, obeying, writing_tool

from bot.agent.tools.registry import Tool, ToolOutcome
from bot.bus import DeliveryReport
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel
from channels.telegram.api import TelegramTiming
from channels.telegram.messenger import PressedButtons


class Calls:
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
        await host.channel.wait_until(lambda: edits(host))
        edited = [one.sent_message_ids for one in host.channel.answers if one.sent_message_ids]
        assert edited == [("100",)]


class Halting:
    """A bus on which a session gets no further than to the edit of a question."""

    def __init__(self, bus) -> None:
        self._bus, self.reached = bus, anyio.Event()

    def __getattr__(self, name):
        return getattr(self._bus, name)

    async def send(self, outbound) -> None:
        if getattr(outbound, "sent_message_ids", ()):
            self.reached.set()
            await anyio.sleep_forever()
        await self._bus.send(outbound)


def edits(host) -> list[tuple[list[str], list[str]]]:
    """Return what edits say was decided, and the buttons that they leave."""
    return [
        (
            [
                line.partition(" by ")[0]
                for line in one.text.split("\n")
                if line.startswith("Call ")
            ],
            [button.command for button in one.buttons],
        )
        for one in host.channel.answers
        if one.sent_message_ids
    ]


def acting_host(folder, **rules):
    tools = [writing_tool(folder / "acts.txt")]
    return session_host(folder, ScriptedModel(obeying()), tools=tools, **rules)


async def start(host, message: str) -> None:
    """Open the session with a message of its own id, since a channel counts anew at each start."""
    sent = await host.channel.send("/status", message_id=message)
    await host.channel.wait_for_answer(sent)


DECIDED = [
    (["/deny 1"], ["Call 1 was denied"], ["/approve 2", "/deny 2"]),
    (["/approve 2"], ["Call 2 was approved"], ["/approve 1", "/deny 1"]),
    (["/deny 1", "/approve 2"], ["Call 1 was denied", "Call 2 was approved"], []),
    (["/deny 2", "/deny 1"], ["Call 1 was denied", "Call 2 was denied"], []),
]


@pytest.mark.parametrize(("said", "told", "left"), DECIDED)
async def test_what_was_decided_right_before_a_kill_is_shown_at_the_next_start_and_only_there(
    tmp_path, said, told, left
):
    async with acting_host(tmp_path) as host:
        await host.channel.ask("write tea write milk")
        clock = host.clock
    buses: list[Halting] = []
    async with acting_host(
        tmp_path, clock=clock, over=lambda bus: buses.append(Halting(bus)) or buses[-1]
    ) as host:
        for words in said:
            await host.channel.send(words, message_id=words)
        await buses[0].reached.wait()
        assert edits(host) == []
    async with acting_host(tmp_path, clock=clock) as host:
        await start(host, "a")
        await host.channel.wait_until(lambda: (told, left) in edits(host))
        await start(host, "after the receipt of the edit")
    async with acting_host(tmp_path, clock=clock) as host:
        await start(host, "b")
        assert edits(host) == []


async def test_an_edit_that_was_never_reported_is_made_again(tmp_path):
    async with acting_host(tmp_path) as host:
        await host.channel.ask("write tea")
        await host.bus.drain()
        host.channel.reports, clock = False, host.clock
        await host.channel.ask("/deny 1")
        await host.channel.wait_until(lambda: edits(host))
    async with acting_host(tmp_path, clock=clock) as host:
        await start(host, "c")
        await host.channel.wait_until(lambda: edits(host))
        assert edits(host) == [(["Call 1 was denied"], [])]


async def test_a_decision_that_is_faster_than_the_receipt_of_its_question_is_shown_after_it(
    tmp_path,
):
    async with acting_host(tmp_path) as host:
        host.channel.reports = False
        await host.channel.wait_for_answer(await host.channel.send("write tea"))
        [question] = host.channel.answers
        await host.channel.ask("/deny 1")
        assert edits(host) == []
        host.channel.reports = True
        await host.channel.report(question)
        await host.channel.wait_until(lambda: edits(host))
        assert edits(host) == [(["Call 1 was denied"], [])]
