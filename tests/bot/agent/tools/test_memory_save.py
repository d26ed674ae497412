"""Which facts the model's save tool adds, changes and ends, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from memory_tool_chat import MAIL, add, change, end

from bot.memory.session.state.zone_snapshot import MemorySnapshot, zone_entries
from bot.testing.host import HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


async def test_what_a_pasted_mail_says_is_not_saved_and_what_stands_beside_it_is(chat):
    said = f"Eva wrote me!\n\n{MAIL}\n\nI live in Kiel."
    told = await chat.save(said, *add("I am moving to Madrid in June"))
    assert "Saved" not in told
    assert "Saved" in await chat.save(said, *add("I live in Kiel"))


async def test_facts_are_added_changed_and_ended_by_their_numbers_in_one_call(chat):
    said = "I live in Rome. I have a car. I like tea."
    assert "Saved" in await chat.save(said, *add("I live in Rome", "I have a car", "I like tea"))
    said = "I live in Oslo now, and I sold the car. I like coffee, too."
    told = await chat.save(said, change(1, "I live in Oslo"), *end(2), *add("I like coffee"))
    assert told == (
        "Saved to long-term memory (version 3): [4] I live in Oslo (in place of [1]); [2] has ended; "
        "[5] I like coffee."
    )
    assert await chat.facts() == [
        "- [3] I like tea (2026-02-10)",
        "- [4] I live in Oslo (2026-02-10)",
        "- [5] I like coffee (2026-02-10)",
    ]


async def test_a_fact_that_nobody_took_back_is_not_ended_or_changed_by_another_number(chat):
    await chat.save("I live in Rome.", *add("I live in Rome"))
    assert "Not ended (" in await chat.save("I like tea", *end(1))
    assert "there is no fact 7" in await chat.save("I like tea", *end(7))
    assert "there is no fact 7" in await chat.save("I like tea", change(7, "I like tea"))
    assert await chat.facts() == ["- [1] I live in Rome (2026-02-10)"]


async def test_what_is_tidied_up_keeps_everything_that_was_said(chat):
    """Eight facts become four, though the person only asks for order."""
    first = ["Lotte has piano on Wednesdays", "Emil has judo on Fridays", "Jonas is a baker",
             "Jonas works at Bosch", "Miso is a cat", "Miso is black", "The car is a Skoda",
             "The car is from 2014"]  # fmt: skip
    assert "Not saved" not in await chat.save(". ".join(first), *add(*first))
    await chat.host.channel.ask("/new now")
    merged = [
        change(1, "Lotte has piano on Wednesdays; Emil has judo on Fridays"),
        change(3, "Jonas is a baker; Jonas works at Bosch"),
        change(5, "Miso is a cat; Miso is black"),
        change(7, "The car is a Skoda; The car is from 2014"),
    ]
    told = await chat.save("Tidy up what you know about me.", *merged, *end(2, 4, 6, 8))
    assert "Not" not in told
    assert len(await chat.facts()) == 4
    why = await chat.host.channel.ask("/memory why 9")
    assert "Lotte has piano on Wednesdays" in why
    assert "Emil has judo on Fridays" in why


@pytest.mark.parametrize("text", ["My shoe size", "My shoe size is 44", "My shoe size is known"])
async def test_a_rewording_that_drops_or_changes_a_number_is_refused_and_changes_nothing(
    chat, text
):
    await chat.save("My shoe size is 43", *add("My shoe size is 43"))
    await chat.host.channel.ask("/new now")
    told = await chat.save("Tidy up what you know about me.", change(1, text))
    assert told.startswith("Nothing was changed in long-term memory. Not saved (")
    assert await chat.facts() == ["- [1] My shoe size is 43 (2026-02-10)"]


async def test_of_a_call_that_is_refused_as_a_whole_nothing_is_kept(chat):
    """One conclusion, and more changes than are taken at once."""
    concluded = {"op": "conclusion", "text": "Walks help the user"}
    told = await chat.save("Walks help me.", concluded, *add(*map(str, range(60))))
    assert told.startswith("Not done: these are 61 changes")
    assert "Walks" not in await chat.host.channel.ask("/memory beliefs")


@pytest.mark.parametrize(
    "tidied",
    [
        [change(1, "Lotte has piano"), *end(2)],
        [change(1, "Lotte has piano on Wednesdays"), *end(2)],
        [change(1, "Lotte has piano on Thursdays and Emil has judo"), *end(2)],
        end(1, 2),
    ],
)
async def test_tidying_up_drops_and_changes_nothing_that_was_said(chat, tidied):
    first = ["Lotte has piano on Wednesdays", "Emil has judo"]
    await chat.save(". ".join(first), *add(*first))
    await chat.host.channel.ask("/new now")
    before = await chat.facts()
    told = await chat.save("Tidy up what you know about me.", *tidied)
    assert "Not " in told
    left = " ".join(await chat.facts())
    assert all(word in left for one in before for word in one.partition("] ")[2].split()[:4])


async def test_a_member_of_a_group_adds_and_changes_nothing(chat):
    await chat.save("I live in Rome.", *add("I live in Rome"))
    for one in (change(1, "I live in Oslo"), *end(1)):
        chat.steps = [tool_call_reply(("memory_save", {"changes": [one]}))]
        sent = await chat.host.channel.send("I live in Oslo now", private=False, role="member")
        await chat.host.channel.wait_for_answer(sent)
        results = [e for e in await chat.host.tape() if e.kind == "tool_result"]
        assert "only an owner may change or end facts" in results[-1].payload["content"]


async def test_very_many_changes_are_refused_before_each_is_compared(tmp_path):
    items = [f"item {number}" for number in range(400)]
    lines = "\n".join(f"- {one}" for one in items)
    wanted = tool_call_reply(
        ("memory_save", {"changes": add(*items)}), ("memory_daily", {"content": lines})
    )
    model = ScriptedModel([wanted, text_reply("x")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("save all that")
        results = [e.payload["content"] for e in await host.tape() if e.kind == "tool_result"]
    assert len(results) == 2
    assert all("400 changes" in result for result in results)


async def test_tomorrow_is_counted_from_the_day_where_the_person_is(tmp_path):
    """At ten in the evening in London it is the next day in Tokyo."""
    save = {"changes": add("The user's exam is on 2026-02-12")}
    model = ScriptedModel([tool_call_reply(("memory_save", save)), text_reply("ok")])
    clock = ManualClock(datetime(2026, 2, 10, 22, tzinfo=UTC))
    bounds = HostLimits(timezone="Asia/Tokyo")
    async with session_host(tmp_path, model, bounds=bounds, clock=clock) as host:
        await host.channel.ask("My exam is tomorrow.")
        assert "exam is on 2026-02-12" in await host.channel.ask("/memory")


async def test_a_zone_that_an_earlier_version_wrote_is_read_and_its_facts_get_numbers(tmp_path):
    model = ScriptedModel(
        [tool_call_reply(("memory_save", {"changes": add("I live in Rome")})), text_reply("ok")]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I live in Rome.")
        before = zone_entries(MemorySnapshot(9, "- I live in Rome"), "2026-02-10T10:00:00+00:00")
        await host.store.append_many("fake:1", before)
    model = ScriptedModel([text_reply("hi")])
    async with session_host(tmp_path, model) as host:
        await host.channel.send("/new now", message_id="new")
        sent = await host.channel.send("hello", message_id="later")
        await host.channel.wait_for_answer(sent)
    asked = str(model.requests_for()[-1].messages)
    assert "- [1] I live in Rome (2026-02-10)" in asked
