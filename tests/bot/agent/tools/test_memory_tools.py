"""What the model's tools for memory, the tape and problems find, change and refuse, seen from a chat."""

from __future__ import annotations

from typing import Any

import pytest

from bot.agent.tools import recall
from bot.tape.codec import decode_line
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import text_reply, tool_call_reply
from tests.bot.agent.telling import (
    BOB,
    DAY,
    GROUP,
    ToolChat,
    pressed,
    results,
    say,
    talk,
)

MAIL = "From: Eva\nSubject: Trip\n\nI am moving to Madrid in June.\nBest,\nEva"
MEMBER = {**GROUP, "sender": BOB, "role": "member"}
TIDY = "Tidy up what you know about me."


def add(*texts: str) -> list[dict[str, Any]]:
    return [{"op": "add", "text": text} for text in texts]


def change(fact: int, text: str, *ended: int) -> list[dict[str, Any]]:
    """Change a fact, and end others."""
    return [{"op": "change", "fact": fact, "text": text}, *end(*ended)]


def end(*facts: int) -> list[dict[str, Any]]:
    return [{"op": "end", "fact": fact} for fact in facts]


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


async def test_facts_are_added_changed_and_ended_by_their_numbers_in_one_call(chat):
    said = "I live in Rome. I have a car. I like tea."
    await chat.save(said, add("I live in Rome", "I have a car", "I like tea"))
    said = "I live in Oslo now, and I sold the car. I like coffee, too."
    told = await chat.save(said, [*change(1, "I live in Oslo", 2), *add("I like coffee")])
    assert told == (
        "Saved to long-term memory (version 3): [4] I live in Oslo (in place of [1]); [2] has ended; "
        "[5] I like coffee."
    )
    facts = ["[3] I like tea", "[4] I live in Oslo", "[5] I like coffee"]
    assert await chat.facts() == [f"- {one} (2026-02-10)" for one in facts]
    assert "there is no fact 7" in await chat.save("I like tea", end(7))
    assert "Not ended (" in await chat.save("I like rum", end(4))
    assert await chat.facts() == [f"- {one} (2026-02-10)" for one in facts]


async def test_what_is_tidied_up_keeps_everything_that_was_said(chat):
    first = ["Lotte has piano on Wednesdays", "Emil has judo on Fridays", "Jonas is a baker",
             "Jonas works at Bosch"]  # fmt: skip
    await chat.save(". ".join(first), add(*first))
    await say(chat.host, "/new now")
    merged = [*change(1, "; ".join(first[:2]), 2), *change(3, "; ".join(first[2:]), 4)]
    assert "Not" not in await chat.save(TIDY, merged)
    assert len(await chat.facts()) == 2
    await talk(chat.host, ("/memory why 5", *first[:2]))


@pytest.mark.parametrize(
    "changes",
    [
        change(1, "Lotte has piano", 2),
        change(1, "Lotte has piano on Thursdays and Emil has judo", 2),
        change(1, "Lotte has piano on Wednesdays at 9", 2),
        end(1, 2),
    ],
)
async def test_tidying_up_drops_and_changes_nothing_that_was_said(chat, changes):
    first = ["Lotte has piano on Wednesdays at 16:00", "Emil has judo"]
    await chat.save(". ".join(first), add(*first))
    await say(chat.host, "/new now")
    assert "Not " in await chat.save(TIDY, changes)
    left = " ".join(await chat.facts())
    assert all(one in left for one in first)


async def test_a_save_that_is_not_the_persons_own_or_too_much_keeps_nothing(chat):
    said = f"Eva wrote me!\n\n{MAIL}\n\nI live in Kiel."
    assert "Saved" not in await chat.save(said, add("I am moving to Madrid in June"))
    assert "Saved" in await chat.save(said, add("I live in Kiel"))
    concluded = {"op": "conclusion", "text": "Walks help"}
    many = [concluded, *add(*map(str, range(400)))]
    assert "these are 401 changes" in await chat.save("Walks help me.", many)
    told = await chat.save(
        "I live in Oslo now", [concluded, *change(1, "I live in Oslo")], **MEMBER
    )
    assert "only an owner may change or end facts" in told
    assert "Walks" not in await say(chat.host, "/memory beliefs", **GROUP)
    assert [one.partition("] ")[2] for one in await chat.facts()] == ["I live in Kiel (2026-02-10)"]


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
    moved = "The puppy comes on January 16"
    await chat.save(f"{moved} now, not on January 9.", change(1, f"{moved}."))
    monkeypatch.setattr(recall, "_PATIENCE", 0)
    found = await chat.call("memory_recall", query="puppy comes")
    assert found.startswith("Not all is found yet")
    marked = [line for line in found.splitlines() if "(some of it no longer holds)" in line]
    assert [line.partition(": ")[2] for line in marked] == [old]


async def test_one_thing_to_be_forgotten_is_asked_at_a_time_with_buttons(chat):
    """What is confirmed is what was shown."""
    await talk(chat.host, ("My number is 0151 2345678.",), ("My car is a Skoda.",))
    wanted = [("memory_forget", {"what": one}) for one in ("0151 2345678", "Skoda")]
    chat.steps = [tool_call_reply(*wanted), text_reply("I found it.")]
    told = await say(chat.host, "Please forget my number and my car.")
    assert told.startswith("I found it.\n\nThis would be erased for good:")
    assert "0151 2345678" in told
    assert "Skoda" not in told
    assert "one thing at a time" in (await results(chat.host))[1]
    await say(chat.host, pressed(chat.host)[0][1])
    assert "2345678" not in str([e.payload for e in await chat.host.tape()])


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
    told = await chat.call_as(who or {}, "problem_note", "do it", kind=kind, text=text, **more)
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
