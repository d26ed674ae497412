"""Problems of a session: what the model is asked in one of them, and what is kept of it."""

from __future__ import annotations

from session_rig import last, settled

from bot.tape.search import problem_of
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

SECRET = "xylophone"
"""A word that is said in one problem alone."""


async def test_what_was_overheard_in_one_problem_is_taken_in_by_no_turn_of_another(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model, bounds=HostLimits(group_context=5)) as host:

        async def say(text: str, *, asks: bool = True) -> None:
            await host.channel.send(text, private=False, asks=asks)
            await settled(host)

        await say(f"the {SECRET} is loud", asks=False)
        await say("/problem new Music")
        await say("a cello is louder", asks=False)
        await say("what do they say?")
        assert SECRET not in last(model)
        assert "a cello is louder" in last(model)
        await say("a harp is not", asks=False)
        await say("/problem switch general")
        await say("and now?")
        assert "harp" not in last(model)
        assert "cello" not in last(model)
        await say("/problem switch music")
        await say("music again")
        assert "a cello is louder" in last(model)
        assert SECRET not in last(model)


async def test_an_edit_of_another_problems_message_is_told_there_and_not_here(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("/problem new Music")
        original = await host.channel.send("I play the trumpet")
        await host.channel.wait_for_answer(original)
        await ask("/problem switch general")
        await host.channel.send(f"I play the {SECRET}", edits=original.id)
        await settled(host)
        await ask("and what do I play?")
        assert SECRET not in last(model)
        edit = next(e for e in await host.tape() if e.meta.get("edits") == original.id)
        assert problem_of(edit) == "p1"
        await ask("/problem switch music")
        await ask("what do I play?")
        assert f"I play the {SECRET}" in str(model.requests_for()[-1].messages[1]["content"])
        assert "trumpet" not in last(model)
        # Left and come back to again, it is the same; so is it after a restart.
        await ask("/problem switch general")
        await ask("/problem switch music")
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("and now?", message_id="later")
        await host.channel.wait_for_answer(sent)
    assert f"I play the {SECRET}" in str(model.requests_for()[-1].messages[1]["content"])
    assert "trumpet" not in last(model)
