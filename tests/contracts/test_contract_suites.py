"""The contracts that packages test their parts with find what breaks them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from pydantic import BaseModel

from bot.agent.commands.registry import Command, CommandReply
from bot.agent.notebook import NotebookModel
from bot.agent.tools.registry import Tool, ToolOutcome
from bot.core.errors import TapebotError
from bot.llm.base import CapabilityProfile, ModelReply
from bot.testing.command_contract import CommandContract
from bot.testing.model_contract import ModelContract
from bot.testing.tool_contract import ToolContract


class Text(BaseModel):
    text: str


async def send(given: Text, _) -> ToolOutcome:
    return ToolOutcome(f"sent {given.text}")


async def silent(given: Text, _) -> ToolOutcome:
    return ToolOutcome("")


async def failing(given: Text, _) -> ToolOutcome:
    raise TapebotError("no server")


SEND = Tool("mail.send", "Send a mail.", Text, send)


class TestToolThatActs(ToolContract):
    tool = SEND
    arguments: ClassVar = {"text": "hello"}


class TestToolThatReadsTheWorld(TestToolThatActs):
    tool = replace(SEND, effect="reads_world")


@pytest.mark.parametrize(
    ("run", "effect"), [(silent, "reads_own"), (failing, "reads_own"), (failing, "acts")]
)
async def test_a_tool_that_fails_or_says_nothing_breaks_the_contract(tmp_path, run, effect):
    suite = TestToolThatActs()
    suite.tool = replace(SEND, run=run, effect=effect)
    with pytest.raises(AssertionError):
        await suite.test_a_call_does_what_its_effect_says(tmp_path)


def test_a_tools_name_of_one_word_breaks_the_contract():
    suite = TestToolThatActs()
    suite.tool = replace(SEND, name="mail")
    with pytest.raises(AssertionError, match="a name such as"):
        suite.test_its_name_and_its_description_are_what_models_are_shown()


async def add(arguments: str, _) -> CommandReply:
    return CommandReply(str(sum(map(int, arguments.split()))))


ADD = Command("add", "add numbers", (("NUMBERS", "these"),), add)


async def test_a_command_that_raises_on_odd_words_breaks_the_contract(tmp_path):
    suite = CommandContract()
    suite.command, suite.arguments = ADD, ("1 2",)
    suite.test_help_lists_it_with_its_forms()
    await suite.test_it_answers(tmp_path / "known")
    with pytest.raises(ValueError, match="invalid literal"):
        await suite.test_arguments_that_it_does_not_know_are_answered_too(tmp_path / "odd")


class TestOfflineResponder(ModelContract):
    def create(self):
        return NotebookModel()


class Mute(NotebookModel):
    name = "mute"
    profile = CapabilityProfile(tools=True)

    async def complete(self, request, on_text=None):
        return ModelReply("hello")


async def test_a_model_that_neither_streams_nor_calls_tools_breaks_the_contract():
    suite = ModelContract()
    suite.create = Mute
    with pytest.raises(AssertionError, match="on_text"):
        await suite.test_a_stream_grows_to_the_answer()
    with pytest.raises(AssertionError, match="it did not call the tool"):
        await suite.test_it_can_do_what_its_profile_says()
