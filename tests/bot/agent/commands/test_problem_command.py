"""``/problem``: what it lists, switches and notes, and what it says of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.agent.commands.problem import PROBLEM_COMMAND
from bot.bus import Sender
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

BOB = Sender("8", "Bob")
DAY = 86_400


@pytest.fixture
async def host(tmp_path: Path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as opened:
        yield opened


async def told(host: Host, form: str = "") -> str:
    return await host.channel.ask(f"/problem {form}".strip())


def pressed(host: Host) -> list[tuple[str, str]]:
    """Return the buttons below the newest answer."""
    return [(one.label, one.command) for one in host.channel.answers[-1].buttons]


async def test_the_list_tells_state_priority_age_and_open_questions(host):
    await told(host, "new Trip to *Rome*")
    await told(host, "note ask which hotel?")
    await told(host, "note ask which day?")
    host.clock.advance(3 * DAY)
    await told(host, "new Taxes")
    await told(host, "note ask which year?")
    await told(host, "priority taxes 7")
    await told(host, "new Song")
    await told(host, "background song")
    await told(host, "switch tax")
    listed = await told(host)
    assert listed.splitlines() == [
        "**Problems**",
        "",
        "**2.** Taxes: active, priority 7, started today, 1 open question",
        "**general**: paused",
        "**3.** Song: in the background, started today",
        r"**1.** Trip to \*Rome\*: paused, started 3 days ago",
        "",
        "`/problem new NAME` starts another, `/problem switch N` switches.",
    ]
    assert listed == await told(host, "list")
    assert pressed(host) == [
        ("Done: Taxes", "/problem done p2"),
        ("Switch to general", "/problem switch general"),
        ("Switch to Song", "/problem switch p3"),
        ("Switch to Trip to *Rome*", "/problem switch p1"),
    ]


async def test_many_problems_have_pages_and_never_more_than_five_buttons(host):
    for number in range(1, 12):
        await told(host, f"new number {number:02}")
        assert len(pressed(host)) <= 5
    seen = ""
    for page in ("", "list 2", "2"):
        seen += await told(host, page)
        assert len(pressed(host)) <= 5
        assert "Page" in seen
    assert all(f"number {number:02}" in seen for number in range(1, 12))
    assert "‹ Back" in dict(pressed(host))
    assert await told(host, "list 99") == await told(host, "list 2")


async def test_what_is_done_is_in_a_list_of_its_own(host):
    assert await told(host, "list done") == "No problem is done yet."
    await told(host, "new Trip")
    await told(host, "new Taxes")
    await told(host, "done trip")
    assert "Trip" not in await told(host)
    done = await told(host, "list done")
    assert "**1.** Trip: done" in done
    assert "Taxes" not in done
    assert pressed(host) == []


async def test_a_switch_says_what_is_left_and_what_comes_back(host):
    assert await told(host, "new Trip") == "You are now on “Trip”.\n\n“general” is paused."
    assert pressed(host) == [("Back to general", "/problem switch general")]
    await told(host, "note decide by train because it is quiet")
    await host.channel.ask("hello")
    assert await told(host, "new Taxes") == (
        "You are now on “Taxes”.\n\n“Trip” is paused: decided: by train (it is quiet)"
    )
    assert pressed(host) == [("Back to Trip", "/problem switch p1")]
    assert await told(host, "switch p1") == (
        "You are now on “Trip”.\n\n“Taxes” is paused.\n\n"
        "Its summary: decided: by train (it is quiet)\n\n"
        "The last 2 messages of “Trip” are back in view."
    )
    assert await told(host, "switch TRIP") == "You are already on “Trip”."
    assert "You are now on “Taxes”." in await told(host, "resume tax")


@pytest.mark.parametrize(
    ("form", "state"), [("pause", "paused"), ("background", "in the background"), ("done", "done")]
)
async def test_a_problem_is_put_aside_by_name_or_as_the_one_at_hand(host, form, state):
    await told(host, "new Trip")
    await told(host, "note must be cheap")
    await told(host, "new Taxes")
    kept = [] if form == "done" else [("Back to Trip", "/problem switch p1")]
    if form != "pause":
        assert await told(host, f"{form} trip") == f"“Trip” is {state}: must: be cheap"
        assert pressed(host) == kept
    # Asked again it says how it stands.
    assert await told(host, f"{form} 1") == f"“Trip” is {state}: must: be cheap"
    assert await told(host, form) == f"You are now on “general”.\n\n“Taxes” is {state}."
    assert "“general” always exists" in await told(host, form)
    assert "“general” always exists" in await told(host, f"{form} general")


async def test_what_is_not_there_or_is_done_or_may_be_several_is_said_plainly(host):
    for name in ("Trip to Rome", "Trip to Oslo", "Taxes"):
        await told(host, f"new {name}")
    await told(host, "done taxes")
    assert "there is no problem 'nothing'" in await told(host, "switch nothing")
    assert "“Taxes” is done" in await told(host, "switch taxes")
    assert "Trip to Rome (p1), Trip to Oslo (p2): say which" in await told(host, "switch trip")
    assert "there is a problem 'Trip to Oslo' already" in await told(host, "new Trip to Oslo")
    assert "1 to 60 characters" in await told(host, f"new {'x' * 61}")
    assert "What should it be called?" in await told(host, "new")
    assert "Which one?" in await told(host, "switch")
    assert "For example" in await told(host, "priority 1")
    assert "from 1 to 9" in await told(host, "priority 1 0")
    assert "Did you mean `/problem switch`?" in await told(host, "swich trip")


async def test_of_the_problem_at_hand_all_is_shown_and_of_another_the_summary(host):
    await told(host, "new Trip")
    assert "There are no notes yet." in await told(host, "show")
    await told(host, "note must-not cost over *500*")
    await told(host, "note draft letter Dear hotel,\nwe come")
    shown = await told(host, "show")
    assert "**must-not**\n**1.** cost over \\*500\\*" in shown
    assert "**draft**\n**1.** letter: Dear hotel,\nwe come" in shown
    await told(host, "new Taxes")
    shown = await told(host, "show trip")
    assert shown.startswith("“Trip” (paused). Summary:\nmust not: cost over")
    assert "Dear hotel" not in shown
    assert pressed(host) == [("Switch to Trip", "/problem switch p1")]
    await told(host, "done trip")
    assert "(done)" in await told(host, "show trip")
    assert pressed(host) == []


async def test_a_long_working_set_is_shown_in_pages(host):
    await told(host, "new Trip")
    for word in "abcdef":
        await told(host, f"note ask {word * 400}?")
    pages = [await told(host, f"show page {number}") for number in (1, 2)]
    assert all("Page" in page and len(page) < 2_000 for page in pages)
    assert "‹ Back" in dict(pressed(host))


async def test_notes_of_each_kind_are_made_and_taken_away(host):
    await told(host, "new Trip")
    for form, line in {
        "must be cheap": "be cheap",
        "must_not be loud": "be loud",
        "assume it rains": "it rains",
        "ask which hotel?": "which hotel?",
        "decide by train because it is quiet": "by train (because it is quiet)",
        "draft Letter Dear hotel": "Letter: Dear hotel",
    }.items():
        kind = form.split()[0].replace("_", "-")
        assert await told(host, f"note {form}") == f"Noted for “Trip”, **{kind}**:\n**1.** {line}"
        assert await told(host, f"note {form}") == f"Noted for “Trip”, **{kind}**:\n**1.** {line}"
    await told(host, "note ask which day?")
    left = await told(host, "note drop ask 1")
    assert left == "Left for “Trip”, **ask**:\n**1.** which day?"
    assert await told(host, "note drop ask 1") == "Left for “Trip”, **ask**:\nnothing"
    assert "there is no note ask 1" in await told(host, "note drop ask 1")


async def test_a_note_is_taken_away_only_if_it_begins_as_somebody_says(host):
    await told(host, "new Trip")
    for question in ("which hotel?", "which day?"):
        await told(host, f"note ask {question}")
    refused = await told(host, "note drop ask 1 which day?")
    assert "the note ask 1 is another one by now" in refused
    left = await told(host, "note drop ask 1 which  hot")
    assert left == "Left for “Trip”, **ask**:\n**1.** which day?"


@pytest.mark.parametrize(
    "form", ["", "must", "mood x", "drop", "drop ask", "drop ask x", "drop ask 100"]
)
async def test_a_note_that_cannot_be_read_is_answered_with_examples(host, form):
    assert "For example: `/problem note must" in await told(host, f"note {form}")


async def test_in_a_group_members_look_and_owners_change(host):
    async def say(form: str, role: str) -> str:
        sent = await host.channel.send(
            f"/problem {form}".strip(), private=False, sender=BOB, role=role
        )
        return await host.channel.wait_for_answer(sent)

    await say("new Trip", "owner")
    for form in ("", "list", "list done", "show", "1"):
        assert "only an owner" not in await say(form, "member")
    for form in ("new X", "switch general", "done", "note must be loud", "priority 1 9", "pause"):
        assert "only an owner" in await say(form, "member")
    assert "Trip: active" in await say("", "member")


def test_only_what_switches_waits_for_a_turn():
    waiting = {"new", "switch", "pause", "resume", "background", "done"}
    for form in (*waiting, "", "list", "show", "note", "priority", "2"):
        assert PROBLEM_COMMAND.waits_for_turn(f"{form} x") == (form in waiting)


async def test_everything_about_it_stands_in_help(host):
    helped = await host.channel.ask("/help")
    assert "`/problem`: work on several problems" in helped
    assert "`/problem note drop KIND N`" in helped


async def test_what_a_command_changes_carries_the_command_as_its_cause(host):
    await told(host, "new Trip")
    await told(host, "note ask why?")
    await told(host, "priority trip 3")
    await told(host, "pause")
    entries = await host.tape()
    commands = {f"command:fake:1:{e.id}" for e in entries if e.name == "command"}
    keys = [str(e.data.get("key")) for e in entries if e.name == "memory.bus"]
    assert len(keys) == 5
    assert {key.removesuffix(":switch") for key in keys} == commands


async def test_the_labels_of_a_summary_are_in_the_readers_language(host):
    await told(host, "new Trip")
    await told(host, "note must be cheap")
    await told(host, "note must-not take long")
    await told(host, "new Taxes")
    german = Sender("42", "Ada", language="de")
    shown = await host.channel.ask("/problem show p1", sender=german)
    assert "muss: be cheap" in shown
    assert "must" not in shown
    assert "must: be cheap" in await host.channel.ask("/problem show p1")
