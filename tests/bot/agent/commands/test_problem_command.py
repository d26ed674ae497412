"""``/problem``: what it lists, switches and notes, and what it says of that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.testing.fake_channel import ADA
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from tests.bot.agent.telling import BOB, DAY, pressed, say, talk


@pytest.fixture
async def host(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as opened:
        yield opened


async def told(host: Host, form: str = "") -> str:
    return await say(host, f"/problem {form}".strip())


async def forms(host: Host, *lines: tuple[str, ...]) -> None:
    await talk(host, *((f"/problem {form}".strip(), *parts) for form, *parts in lines))


async def test_the_list_tells_state_priority_age_and_open_questions(host):
    await forms(host, ("new Trip to *Rome*",), ("note ask which hotel?",), ("note ask when?",))
    host.clock.advance(3 * DAY)
    await forms(host, ("new Taxes",), ("note ask which year?",), ("priority taxes 7",))
    await forms(host, ("new Song",), ("background song",), ("switch tax",))
    assert (await told(host)).splitlines() == [
        "**Problems**",
        "",
        "**2.** Taxes: active, priority 7, started today, 1 open question",
        "**general**: paused",
        "**3.** Song: in the background, started today",
        r"**1.** Trip to \*Rome\*: paused, started 3 days ago",
        "",
        "`/problem new NAME` starts another, `/problem switch N` switches.",
    ]
    assert pressed(host) == [
        ("Done: Taxes", "/problem done p2"),
        ("Switch to general", "/problem switch general"),
        ("Switch to Song", "/problem switch p3"),
        ("Switch to Trip to *Rome*", "/problem switch p1"),
    ]
    await forms(host, ("done song",), ("list done", "**3.** Song: done"))
    assert "Song" not in await told(host)


async def test_a_switch_says_what_is_left_and_what_comes_back(host):
    assert await told(host, "new Trip") == "You are now on “Trip”.\n\n“general” is paused."
    await told(host, "note decide by train because it is quiet")
    await say(host, "hello")
    paused = "“Trip” is paused: decided: by train (it is quiet)"
    assert await told(host, "new Taxes") == f"You are now on “Taxes”.\n\n{paused}"
    assert pressed(host) == [("Back to Trip", "/problem switch p1")]
    assert await told(host, "switch p1") == (
        "You are now on “Trip”.\n\n“Taxes” is paused.\n\n"
        "Its summary: decided: by train (it is quiet)\n\n"
        "The last 2 messages of “Trip” are back in view."
    )
    await forms(host, ("switch TRIP", "You are already on “Trip”."), ("resume tax", "on “Taxes”."))


async def test_what_is_not_there_or_is_done_or_may_be_several_is_said_plainly(host):
    await forms(host, ("new Trip to Rome",), ("new Trip to Oslo",), ("new Taxes",), ("done taxes",))
    await forms(
        host,
        *(("switch nothing", "there is no problem 'nothing'"), ("switch taxes", "“Taxes” is done")),
        ("switch trip", "Trip to Rome (p1), Trip to Oslo (p2): say which"),
        ("new Trip to Oslo", "there is a problem 'Trip to Oslo' already"),
        *((f"new {'x' * 61}", "1 to 60 characters"), ("new", "What should it be called?")),
        *(("switch", "Which one?"), ("priority 1", "For example"), ("priority 1 0", "from 1 to 9")),
        *(("swich trip", "Did you mean `/problem switch`?"), ("note mood x", "For example:")),
        ("note drop ask 1", "there is no note ask 1"),
    )


async def test_notes_are_shown_whole_of_the_problem_at_hand_and_summed_up_of_another(host):
    await told(host, "new Trip")
    for form, kind, line in (
        ("must be cheap", "must", "be cheap"),
        ("must_not cost over *5*", "must-not", "cost over \\*5\\*"),
        ("assume it rains", "assume", "it rains"),
        ("ask which hotel?", "ask", "which hotel?"),
        ("decide by train because it is quiet", "decide", "by train (because it is quiet)"),
        ("draft Letter Dear hotel", "draft", "Letter: Dear hotel"),
    ):
        assert await told(host, f"note {form}") == f"Noted for “Trip”, **{kind}**:\n**1.** {line}"
        assert f"**{kind}**\n**1.** {line}" in await told(host, "show")
    await forms(
        host,
        *(("note ask which day?",), ("note drop ask 1 which day?", "is another one by now")),
        ("note drop ask 1 which  hot", "Left for “Trip”, **ask**:\n**1.** which day?"),
        *(("new Taxes",), ("show trip", "“Trip” (paused). Summary:\nmust: be cheap")),
    )
    assert "Dear hotel" not in await told(host, "show trip")
    german = replace(ADA, language="de")
    assert "muss: be cheap" in await say(host, "/problem show p1", sender=german)


async def test_in_a_group_members_look_and_owners_change(host):
    member = {"private": False, "sender": BOB, "role": "member"}
    await say(host, "/problem new Trip", private=False)
    for form in ("list", "list done", "show", "1"):
        assert "only an owner" not in await say(host, f"/problem {form}", **member)
    for form in ("new X", "switch general", "done", "note must be loud", "priority 1 9", "pause"):
        assert "only an owner" in await say(host, f"/problem {form}", **member)
    await talk(host, ("/problem", "Trip: active"), **member)
