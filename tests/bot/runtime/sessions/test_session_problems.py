"""Problems of a session: what the model is asked in one of them, and what is kept of it."""

from __future__ import annotations

import pytest
from session_rig import last, settled, whole

from bot.llm.base import ModelRequest
from bot.memory.records.event_names import HISTORY_EVENT
from bot.tape.entries import SESSION_NEW, TapeEntry
from bot.tape.search import GENERAL_PROBLEM, problem_of
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, consolidation_reply, text_reply

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


async def test_new_inside_a_problem_begins_it_anew_and_leaves_the_others_alone(tmp_path):
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda r: consolidation_reply(f"history of {words(r)}"),
    )
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("general talk")
        await ask("/problem new Music")
        await ask("/problem note must be quiet")
        await ask("music talk")
        assert await ask("/new") == "New session started."
        [boundary] = await host.events(SESSION_NEW)
        assert boundary.data["summary"].endswith("] history of music talk")
        assert problem_of(boundary) == "p1"
        await ask("what now?")
        assert "general talk" not in last(model)
        assert "must: be quiet" in last(model)
        assert "music talk" not in str(model.requests_for()[-1].messages[1:])
        await ask("/problem switch general")
        await ask("and here?")
        # It came back from the sealed part of the tape.
        assert "general talk" in last(model)
        assert "music talk" not in last(model)
        entries = [e for e in await host.tape() if e.name == HISTORY_EVENT]
    assert [(told_in(e), problem_of(e)) for e in entries] == [
        ("history of general talk", GENERAL_PROBLEM),
        ("history of music talk", "p1"),
    ]


def told_in(history: TapeEntry) -> str:
    """Return what a history entry tells, without its date."""
    return str(history.data["entry"]).partition("] ")[2]


def words(request: ModelRequest) -> str:
    """Return the words of people in a request to consolidate."""
    text = whole(request)
    return " and ".join(one for one in ("general talk", "music talk", "tax talk") if one in text)


@pytest.mark.parametrize("last_problem", ["general", "taxes"])
async def test_each_portion_of_a_consolidation_is_of_one_problem_and_none_is_left(
    tmp_path, last_problem
):
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda r: consolidation_reply(f"history of {words(r)}"),
    )
    bounds = HostLimits(window=1_000)
    async with session_host(tmp_path, model, bounds=bounds) as host:
        ask = host.channel.ask
        await ask("/problem new Music")
        await ask("/problem new Taxes")
        talk = {"general": "general talk", "music": "music talk", "taxes": "tax talk"}
        for name in ("general", "music", "taxes", "general", last_problem):
            await ask(f"/problem switch {name}")
            await ask(talk[name])
        await ask("/new")
        entries = [e for e in await host.tape() if e.name == HISTORY_EVENT]
    told = [(told_in(e), problem_of(e)) for e in entries]
    wanted = {
        "history of general talk": GENERAL_PROBLEM,
        "history of music talk": "p1",
        "history of tax talk": "p2",
    }
    assert {one for one, _ in told} == set(wanted)
    assert all(wanted[text] == problem for text, problem in told)
