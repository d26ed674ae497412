"""``/memory why`` and ``/memory search``: where a fact is from, and what was said."""

from __future__ import annotations

import pytest

from bot.bus.messages import Sender
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, memory_save_call, text_reply, tool_call_reply

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


async def test_what_was_cleared_undone_or_dropped_tells_by_what_it_ended(host):
    await host.channel.ask("/memory add I like tea")
    await host.channel.ask("/memory clear yes")
    assert "(you asked): all memory was cleared." in await host.channel.ask("/memory why 1")
    await host.channel.ask("/memory undo")
    assert "Believed since" in await host.channel.ask("/memory why 1")
    await host.channel.ask("/memory undo")
    assert "(an undo).\n" in await host.channel.ask("/memory why 1")


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


async def test_what_the_assistant_saved_says_so(tmp_path):
    model = ScriptedModel([tool_call_reply(memory_save_call("I like tea")), text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I like tea")
        told = await host.channel.ask("/memory why 1")
    assert "fairly certain (0.80)" in told
    assert "(the assistant): approved" in told
    assert "“I like tea”" in told


async def test_many_pieces_of_evidence_have_pages(host):
    for number in range(12):
        await host.channel.ask(f"/memory add I like {'green ' * 20}tea{'!' * number}")
    first = await host.channel.ask("/memory why 1")
    assert "Page 1 of" in first
    (more,) = host.channel.answers[-1].buttons
    second = await host.channel.ask(more.command)
    assert "Page 2 of" in second
    assert first.count("entry #") + second.count("entry #") == 12


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("why", "Which one?"),
        ("why tea", "Which one?"),
        ("why 7", "There is no fact 7."),
        ("why w7", "There is no fact w7."),
        ("why 99999999999", "Which one?"),
        ("search", "What should I search for?"),
        ("search xyzzy", "Nothing found"),
        ("search " + "x" * 5_000, "too long"),
        ("history", "There is no history yet"),
    ],
)
async def test_nonsense_has_a_clear_answer(host, form, answer):
    assert answer in await host.channel.ask(f"/memory {form}")


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


async def test_a_search_finds_notes_and_the_newest_message(tmp_path):
    notes = tool_call_reply(("memory_daily", {"content": "Bought a green bicycle"}))
    async with session_host(tmp_path, ScriptedModel([notes, text_reply("ok")])) as host:
        await host.channel.ask("I bought a green bicycle")
        told = await host.channel.ask("/memory search bicycle")
    assert "2026-02-10: Bought a green bicycle" in told
    assert "I bought a green bicycle" in told


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


async def test_a_search_too_long_for_a_button_has_none(host):
    words = "Bicycle " + "ü" * 60
    for number in range(15):
        await host.channel.ask(f"{words} {number} {'x' * 300}")
    assert "Page 1 of" in await host.channel.ask(f"/memory search {words}")
    assert host.channel.answers[-1].buttons == ()
