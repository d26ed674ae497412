"""What a consolidation reads of the assistant names the tools that it used."""

from __future__ import annotations

from bot.memory.records.transcript import render_transcript
from bot.tape.entries import TapeEntry, message


def test_an_answer_names_the_tools_that_it_rests_on():
    def calls(*names: str, content: str = "") -> TapeEntry:
        made = [{"id": name, "name": name, "arguments": "{}"} for name in names]
        return TapeEntry(0, "tool_call", {"content": content, "calls": made}, {})

    talk = [
        message("user", "when was it?"),
        calls("tape.search"),
        calls("memory.recall", "tape.search"),
        message("assistant", "In May."),
        message("user", "thanks"),
        message("assistant", "Gladly."),
        calls("memory.save", content="I keep that."),
        message("assistant", "Done."),
    ]
    said = [line.partition("] ")[2] for line in render_transcript(talk)]
    assert said == [
        "USER (user): when was it?",
        "ASSISTANT [tools: tape.search, memory.recall]: In May.",
        "USER (user): thanks",
        "ASSISTANT: Gladly.",
        "ASSISTANT [tools: memory.save]: I keep that.",
        "ASSISTANT: Done.",
    ]
