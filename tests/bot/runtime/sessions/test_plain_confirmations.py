"""A plain yes or no answers the question that a command asked."""

from contextlib import asynccontextmanager
from functools import partial

import pytest

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.link import link_commands
from bot.bus import Answer, Sender
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


@asynccontextmanager
async def linking(folder, **how):
    """The program with ``/link``, as the composition root joins them."""
    hosts = []

    async def send(answer: Answer) -> None:
        await hosts[0].bus.send(answer)

    async def language_of(_: str) -> str:
        return "en"

    commands = builtin_commands(link_commands(send, language_of))
    async with session_host(folder, ScriptedModel([]), commands=commands, **how) as host:
        hosts.append(host)
        yield host


async def linked(host) -> None:
    """Link the chat with one on another channel."""
    other = host.add_channel("other")
    offer = await host.channel.ask("/link")
    await other.ask(f"{offer.split('`')[1]} yes")
    await host.channel.wait_until(lambda: "say yes" in host.channel.answers[-1].text)
    assert "Linked" in await host.channel.ask("yes")


QUESTIONS = {
    "/memory clear": "Clear it",
    '/memory forget "zebras"': "Erase",
    "/unlink": "Unlink",
    "/link ABCD-2345": "It is mine",
}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("asks", QUESTIONS)
async def test_no_button_of_a_question_that_was_answered_no_does_anything(tmp_path, asks, restart):
    async with linking(tmp_path) as host:
        await linked(host)
        await host.channel.ask("/memory add I like zebras")
        await host.channel.ask(asks)
        buttons, clock = host.channel.answers[-1].buttons, host.clock
        assert buttons[0].label == QUESTIONS[asks]
        await host.channel.ask("no")
        if not restart:
            await nothing_happens(host, buttons)
    if restart:
        async with linking(tmp_path, clock=clock) as host:
            await nothing_happens(host, buttons)


async def nothing_happens(host, buttons) -> None:
    for number, button in enumerate(buttons):
        sent = await host.channel.send(button.id, message_id=f"press-{number}", pressed="out-1")
        assert "does nothing any more" in await host.channel.wait_for_answer(sent)
        assert host.channel.answers[-1].alone
    sent = await host.channel.send("/memory", message_id="look")
    assert "zebras" in await host.channel.wait_for_answer(sent)
    sent = await host.channel.send("/link", message_id="linked")
    assert "Linked with" in await host.channel.wait_for_answer(sent)


@pytest.mark.parametrize("asks", ["/memory clear", '/memory forget "zebras"', "/unlink"])
async def test_the_no_of_a_question_that_was_answered_yes_says_nothing_else(tmp_path, asks):
    async with linking(tmp_path) as host:
        await linked(host)
        await host.channel.ask("/memory add I like zebras")
        await host.channel.ask(asks)
        no = host.channel.answers[-1].buttons[-1]
        await host.channel.ask("yes")
        sent = await host.channel.send(no.id, pressed="out-1")
        assert "does nothing any more" in await host.channel.wait_for_answer(sent)


async def test_a_button_outlives_a_look_and_a_yes_that_somebody_else_may_not_give(tmp_path):
    bob = Sender("8", "Bob")
    async with session_host(tmp_path, ScriptedModel([])) as host:
        ask = partial(host.channel.ask, private=False)
        await ask("/memory add I like zebras")
        await ask('/memory forget "zebras"')
        erase = host.channel.answers[-1].buttons[0]
        await ask("/memory")
        tried = await host.channel.send(erase.command, sender=bob, role="member", private=False)
        assert "only the person who asked" in await host.channel.wait_for_answer(tried)
        sent = await host.channel.send(erase.id, pressed="out-1", private=False)
        assert "Forgotten: " in await host.channel.wait_for_answer(sent)
