"""What the model's memory tools answer, seen from a chat."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bot.testing.host import Bounds, Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, calls, says
from bot.tools.registry import MAX_RESULT


class Chat:
    """A chat whose model calls the tool that the test names, and then answers."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.model = ScriptedModel(lambda _: self.steps.pop(0) if self.steps else says("ok"))
        self.host: Host

    async def tool(self, name: str, said: str = "do it", /, **arguments: Any) -> str:
        self.steps = [calls((name, arguments))]
        await self.host.channel.ask(said)
        results = [e for e in await self.host.tape() if e.kind == "tool_result"]
        return results[-1].payload["content"]


@pytest.fixture
async def chat(tmp_path):
    chat = Chat()
    bounds = Bounds(retention_days=3)
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
    told = await chat.tool("memory_save", said, content="- I am moving to Madrid in June")
    assert "Saved" not in told
    assert "Saved" in await chat.tool("memory_save", said, content="- I live in Kiel")


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


async def test_a_save_that_would_lose_facts_is_refused_with_what_to_do(chat):
    words = ("alpha", "beta", "gamma", "delta")
    facts = "\n".join(f"- I like {word}" for word in words)
    said = ". ".join(f"I like {word}" for word in words)
    assert "Saved" in await chat.tool("memory_save", said, content=facts)
    told = await chat.tool("memory_save", content="- I like alpha")
    assert "Saved" not in told
    assert "keep them, or name each one" in told
    removed = ["I like beta", "- I like gamma", "I like delta"]
    said = "Forget that I like beta, gamma and delta"
    assert "Saved" in await chat.tool(
        "memory_save", said, content="- I like alpha", removed=removed
    )


@pytest.mark.parametrize("removed", [[], ["Lotte: piano on Wednesdays at 16:00"]])
async def test_a_line_whose_change_is_refused_stays_as_it_was(chat, removed):
    """The model repeats the day, which is not in what was said last."""
    old = "Lotte: piano on Wednesdays at 16:00"
    assert "Saved" in await chat.tool("memory_save", old, content=old)
    new = "Lotte: piano on Wednesdays at 17:00"
    said = "Lotte's piano moved to 17:00, same day."
    told = await chat.tool("memory_save", said, content=new, removed=removed)
    assert told.startswith("Nothing was changed in long-term memory. Not saved (")
    assert repr(new) in told
    assert old in await chat.tool("memory_show")


@pytest.mark.parametrize("content", ["(nothing)", "x" * 9_000])
async def test_a_save_that_is_no_memory_is_refused(chat, content):
    told = await chat.tool("memory_save", content=content)
    assert "Saved" not in told
    assert (await chat.host.events("memory.long_term")) == []


async def test_a_save_of_what_is_there_already_makes_no_new_version(chat):
    await chat.tool("memory_save", content="- A")
    assert "already says exactly this" in await chat.tool("memory_save", content="- A\n")
    assert len(await chat.host.events("memory/seal")) == 2


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
    await chat.tool("memory_save", content="- A")
    assert "/memory undo" in await chat.tool("memory_clear")
    await chat.host.channel.ask("/memory undo")
    assert "A (today)" in await chat.host.channel.ask("/memory")


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


async def test_a_numbered_list_of_what_is_known_changes_nothing(tmp_path):
    numbered = "# Memory\n1. I live in Rome\n2) My sister is called Anna"
    model = ScriptedModel(
        [says("ok"), says("ok"), calls(("memory_save", {"content": numbered})), says("done")]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("Remember that I live in Rome")
        await host.channel.ask("Remember that my sister is called Anna")
        await host.channel.ask("tidy up")
        [result] = [e for e in await host.tape() if e.kind == "tool_result"]
        listed = await host.channel.ask("/memory")
    assert result.payload["content"] == "Long-term memory already says exactly this."
    assert "2 facts" in listed


async def test_very_many_new_lines_are_refused_before_each_is_compared(tmp_path):
    lines = "\n".join(f"- item {number}" for number in range(400))
    model = ScriptedModel(
        [
            calls(("memory_save", {"content": lines}), ("memory_daily", {"content": lines})),
            says("x"),
        ]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("save all that")
        results = [e.payload["content"] for e in await host.tape() if e.kind == "tool_result"]
    assert len(results) == 2
    assert all("400 new lines" in result for result in results)


async def test_tomorrow_is_counted_from_the_day_where_the_person_is(tmp_path):
    """At ten in the evening in London it is the next day in Tokyo."""
    save = {"content": "- The user's exam is on 2026-02-12"}
    model = ScriptedModel([calls(("memory_save", save)), says("ok")])
    clock = ManualClock(datetime(2026, 2, 10, 22, tzinfo=UTC))
    bounds = Bounds(timezone="Asia/Tokyo")
    async with session_host(tmp_path, model, bounds=bounds, clock=clock) as host:
        await host.channel.ask("My exam is tomorrow.")
        assert "exam is on 2026-02-12" in await host.channel.ask("/memory")
