"""``/problem``: what it lists, switches and notes, and what it says of that."""

from __future__ import annotations

from pathlib import Path

import pytest

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
