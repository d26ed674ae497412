"""What the model's tools for memory, the tape, problems and sub-tasks find, change and refuse in a chat."""

from __future__ import annotations

from typing import Any

import pytest

from bot.agent.subtask import TASK_RUN
from bot.agent.tools import recall
from bot.llm.base import ModelRequest
from bot.tape.codec import decode_line
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from tests.bot.agent.telling import (
    BOB,
    DAY,
    GROUP,
    ToolChat,
    results,
    say,
    talk,
)

MAIL = "From: Eva\nSubject: Trip\n\nI am moving to Madrid in June.\nBest,\nEva"
MEMBER = {**GROUP, "sender": BOB, "role": "member"}


def add(*texts: str) -> list[dict[str, Any]]:
    return [{"op": "add", "text": text} for text in texts]


def change(fact: int, text: str, *ended: int) -> list[dict[str, Any]]:
    return [{"op": "change", "facts": [fact], "text": text}, *end(*ended)]


def end(*facts: int) -> list[dict[str, Any]]:
    return [{"op": "end", "facts": [fact]} for fact in facts]


class Chat(ToolChat):
    async def save(self, said: str, changes: list[dict[str, Any]], **who: Any) -> str:
        return await self.call_as(who, "memory_save", said, changes=changes)

    async def facts(self) -> list[str]:
        """Return the facts that the next prompt shows, with their numbers."""
        told = await self.call("memory_show")
        return [line for line in told.splitlines() if line.startswith("- [")]


@pytest.fixture
async def chat(tmp_path):
    chat = Chat()
    bounds = HostLimits(retention_days=3)
    async with session_host(tmp_path, chat.model, bounds=bounds) as chat.host:
        yield chat


async def test_a_save_that_is_not_the_persons_own_or_too_much_keeps_nothing(chat):
    kiel = "I live in Kiel with @[Bob_Smith]"
    said = f"Eva wrote me!\n\n{MAIL}\n\n{kiel}{' and walk' * 40}."
    quoted = [{"op": "add", "text": "Madrid", "quotes": ["I am moving to Madrid in June"]}]
    assert "Saved" not in await chat.save(said, quoted)
    quoted = [{"op": "add", "text": "It is Kiel.", "quotes": ["I live in Kiel with @Bob"]}]
    assert "Saved" in await chat.save(said, quoted)
    many = add(*map(str, range(400)))
    assert "these are 400 changes" in await chat.save("Walks help me.", many)
    told = await chat.save("I live in Oslo now", change(1, "I live in Oslo"), **MEMBER)
    assert "only an owner may change or end facts" in told
    [fact] = await chat.facts()
    assert fact.endswith(f'] On 10 February 2026 the user said: "{kiel}"')


async def test_recall_finds_what_was_said_with_date_speaker_entry_and_neighbours(chat):
    await say(chat.host, "I was in Lisbon.")
    chat.host.clock.advance(2 * DAY)
    said = "My sister Beatrix plays the cello."
    await talk(chat.host, (said,), ("/new now",))
    await say(chat.host, "the secret cello is aleph", chat="2")
    for _ in range(2):  # what was looked up is not found again
        found = await chat.call("memory_recall", "who plays?", query="cello", kind="messages")
        number = next(e.id for e in await chat.host.tape() if e.payload.get("content") == said)
        first, before, after = found.splitlines()
        assert first == f"- 2026-02-12 10:00, Ada [#{number}]: {said}"
        assert before.startswith("  before: 2026-02-10 10:00, tapebot [#")
        assert after.startswith("  after: 2026-02-12 10:00, tapebot [#")
    await say(chat.host, "tea of Bob", sender=BOB)
    hits = await chat.call("memory_recall", query="tea", who="bob")
    assert hits.splitlines()[0].endswith("tea of Bob")
    for wanted in ({"kind": "history"}, {"query": "zebra"}):
        assert (
            await chat.call("memory_recall", **{"query": "tea", **wanted}) == "No matching records."
        )


async def test_recall_marks_what_was_pasted_what_has_ended_and_an_unfinished_search(
    chat, monkeypatch
):
    await say(chat.host, f"Can you answer this?\n\n{MAIL}")
    found = await chat.call("memory_recall", query="moving to Madrid in June")
    assert "quoted:" in next(line for line in found.splitlines() if "Madrid" in line)
    old = "The puppy comes on January 9."
    await chat.save(old, add(old))
    await say(chat.host, "/memory edit 1 The puppy comes on January 16.")
    monkeypatch.setattr(recall, "_PATIENCE", 0)
    found = await chat.call("memory_recall", query="puppy comes")
    assert found.startswith("Not all is found yet")
    marked = [line for line in found.splitlines() if "(some of it no longer holds)" in line]
    assert [line.partition(": ")[2] for line in marked] == [old]


async def test_a_handoff_by_name_sets_aside_what_was_said_before_the_running_turn(chat, tmp_path):
    await say(chat.host, "We talk of the trip to Lisbon.")
    handoff = {"name": "garden/plan", "summary": "It is booked.", "next_steps": ["Plan the garden"]}
    assert "Handed off" in await chat.call("tape_handoff", "now the garden", **handoff)
    [made] = await chat.host.events("garden/plan")
    told = ("summary", "next_steps", "owner", "reason")
    wanted = ["It is booked.", ["Plan the garden"], "assistant", {"code": "asked_by_name"}]
    assert [made.data[one] for one in told] == wanted
    # The running turn is whole, and so are its calls.
    system, *history = chat.model.requests_for()[-1].messages
    assert [m["role"] for m in history] == ["user", "assistant", "tool"]
    assert "It is booked." in system["content"]
    await say(chat.host, "and then?")
    history = str(chat.model.requests_for()[-1].messages[1:])
    assert "Lisbon" not in history
    assert "now the garden" in history
    # The boundary and the tool's result are one append.
    raw = [
        line
        for path in (tmp_path / "tapes").glob("*.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    assert [
        one.more
        for one in map(decode_line, raw)
        if one.entry.id == made.id and one.entry.name == made.name
    ] == [1]
    phases = await chat.call("memory_recall", kind="phases", query="booked")
    assert (
        phases
        == f"- 2026-02-10 10:00, garden/plan [#{made.id}]: It is booked. Next: Plan the garden"
    )


@pytest.mark.parametrize(
    ("name", "who", "more"),
    [(one, {}, {}) for one in ("session/new", "Memory/open", "problem/1", "", 'a"b', "x" * 65)]
    + [("phase", MEMBER, {}), ("phase", {}, {"next_steps": ["step " * 1_000]})],
)
async def test_a_handoff_of_another_meaning_or_of_a_member_sets_nothing_aside(
    chat, name, who, more
):
    told = await chat.call_as(who, "tape_handoff", "do it", name=name, summary="x", **more)
    assert "only an owner" in told if who else told.startswith("Not done") or "are wrong" in told
    assert await chat.host.events(name) == []


async def note(
    chat: ToolChat, kind: str, text: str = "", who: dict[str, Any] | None = None, **more
) -> str:
    """Have the model note something, or do something with a problem; what it wants is done then."""
    told = await chat.call_as(who or {}, "problem_note", "do it", op=kind, text=text, **more)
    await say(chat.host, "/status")
    return told


async def test_problems_are_opened_noted_and_closed_once_the_answer_is_given(chat):
    assert "'Taxes' (p1) is opened once you have answered" in await note(chat, "open", "Taxes")
    for kind, text, why in (
        ("must", "be done by May", ""),
        ("ask", "which year?", ""),
        ("draft", "Dear office", "letter"),
    ):
        assert await note(chat, kind, text, why=why) == "Noted."
    listed = await note(chat, "list")
    assert listed.startswith("p1: Taxes (worked on now, used 2026-02-10)\n")
    assert all(one in listed for one in ("must: be done by May", "draft letter: Dear office"))
    assert await note(chat, "drop", "Which year?") == "Dropped."
    assert "no note says this" in await note(chat, "drop", "which year?")
    await note(chat, "open", "Trip")
    assert "Dear office" not in await note(chat, "list")  # of another it tells the summary
    assert await note(chat, "complete", "taxes") == "'Taxes' is completed."
    assert "is completed: make a new one" in await note(chat, "open", "p1")
    assert "only an owner" in await note(chat, "open", "general", {**MEMBER, "chat": "1"})
    assert "'Trip' will be paused once" in await note(chat, "pause")
    await talk(chat.host, ("/problem", "**general**: active", "Trip: paused"))
    assert "like a password" in await note(chat, "must", "the password is hunter2-Xy77!")


CALL = {"query": "Find out who plays the cello.", "aside": True}
RUN = tool_call_reply(("memory_recall", CALL))
PHASES = tool_call_reply(("memory_recall", {"kind": "phases"}))


def is_task(request: ModelRequest) -> bool:
    return "working alone on one sub-task" in str(request.messages[0]["content"])


async def test_its_steps_do_not_reach_the_conversation_and_its_result_does(tmp_path):
    look_up = tool_call_reply(("memory_recall", {"query": "cello"}), text="let me look")
    changing = tool_call_reply(
        ("memory_save", {"changes": [{"op": "add", "text": "owned"}]}),
        ("tape_handoff", {"name": "phase", "summary": "x"}),
        ("memory_recall", CALL),
    )
    steps = [text_reply("nice"), RUN, look_up, changing, text_reply("Beatrix does.")]
    model = ScriptedModel([*steps, text_reply("Your sister."), text_reply("Bye.")])
    async with session_host(tmp_path, model) as host:
        await talk(host, ("/memory add The cat is Mimi",), ("/new now",))
        await talk(host, ("My sister Beatrix plays the cello.",), ("who plays?", "Your sister."))
        assert await results(host) == ["Beatrix does."]
        assert [call["name"] for e in await host.tape() for call in e.calls] == ["memory_recall"]
        assert await host.events("phase") == []
        await say(host, "thanks")
        [audit] = await host.events(TASK_RUN)
        assert (audit.data["steps"], audit.data["status"]) == (3, "ok")
        assert "Usage: 7 model calls" in await say(host, "/status")
    tasks = [one for one in model.requests if is_task(one)]
    system, asked = tasks[0].messages
    assert "The cat is Mimi" in system["content"]
    assert asked["content"] == f"[2026-02-10 10:00, tapebot] {CALL['query']}"
    assert "My sister Beatrix plays the cello." in tasks[1].messages[-1]["content"]
    # It can read and change nothing.
    assert [tool.name for tool in tasks[0].tools] == ["memory_recall"]
    refused = [m["content"] for m in tasks[2].messages if m["role"] == "tool"][1:]
    assert [text.startswith("There is no tool") for text in refused] == [True, True, False]
    assert "arguments of memory_recall are wrong" in refused[2]
    assert "let me look" not in str(model.requests_for()[-1].messages)


async def test_one_that_never_ends_is_bounded(tmp_path):
    def step(request: ModelRequest):
        if is_task(request):
            return PHASES
        return RUN if request.messages[-1]["role"] == "user" else text_reply("ok")

    model = ScriptedModel(step)
    async with session_host(tmp_path, model, bounds=HostLimits(max_steps=4)) as host:
        assert await say(host, "go") == "ok"
        assert await results(host) == ["The sub-task came to no result (model calls: 4)."]
    tasks = [one for one in model.requests if is_task(one)]
    assert [one.tool_choice for one in tasks] == ["auto", "auto", "auto", "none"]
