"""What the model's recall tool finds of what was said, and how it shows that."""

from __future__ import annotations

import pytest
from memory_tool_chat import MAIL

from bot.agent.tools import recall


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


async def test_recall_marks_what_was_pasted(chat):
    await chat.host.channel.ask(f"Can you answer this?\n\n{MAIL}")
    found = await chat.tool("memory_recall", query="moving to Madrid in June")
    [line] = [one for one in found.splitlines() if "Madrid" in one]
    assert "quoted:" in line


async def test_recall_of_a_tape_that_is_still_being_indexed_says_that_not_all_was_searched(
    chat, monkeypatch
):
    monkeypatch.setattr(recall, "_PATIENCE", 0)
    await chat.host.channel.ask("The bicycle is green.")
    found = await chat.tool("memory_recall", query="bicycle")
    assert found.startswith("Not all is found yet")
    assert "The bicycle is green." in found


async def test_recall_marks_words_whose_fact_has_ended(chat):
    await chat.host.channel.ask("The puppy comes on January 9.")
    await chat.tool("memory_save", changes=[{"op": "add", "text": "The puppy comes on January 9."}])
    await chat.host.channel.ask("The puppy comes on January 16 now, not on January 9.")
    change = {"op": "change", "fact": 1, "text": "The puppy comes on January 16."}
    assert "January 16" in await chat.tool("memory_save", changes=[change])
    found = await chat.tool("memory_recall", query="puppy comes")
    marked = [line for line in found.splitlines() if "(some of it no longer holds)" in line]
    assert [line.partition(": ")[2] for line in marked] == ["The puppy comes on January 9."]
