"""What the model's tape tools answer, seen from a chat."""

from __future__ import annotations

from typing import Any

import pytest

from bot.bus.messages import Sender
from bot.tape.codec import decode_line
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


class Chat:
    """A chat whose model calls the tool that the test names, and then answers."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.model = ScriptedModel(lambda _: self.steps.pop(0) if self.steps else text_reply("ok"))
        self.host: Host

    async def tool(self, name: str, /, *, text: str = "do it", **arguments: Any) -> str:
        self.steps = [tool_call_reply((name, arguments))]
        await self.host.channel.ask(text)
        return await self.result()

    async def result(self) -> str:
        results = [e for e in await self.host.tape() if e.kind == "tool_result"]
        return str(results[-1].payload["content"])

    async def number(self, said: str) -> int:
        """Id of the entry that says this."""
        return next(e.id for e in await self.host.tape() if e.payload.get("content") == said)


@pytest.fixture
async def chat(tmp_path):
    chat = Chat()
    async with session_host(tmp_path, chat.model) as chat.host:
        yield chat


async def test_a_search_finds_words_with_date_speaker_entry_and_neighbours(chat):
    await chat.host.channel.ask("I was in Lisbon.")
    chat.host.clock.advance(2 * 86_400)
    await chat.host.channel.ask("My sister Beatrix plays the cello.")
    await chat.host.channel.ask("/new now")
    found = await chat.tool(
        "memory_recall", query="cello", kind="messages", text="who plays the cello?"
    )
    number = await chat.number("My sister Beatrix plays the cello.")
    lines = found.splitlines()
    assert lines[0] == f"- 2026-02-12 10:00, Ada [#{number}]: My sister Beatrix plays the cello."
    assert lines[1].startswith("  before: 2026-02-10 10:00, tapebot [#")
    assert lines[2].startswith("  after: 2026-02-12 10:00, tapebot [#")
    # Neither the question, nor what it was searched with, is an answer.
    assert len(lines) == 3


async def test_a_search_has_filters(chat):
    await chat.host.channel.ask("tea on the first day")
    chat.host.clock.advance(5 * 86_400)
    await chat.host.channel.send("tea of Bob", sender=Sender("8", "Bob"))
    await chat.host.channel.ask("tea on a later day")
    recent = await chat.tool("memory_recall", query="tea", kind="messages", days=2)
    assert "- 2026-02-10" not in recent
    assert "later day" in recent
    hits = await chat.tool("memory_recall", query="tea", who="bob")
    assert next(line for line in hits.splitlines() if line[0] == "-").endswith("tea of Bob")
    assert await chat.tool("memory_recall", query="tea", kind="history") == "No matching records."


async def test_a_search_never_shows_another_session(chat):
    await chat.host.channel.ask("the secret is aleph", chat="2")
    assert "aleph" not in await chat.tool("memory_recall", query="secret aleph", kind="messages")
    assert "aleph" not in await chat.host.channel.ask("/tape search aleph secret")


async def test_a_handoff_by_name_sets_aside_what_was_said_before_the_running_turn(chat):
    await chat.host.channel.ask("We talk of the trip to Lisbon.")
    told = await chat.tool(
        "tape_handoff",
        text="now the garden",
        name="garden/plan",
        summary="The trip is booked.",
        next_steps=["Plan the garden"],
    )
    assert "Handed off to garden/plan" in told
    [made] = await chat.host.events("garden/plan")
    asked = await chat.number("now the garden")
    assert made.data == {
        "summary": "The trip is booked.",
        "next_steps": ["Plan the garden"],
        "source": [made.data["source"][0], asked - 1],
        "owner": "assistant",
        "reason": {"code": "asked_by_name"},
        "keep_from": asked,
    }
    assert made.data["source"][0] <= await chat.number("We talk of the trip to Lisbon.")
    # The running turn is whole, and so are its calls.
    system, *history = chat.model.requests_for()[-1].messages
    assert [m["role"] for m in history] == ["user", "assistant", "tool"]
    assert "now the garden" in history[0]["content"]
    assert "The trip is booked." in system["content"]
    await chat.host.channel.ask("and then?")
    system, *history = chat.model.requests_for()[-1].messages
    assert "Lisbon" not in str(history)
    assert "now the garden" in str(history)


async def test_a_handoff_and_its_result_are_one_append(chat, tmp_path):
    await chat.tool("tape_handoff", name="phase", summary="x")
    tape = await chat.host.tape()
    [made] = [e for e in tape if e.name == "phase"]
    assert tape[made.id].kind == "tool_result"
    assert made.meta["turn"] == tape[made.id].meta["turn"]
    files = [file.read_bytes() for file in (tmp_path / "tapes").glob("*.jsonl")]
    lines = [decode_line(line) for file in files for line in file.splitlines()]
    assert [line.more for line in lines if line and line.entry.name == "phase"] == [1]


@pytest.mark.parametrize(
    "name", ["session/new", "Memory/open", "auto_handoff/x", "problem/1", "", 'a"b', "x" * 65]
)
async def test_a_handoff_cannot_take_a_name_that_means_something_else(chat, name):
    told = await chat.tool("tape_handoff", name=name, summary="x")
    assert told.startswith("Not done")
    assert await chat.host.events(name) == []


async def test_in_a_group_only_an_owner_sets_the_conversation_aside(chat):
    chat.steps = [tool_call_reply(("tape_handoff", {"name": "phase", "summary": "x"}))]
    said = await chat.host.channel.send("do it", private=False, role="member")
    await chat.host.channel.wait_for_answer(said)
    assert "only an owner" in await chat.result()
    assert await chat.host.events("phase") == []


async def test_anchors_are_found_by_topic_and_the_newest_first(chat):
    await chat.tool("tape_handoff", name="trip", summary="Lisbon is booked.", next_steps=["pack"])
    await chat.tool("tape_handoff", name="garden", summary="Roses are ordered.")
    newest = await chat.tool("memory_recall", kind="phases")
    places = [newest.index(name) for name in ("garden", "trip", "session/start")]
    assert places == sorted(places)
    assert "memory/" not in newest
    found = await chat.tool("memory_recall", kind="phases", query="Lisbon")
    [trip] = await chat.host.events("trip")
    assert found == f"- 2026-02-10 10:00, trip [#{trip.id}]: Lisbon is booked. Next: pack"
    assert await chat.tool("memory_recall", kind="phases", query="zebra") == "No matching anchors."
