"""Turns, tasks and notices speak the language of the person whom they concern."""

from dataclasses import replace

import anyio
from test_reminders import due

from bot.core.i18n import current_language
from bot.testing.fake_channel import ADA
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply

GERMAN = replace(ADA, language="de")
FRENCH = replace(ADA, id="2", name="Bo", language="fr")


def language_reply(_=None):
    return text_reply(f"spoken: {current_language()}")


async def test_a_turn_speaks_the_language_of_its_person(tmp_path):
    async with session_host(tmp_path, ScriptedModel(language_reply)) as host:
        assert await host.channel.ask("hello", sender=GERMAN) == "spoken: de"
        assert await host.channel.ask("hello", sender=FRENCH, private=False) == "spoken: fr"


async def test_a_command_that_waited_for_a_turn_is_answered_in_its_persons_language(tmp_path):
    step = PausedStep(text_reply("done"))
    async with session_host(tmp_path, ScriptedModel([step])) as host:
        first = await host.channel.send("hello", sender=GERMAN, private=False)
        with anyio.fail_after(30):
            await step.entered.wait()
        waiting = await host.channel.send("/new soon", sender=FRENCH, private=False)
        step.release.set()
        assert await host.channel.wait_for_answer(first) == "done"
        told = await host.channel.wait_for_answer(waiting)
        assert told == "Il n'y a que `/new` et `/new now`."


async def test_a_task_speaks_the_language_of_who_set_it_though_others_wrote_since(tmp_path):
    model = ScriptedModel(language_reply)
    async with session_host(tmp_path, model, schedules=True) as host:
        await host.channel.ask(
            "/schedules task every day at 12:00 sum up", sender=GERMAN, private=False
        )
        assert await host.channel.ask("hello", sender=FRENCH, private=False) == "spoken: fr"
        assert (await due(host, 7_200)).text == "spoken: de"


async def test_what_is_told_after_a_restart_is_in_the_language_of_who_wrote_last(tmp_path):
    async with session_host(tmp_path, ScriptedModel([text_reply("hello")])) as host:
        await host.channel.ask("hello", sender=GERMAN)
    step = PausedStep(text_reply("never"))
    async with session_host(tmp_path, ScriptedModel([step])) as host:
        sent = await host.channel.send("go on", message_id="late")
        with anyio.fail_after(30):
            await step.entered.wait()
    # A killed turn is resumed, and what it says is what its person reads.
    async with session_host(tmp_path, ScriptedModel(language_reply)) as host:
        assert await host.channel.wait_for_answer(sent) == "spoken: de"
