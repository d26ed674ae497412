"""A plain yes or no answers the question that a command asked."""

import pytest

from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel


@pytest.mark.parametrize(
    ("word", "told"),
    [("yes", "Memory is cleared."), ("sí", "Memory is cleared."), ("non", "zebras")],
)
async def test_a_plain_answer_to_memory_clear_does_what_its_button_does(tmp_path, word, told):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/memory add I like zebras")
        question = await host.channel.ask("/memory clear")
        yes, _no = host.channel.answers[-1].buttons
        assert f"say yes or send `{yes.command}`" in question
        assert question.count("/memory clear") == 1
        assert told in await host.channel.ask(word)


async def test_a_yes_after_a_reminder_that_came_meanwhile_still_answers(tmp_path):
    async with session_host(tmp_path, ScriptedModel([]), schedules=True) as host:
        await host.channel.ask("/memory add I like zebras")
        await host.channel.ask("/remind in 5 minutes take the tea out")
        await host.channel.ask("/memory clear")
        host.clock.advance(301)
        await host.channel.wait_until(lambda: host.channel.answers[-1].reply_to is None)
        assert "Memory is cleared." in await host.channel.ask("yes")


async def test_a_yes_after_a_restart_answers_the_question_from_before(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/memory add I like zebras")
        await host.channel.ask("/memory clear")
        clock = host.clock
    async with session_host(tmp_path, ScriptedModel([]), clock=clock) as host:
        sent = await host.channel.send("yes", message_id="later")
        assert "Memory is cleared." in await host.channel.wait_for_answer(sent)
