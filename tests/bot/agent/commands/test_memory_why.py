"""``/memory why`` and ``/memory search``: where a fact is from, and what was said."""

from __future__ import annotations

import pytest

from bot.bus.messages import Sender
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

BOB = Sender("8", "Bob")
DAY = 86_400


async def in_group(channel: FakeChannel, text: str, **more) -> str:
    """Say something in a Telegram group as Bob, a member, unless told otherwise."""
    said = {"chat": "-1001234567890", "private": False, "sender": BOB, "role": "member"} | more
    return await channel.wait_for_answer(await channel.send(text, **said))


@pytest.fixture
async def host(tmp_path):
    bounds = HostLimits(timezone="Europe/Berlin")
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model, bounds=bounds) as host:
        yield host


async def test_a_fact_is_told_with_its_evidence_dates_confidence_and_decision(host):
    await host.channel.ask("Remember that I live in Bonn")
    host.clock.advance(DAY)
    told = await host.channel.ask("/memory why 1")
    (said,) = [e for e in await host.tape() if e.kind == "message" and "Bonn" in str(e.payload)]
    assert told.splitlines()[:5] == [
        "**1.** I live in Bonn",
        "Believed since 2026-02-10 11:00; certain (0.95).",
        "It is about home.",
        "Evidence:",
        f"- Ada, message of 2026-02-10 11:00, entry #{said.id}: “Remember that I live in Bonn”",
    ]
    blank, decision = told.splitlines()[5:]
    assert blank == ""  # Markdown would take it for a part of the list
    assert decision.endswith(
        "(you asked): approved; a person's own words support it (1.00), nothing contradicts it, "
        "a mistake would affect only this memory."
    )


async def test_what_ended_tells_when_and_what_took_its_place_and_the_new_one_its_chain(host):
    await host.channel.ask("/memory add I live in Bonn")
    host.clock.advance(DAY)
    await host.channel.ask("/memory add I live in Graz")
    old, new = await host.channel.ask("/memory why 1"), await host.channel.ask("/memory why 2")
    assert "Valid from 2026-02-10 11:00 to 2026-02-11 11:00" in old
    assert "(you asked): replaced by **2.** I live in Graz." in old
    assert "It replaced **1.** I live in Bonn (from 2026-02-10 11:00 to" in new


async def test_the_evidence_of_a_group_names_the_member_and_links_to_the_message(host):
    telegram = host.add_channel("telegram")
    await in_group(telegram, "/memory add I bring the cake", message_id="77")
    told = await in_group(telegram, "/memory why 1", message_id="78")
    assert "**1.** Bob (8): I bring the cake" in told
    link = "[message of 2026-02-10 11:00](https://t.me/c/1234567890/77)"
    assert f"- Bob (8), {link}, entry #" in told
    assert "(you asked)" in told
    others = await in_group(telegram, "/memory why 1", message_id="79", sender=Sender("9", "Eve"))
    assert "(Bob (8) asked)" in others


async def test_a_search_finds_facts_also_those_that_ended_and_what_was_said(host):
    await host.channel.ask("The weather in Bonn was fine")
    await host.channel.ask("/memory add I live in Bonn")
    host.clock.advance(DAY)
    await host.channel.ask("/memory add I live in Graz")
    told = await host.channel.ask("/memory search bonn")
    assert "**1.** I live in Bonn (from 2026-02-10 11:00 to 2026-02-11 11:00)" in told
    said = next(e for e in await host.tape() if "weather" in str(e.payload.get("content")))
    assert f"- 2026-02-10 11:00, Ada [#{said.id}]: The weather in Bonn was fine" in told
    assert "Graz" not in told


async def test_a_search_of_one_session_never_shows_another(host):
    await host.channel.ask("The password is xyzzy", chat="2")
    assert "Nothing found" in await host.channel.ask("/memory search xyzzy")


async def test_a_long_search_has_pages_that_buttons_turn(host):
    for number in range(15):
        await host.channel.ask(f"Bicycle number {number} is {'x' * 300}")
    first = await host.channel.ask("/memory search bicycle")
    assert "Page 1 of" in first
    (more,) = host.channel.answers[-1].buttons
    assert more.command == "/memory search bicycle page 2"
    assert "Page 2 of" in await host.channel.ask(more.command)
