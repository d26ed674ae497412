"""What the model's memory tools answer, seen from a chat."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bot.agent.tools.registry import MAX_RESULT
from bot.memory.session.state.zone_snapshot import MemorySnapshot, zone_entries
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


def add(*texts: str) -> list[dict[str, Any]]:
    return [{"op": "add", "text": text} for text in texts]


def change(fact: int, text: str) -> dict[str, Any]:
    return {"op": "change", "fact": fact, "text": text}


def end(*facts: int) -> list[dict[str, Any]]:
    return [{"op": "end", "fact": fact} for fact in facts]


class Chat:
    """A chat whose model calls the tool that the test names, and then answers."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.model = ScriptedModel(lambda _: self.steps.pop(0) if self.steps else text_reply("ok"))
        self.host: Host

    async def tool(self, name: str, said: str = "do it", /, **arguments: Any) -> str:
        self.steps = [tool_call_reply((name, arguments))]
        await self.host.channel.ask(said)
        results = [e for e in await self.host.tape() if e.kind == "tool_result"]
        return results[-1].payload["content"]

    async def save(self, said: str, /, *changes: dict[str, Any]) -> str:
        return await self.tool("memory_save", said, changes=list(changes))

    async def facts(self) -> list[str]:
        """Return the facts that the next prompt shows, with their numbers."""
        shown = await self.tool("memory_show")
        return [line for line in shown.splitlines() if line.startswith("- [")]


@pytest.fixture
async def chat(tmp_path):
    chat = Chat()
    bounds = HostLimits(retention_days=3)
    async with session_host(tmp_path, chat.model, bounds=bounds) as chat.host:
        yield chat


async def test_recall_finds_what_was_said_with_its_date_speaker_and_entry(chat):
    await chat.host.channel.ask("My sister Beatrix plays the cello.")
    chat.host.clock.advance(2 * 86_400)
    found = await chat.tool("memory_recall", query="who plays the cello?")
    said = next(e for e in await chat.host.tape() if "cello" in str(e.payload.get("content")))
    assert f"- 2026-02-10 10:00, Ada [#{said.id}]: My sister Beatrix plays the cello." in found


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("我喜欢喝绿茶", "绿茶"),
        ("Ich wohne in der Grüßgasse", "grüßgasse"),
        ("Моя кошка по имени Мурка", "мурка"),
        ('He said "open sesame" twice\nand left', "sesame"),
        ("私は京都に住んでいます", "京都"),
    ],
)
async def test_recall_finds_any_script_and_quoted_and_multi_line_text(chat, said, asked):
    await chat.host.channel.ask(said)
    assert " ".join(said.split()) in await chat.tool("memory_recall", query=asked)


MAIL = "From: Eva\nSubject: Trip\n\nI am moving to Madrid in June.\nBest,\nEva"


async def test_what_a_pasted_mail_says_is_not_saved_and_what_stands_beside_it_is(chat):
    said = f"Eva wrote me!\n\n{MAIL}\n\nI live in Kiel."
    told = await chat.save(said, *add("I am moving to Madrid in June"))
    assert "Saved" not in told
    assert "Saved" in await chat.save(said, *add("I live in Kiel"))


async def test_recall_marks_what_was_pasted(chat):
    await chat.host.channel.ask(f"Can you answer this?\n\n{MAIL}")
    found = await chat.tool("memory_recall", query="moving to Madrid in June")
    [line] = [one for one in found.splitlines() if "Madrid" in one]
    assert "quoted:" in line


async def test_recall_of_one_session_never_shows_another(chat):
    await chat.host.channel.ask("the secret is aleph", chat="2")
    assert "aleph" not in await chat.tool("memory_recall", query="secret")


async def test_recall_reaches_behind_a_new_session(chat):
    await chat.host.channel.ask("The bicycle is green.")
    await chat.host.channel.ask("/new now")
    assert "The bicycle is green." in await chat.tool("memory_recall", query="bicycle")


async def test_recall_that_finds_nothing_says_so(chat):
    assert await chat.tool("memory_recall", query="zebra") == "No matching records."


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


async def test_facts_stand_in_the_prompt_with_their_numbers_and_days(chat):
    await chat.save("I live in Rome.", *add("I live in Rome"))
    await chat.host.channel.ask("/new now")
    await chat.host.channel.ask("hi")
    assert (
        "- [1] I live in Rome (2026-02-10)" in chat.model.requests_for()[-1].messages[0]["content"]
    )


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


async def test_a_fact_may_be_split(chat):
    both = "My cat Miso is black and my car is a Skoda."
    await chat.save(both, *add("The cat Miso is black and the car is a Skoda"))
    await chat.host.channel.ask("/new now")
    told = await chat.save(
        "Tidy up.", change(1, "The cat Miso is black"), *add("The car is a Skoda")
    )
    assert "Not saved" not in told
    assert [line.partition("] ")[2] for line in await chat.facts()] == [
        "The cat Miso is black (2026-02-10)",
        "The car is a Skoda (2026-02-10)",
    ]


async def test_a_duplicate_may_be_ended_and_what_says_more_than_the_other_may_not(chat):
    first = ["Lotte has piano", "Lotte has piano on Wednesdays at 16:00"]
    for one in first:
        await chat.save(one, *add(one))
    assert len(await chat.facts()) == 2
    await chat.host.channel.ask("/new now")
    assert "Not ended (" in await chat.save("Tidy up what you know about me.", *end(2))
    told = await chat.save("Tidy up what you know about me.", *end(1))
    assert told == "Saved to long-term memory (version 4): [1] has ended."
    assert await chat.facts() == ["- [2] Lotte has piano on Wednesdays at 16:00 (2026-02-10)"]


@pytest.mark.parametrize("text", ["My shoe size", "My shoe size is 44", "My shoe size is known"])
async def test_a_rewording_that_drops_or_changes_a_number_is_refused_and_changes_nothing(
    chat, text
):
    await chat.save("My shoe size is 43", *add("My shoe size is 43"))
    await chat.host.channel.ask("/new now")
    told = await chat.save("Tidy up what you know about me.", change(1, text))
    assert told.startswith("Nothing was changed in long-term memory. Not saved (")
    assert await chat.facts() == ["- [1] My shoe size is 43 (2026-02-10)"]


async def test_what_is_stated_now_may_take_the_place_of_what_it_makes_untrue(chat):
    await chat.save("My left knee hurts, no hills until February.", *add("No hills until February"))
    await chat.host.channel.ask("/new now")
    told = await chat.save(
        "The knee is fine again, hills are allowed.", change(1, "Hills are allowed again")
    )
    assert (
        told
        == "Saved to long-term memory (version 3): [2] Hills are allowed again (in place of [1])."
    )


@pytest.mark.parametrize(
    "asked",
    [
        "When does Lotte have piano?",
        "Tidy up what you know about Lotte.",
        "Please make the note on Lotte's piano shorter.",
    ],
)
async def test_a_message_that_only_names_what_a_fact_is_about_lets_nothing_of_it_go(chat, asked):
    fact = "Lotte has piano on Wednesdays at 16:00"
    await chat.save(fact, *add(fact))
    await chat.host.channel.ask("/new now")
    await chat.save(asked, change(1, "Lotte has piano"))
    assert fact in " ".join(await chat.facts())


async def test_a_fact_is_not_split_where_a_part_of_it_is_refused(chat):
    """Lotte's and Emil's hours; the model makes up an hour of Emil's."""
    both = "Lotte has piano on Wednesdays and Emil has judo on Fridays"
    await chat.save(both, *add(both))
    await chat.host.channel.ask("/new now")
    parts = [change(1, "Lotte has piano on Wednesdays"), *add("Emil has judo on Fridays at 17:00")]
    await chat.save("Tidy up what you know about me.", *parts)
    assert "Emil has judo on Fridays" in " ".join(await chat.facts())


async def test_of_a_call_that_is_refused_as_a_whole_nothing_is_kept(chat):
    """One conclusion, and more changes than are taken at once."""
    concluded = {"op": "conclusion", "text": "Walks help the user"}
    told = await chat.save("Walks help me.", concluded, *add(*map(str, range(60))))
    assert told.startswith("Not done: these are 61 changes")
    assert "Walks" not in await chat.host.channel.ask("/memory beliefs")


async def test_of_a_call_that_a_member_may_not_make_nothing_is_kept(chat):
    concluded = {"op": "conclusion", "text": "Walks help Bo"}
    chat.steps = [tool_call_reply(("memory_save", {"changes": [concluded, *end(1)]}))]
    sent = await chat.host.channel.send("Walks help me, says Bo.", private=False, role="member")
    await chat.host.channel.wait_for_answer(sent)
    shown = await chat.host.channel.send("/memory beliefs", private=False, role="owner")
    assert "Walks" not in await chat.host.channel.wait_for_answer(shown)


async def test_very_many_conclusions_are_refused_before_each_is_compared(chat):
    many = [{"op": "conclusion", "text": f"Walk {number} helps"} for number in range(400)]
    assert "400 changes" in await chat.save("Walks help me.", *many)


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


async def test_a_fact_whose_change_is_refused_stays_as_it_was(chat):
    """The model makes up a day that nobody said."""
    old = "Lotte: piano on Wednesdays at 16:00"
    assert "Saved" in await chat.save(old, *add(old))
    new = "Lotte: piano on Fridays at 17:00"
    told = await chat.save("Lotte's piano moved to 17:00, same day.", change(1, new))
    assert told.startswith("Nothing was changed in long-term memory. Not saved (")
    assert repr(new) in told
    assert "may give once more" in told
    assert old in await chat.tool("memory_show")


async def test_what_a_fact_says_already_needs_not_be_said_again_to_change_the_rest(chat):
    old = "Lotte: piano on Wednesdays at 16:00"
    await chat.save(old, *add(old))
    said = "Lotte's piano moved to 17:00, same day."
    assert "Saved" in await chat.save(said, change(1, "Lotte: piano on Wednesdays at 17:00"))
    [line] = await chat.facts()
    assert "Wednesdays at 17:00" in line


@pytest.mark.parametrize("text", ["(nothing)", "x" * 9_000])
async def test_a_save_that_is_no_memory_is_refused(chat, text):
    assert "Saved" not in await chat.save("do it", *add(text))
    assert (await chat.host.events("memory.long_term")) == []


async def test_a_save_of_what_is_there_already_makes_no_new_version(chat):
    await chat.save("I like tea", *add("I like tea"))
    assert "[1] I like tea" in await chat.save("I like tea", *add("I like tea"))
    assert len(await chat.host.events("memory.long_term")) == 1


async def test_a_telephone_number_is_found_and_tapebot_asks_with_buttons(chat):
    await chat.host.channel.ask("My number is 0151 2345678.")
    chat.steps = [
        tool_call_reply(("memory_forget", {"what": "0151 2345678"})),
        text_reply("I found it."),
    ]
    told = await chat.host.channel.ask("Please forget my number.")
    assert told.startswith("I found it.\n\nThis would be erased for good:")
    assert "0151 2345678" in told
    answer = chat.host.channel.answers[-1]
    assert answer.buttons[0].label == "Erase"
    assert answer.buttons[0].command.startswith("/memory forget yes ")
    await chat.host.channel.ask(answer.buttons[0].command)
    assert "0151" not in str([e.payload for e in await chat.host.tape()])


async def test_one_thing_to_be_forgotten_is_asked_at_a_time(chat):
    """What is confirmed is what was shown."""
    await chat.host.channel.ask("My cat is Miso.")
    await chat.host.channel.ask("My car is a Skoda.")
    forget = [("memory_forget", {"what": one}) for one in ("Miso", "Skoda", "Skoda")]
    chat.steps = [tool_call_reply(*forget[:2]), tool_call_reply(forget[2])]
    told = await chat.host.channel.ask("Please forget my cat and my car.")
    assert "Miso" in told
    assert "Skoda" not in told
    given = [one.payload for one in await chat.host.tape() if one.kind == "tool_result"]
    assert [one["status"] for one in given] == ["ok", "error", "error"]
    assert all("one thing at a time" in one["content"] for one in given[1:])


async def test_tools_that_cannot_be_used_now_are_not_offered(chat, tmp_path):
    await chat.host.channel.ask("hi")
    names = {tool.name for tool in chat.model.requests_for()[-1].tools}
    assert names.isdisjoint({"problem_note", "skill_read"})
    await chat.host.channel.ask("/problem new Taxes")
    folder = tmp_path / "workspace" / "skills" / "cooking"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: cooking\ndescription: Cooks.\n---\nStir.")
    chat.host.clock.advance(3_600)
    await chat.host.channel.ask("hi")
    assert {tool.name for tool in chat.model.requests_for()[-1].tools} - names == {
        "problem_note",
        "skill_read",
    }


@pytest.mark.parametrize("day", ["yesterday", "2026-02-30", "2025-01-01"])
async def test_a_note_for_a_day_that_cannot_be_is_refused(chat, day):
    told = await chat.tool("memory_daily", content="x", date=day)
    assert told.startswith("Not done")
    assert await chat.host.events("memory.daily") == []


async def test_notes_past_the_retention_are_pruned_by_the_next_write(chat):
    await chat.tool("memory_daily", "It is the first day", content="first day")
    chat.host.clock.advance(4 * 86_400)
    await chat.tool("memory_daily", "It is the fifth day", content="fifth day")
    shown = await chat.tool("memory_show")
    assert "fifth day" in shown
    assert "first day" not in shown
    assert "first day" in str(await chat.host.events("memory.daily"))


async def test_clearing_says_how_to_bring_it_back(chat):
    assert "empty already" in await chat.tool("memory_clear")
    await chat.save("I like tea", *add("I like tea"))
    assert "/memory undo" in await chat.tool("memory_clear")
    await chat.host.channel.ask("/memory undo")
    assert "I like tea (today)" in await chat.host.channel.ask("/memory")


async def test_a_result_too_long_for_the_prompt_is_cut_and_says_so(chat, tmp_path):
    folder = tmp_path / "workspace" / "skills" / "long"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: long\ndescription: Long.\n---\n" + "x" * MAX_RESULT
    )
    told = await chat.tool("skill_read", name="long")
    assert len(told) < MAX_RESULT + 100
    assert "characters left out" in told


async def test_a_skill_that_does_not_exist_comes_back_as_an_error(chat):
    assert "there is no skill 'cooking'" in await chat.tool("skill_read", name="cooking")


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
        sent = await host.channel.send("hello", message_id="later")
        await host.channel.wait_for_answer(sent)
    asked = str(model.requests_for()[-1].messages)
    assert "- [1] I live in Rome (2026-02-10)" in asked


async def test_a_note_may_put_two_things_that_were_said_in_another_order(chat):
    told = await chat.tool(
        "memory_daily",
        "I slept badly, Emil had a fever all night.",
        content="Emil had a fever all night; I slept badly.",
    )
    assert told.startswith("Added to the notes of ")
