"""What acts is the same on every channel: reminders, budgets and approvals, with their buttons."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from acting import lines_of, obeying, writing_tool
from channel_scenes import SCENES, Scene
from waiting import until

from bot.agent.notebook import NotebookModel
from bot.llm.base import ModelReply, ModelRequest, OnText, Usage
from bot.llm.presets import ModelPresets, Preset
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

TELEGRAM_DATA, DISCORD_LABEL = 64, 80
"""The most bytes of a button's command, and characters of its label, that every platform takes."""


PEOPLE = [f"person.{number}@some-long-domain-{number}.example" for number in range(200)]


class Assistant(NotebookModel):
    """The notebook, which costs something, and acts when it is told to."""

    name = "assistant"

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        last = request.messages[-1]
        told = str(last["content"])
        if last["role"] == "user" and "write to all" in told:
            return tool_call_reply(("file_write", {"line": ", ".join(PEOPLE)}))
        if re.search(r"write [a-z0-9]+|file_write", told):
            return obeying()(request)
        if "costs" in told:
            return text_reply("That was dear.", usage=Usage(90, 0, 10, 2.0, 1))
        reply = await super().complete(request, on_text)
        return replace(reply, usage=Usage(90, 0, 10, 0.0, 1), model=self.name)


@dataclass
class Program:
    """The program behind a chat, its time, and the file that its tool writes to."""

    host: Host
    scene: Scene
    clock: ManualClock
    acts: Path

    async def say(self, text: str, answer: str) -> None:
        """Say something, and wait until an answer with these words is seen once more."""
        before = self.scene.seen().count(answer)
        self.scene.say(text)
        await until(lambda: self.scene.seen().count(answer) > before)

    async def press(self, label: str, answer: str) -> None:
        """Press a button, and wait until an answer with these words is seen."""
        await self.shows(label)
        self.scene.press(label)
        await until(lambda: answer in self.scene.seen())

    async def shows(self, *labels: str) -> None:
        """Wait until these buttons stand in the chat, each within every platform's limits."""
        await until(lambda: set(labels) <= set(self.scene.buttons()))
        for label, command in self.scene.buttons().items():
            assert len(command.encode()) <= TELEGRAM_DATA, command
            assert len(label) <= DISCORD_LABEL, label

    async def events(self, name: str) -> list:
        return await self.host.events(name, self.scene.session)


@asynccontextmanager
async def served(scene: Scene, folder: Path) -> AsyncIterator[Program]:
    """Run the whole program behind a scene's channel."""
    clock, acts, model = ManualClock(datetime.now(UTC)), folder / "acts.txt", Assistant()
    other = ScriptedModel(lambda _: text_reply("I am the other one."))
    async with (
        session_host(
            folder,
            model,
            presets=ModelPresets([Preset("first", model), Preset("other", other)]),
            clock=clock,
            tools=[writing_tool(acts)],
            metered=True,
            schedules=True,
        ) as host,
        anyio.create_task_group() as tasks,
    ):
        name = scene.session.partition(":")[0]
        tasks.start_soon(scene.channel().run, host.bus.channel(name))
        await anyio.lowlevel.checkpoint()
        await scene.ready()
        yield Program(host, scene, clock, acts)
        tasks.cancel_scope.cancel()


pytestmark = pytest.mark.usefixtures("client_libraries")


@pytest.fixture(params=SCENES)
async def program(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Program]:
    async with SCENES[request.param](tmp_path) as scene, served(scene, tmp_path / "home") as run:
        yield run


async def test_a_reminder_comes_at_its_time_with_buttons_and_again_when_it_is_snoozed(program):
    await program.say("/remind in 1 minute drink water", "drink water")
    await until(lambda: "UTC" in program.scene.seen())
    assert not await program.events("schedule.fired")
    program.clock.advance(61)
    await program.host.wait_for_event("schedule.fired", session=program.scene.session)
    await program.shows("Done", "Snooze 10 min", "Snooze 1 h")
    await program.press("Snooze 10 min", "Again at")
    await program.shows("Cancel")
    program.clock.advance(601)
    await program.host.wait_for_event("schedule.fired", 2, session=program.scene.session)
    await program.press("Done", "✔ drink water")
    # Sent once each, nothing by a model, and nothing is left.
    assert len(await program.events("schedule.fired")) == 2
    assert len(await program.events("schedule.ended")) >= 1
    await program.say("/schedules", "Nothing is scheduled here")


async def test_the_list_of_schedules_is_shown_with_its_buttons(program):
    await program.say("/remind every Monday at 8 water the plants", "water the plants")
    await program.say("/remind tomorrow at 17:00 call mom", "call mom")
    await program.say("/schedules", "Schedules")
    await program.shows("Delete 1", "Delete 2")
    await program.press("Delete 1", "Deleted: reminder 1")
    await program.say("/schedules pause 2", "Paused: reminder 2")
    await program.press("Resume", "17:00")
    assert not await program.events("schedule.fired")


async def test_a_budget_that_is_used_up_says_so_and_counts_what_was_spent(program):
    await program.say("this costs much", "That was dear.")
    await program.say("/budget", "You, today: $2.00")
    await program.shows("Everybody")
    await program.press("Everybody", "Limits:")
    await program.say("/budget set everyone 2$ day", "Limit set: everybody together: $2.00 a day")
    await program.say("this costs much", "is used up")
    assert "I answered this as a notebook, without a language model" in program.scene.seen()
    assert program.scene.seen().count("That was dear.") == 1
    await program.press("Remove it", "Removed: everybody together")
    await program.say("this costs much", "That was dear.")


async def test_a_model_is_chosen_by_its_button_and_taken_back_by_another(program):
    await program.say("/model", "Models")
    await program.press("other", "answers here")
    await program.say("hello", "I am the other one.")
    await program.press("Back to the default", "first")
    await program.host.wait_for_event("model.chosen", 2, session=program.scene.session)
    await program.say("this costs much", "That was dear.")
    chosen = [entry.data["preset"] for entry in await program.events("model.chosen")]
    assert chosen == ["other", ""]


async def test_a_tool_that_acts_asks_and_a_press_decides_once(program):
    await program.say("write tea", "May I run")
    await program.shows("Approve 1", "Deny 1")
    assert lines_of(program.acts) == []
    program.scene.press("Approve 1")
    program.scene.press("Approve 1")
    await until(lambda: "Call 1 was approved already" in program.scene.seen())
    await until(lambda: lines_of(program.acts))
    await program.host.bus.drain()
    assert lines_of(program.acts) == ["tea"]
    assert len(await program.events("tool.decided")) == 1
    await program.say("/deny 1", "was approved already")
    assert lines_of(program.acts) == ["tea"]


async def test_a_question_longer_than_a_message_is_whole_and_a_plain_yes_answers_it(program):
    await program.say("write to all", "without an answer it is no")
    await program.shows("Approve 1", "Deny 1")
    seen = "".join(program.scene.seen().split())
    assert [one for one in PEOPLE if one not in seen] == []
    program.scene.say("yes")
    await until(lambda: lines_of(program.acts))
    assert lines_of(program.acts) == [", ".join(PEOPLE)]
