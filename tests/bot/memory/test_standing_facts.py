"""What must never be forgotten is in every prompt; what has no room is counted, found, and comes back by use."""

from __future__ import annotations

import pytest
from folded import fold_entries
from hypothesis import given
from hypothesis import strategies as st

from bot.llm.base import ModelRequest
from bot.memory.gate.batch_decision import MOST_STANDING
from bot.memory.records.fact import Fact
from bot.memory.session.linking.scope_registry import person_scope
from bot.memory.session.state.fact_markdown import facts_room, select_facts
from bot.testing.host import Host, HostLimits, session_host
from tests.bot.agent.telling import ToolChat, say, shown, tool_chat

ALLERGY = {
    "op": "add",
    "text": "Théo, the user's son, has a severe peanut allergy.",
    "quotes": ["Théo has a severe peanut allergy"],
    "standing": True,
}
CELLO = "My cello teacher is called Beatrix, and she teaches in the old school behind the lake, every Monday"
TRIVIAL = "We passed the red house number {n} on a walk along the canal that day"


def memory_of(request: ModelRequest) -> str:
    return (
        str(request.messages[0]["content"]).partition("\n<memory>\n")[2].partition("</memory>")[0]
    )


async def tell(host: Host, *lines: str) -> None:
    for line in lines:
        await say(host, line)


@pytest.mark.slow
async def test_two_hundred_trivial_facts_later_the_prompt_has_what_a_cook_must_know(tmp_path):
    async with tool_chat(tmp_path) as chat:
        host = chat.host
        await tell(host, "/memory add I am coeliac")
        assert "In every prompt" in await say(host, "/memory pin 1")
        await chat.call("memory_save", "Théo has a severe peanut allergy", changes=[ALLERGY])
        await tell(host, *(f"/memory add {TRIVIAL.format(n=n)}" for n in range(200)))
        await tell(host, "/new now", "What could I cook for us?")
        shown = memory_of(chat.model.requests_for()[-1])
    assert "[1] I am coeliac" in shown
    assert "severe peanut allergy" in shown
    assert "house number 199" in shown
    assert "house number 3 " not in shown
    left = 202 - shown.count("\n- [")
    assert f"({left} more: look them up)" in shown
    assert 1_500 < len(shown) // 4 < 2_500


async def test_what_has_no_room_is_found_by_any_message_and_has_room_from_then_on(tmp_path):
    chat = ToolChat()
    small = HostLimits(context_tokens=4_000)
    async with session_host(tmp_path, chat.model, bounds=small) as chat.host:
        await tell(chat.host, f"/memory add {CELLO}")
        await tell(chat.host, *(f"/memory add {TRIVIAL.format(n=n)}" for n in range(30)))
        await tell(chat.host, "/new now", "Thanks for the walk")
        assert "Beatrix" not in shown(chat.model)
        chat.host.clock.advance(60)
        await tell(chat.host, "The cello lesson went well today.")
        assert "Beatrix" in shown(chat.model).partition("From the tape and memory:")[2]
        await tell(chat.host, "/memory add I like rain", "/new now", "Good night to you")
        memory = memory_of(chat.model.requests_for()[-1])
    assert "Beatrix" in memory
    assert "house number 0 " not in memory


async def test_a_pin_is_listed_undone_taken_off_and_goes_on_with_what_replaces_the_fact(tmp_path):
    async with tool_chat(tmp_path) as chat:
        await tell(chat.host, "/memory add I am coeliac", "/memory pin 1")
        assert "**1.** 📌 I am coeliac" in await say(chat.host, "/memory")
        await tell(chat.host, "/memory undo")
        assert "📌" not in await say(chat.host, "/memory")
        await tell(chat.host, "/memory pin 1", "/memory edit 1 I am coeliac and eat no oats")
        assert "**2.** 📌 I am coeliac and eat no oats" in await say(chat.host, "/memory")
        assert "no longer valid" in await say(chat.host, "/memory pin 1")
        await tell(chat.host, "/memory unpin 2")
        assert "📌" not in await say(chat.host, "/memory")
        assert "no fact" in (await say(chat.host, "/memory pin 9")).lower()


async def test_a_model_marks_what_it_knows_already_but_does_not_fill_the_prompt_with_marks(
    tmp_path,
):
    async with tool_chat(tmp_path) as chat:
        plain = {**ALLERGY, "standing": False}
        await chat.call("memory_save", "Théo has a severe peanut allergy", changes=[plain])
        assert "📌" not in await say(chat.host, "/memory")
        await chat.call("memory_save", "Théo has a severe peanut allergy!", changes=[ALLERGY])
        assert (await say(chat.host, "/memory")).count("📌") == 1
        for start in range(0, MOST_STANDING + 40, 20):
            said = " ".join(
                f"Rule {n} is to answer in rhyme {n}." for n in range(start, start + 20)
            )
            rules = [
                {
                    "op": "add",
                    "text": f"Rhyme {n}.",
                    "quotes": [f"Rule {n} is to"],
                    "standing": True,
                }
                for n in range(start, start + 20)
            ]
            await chat.call("memory_save", said, changes=rules)
        facts = fold_entries(await chat.host.tape(person_scope("fake", "7"))).active()
    assert sum(fact.standing for fact in facts) == MOST_STANDING


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 900), st.integers(0, 9)), max_size=40),
    st.integers(0, 2_000),
)
def test_standing_facts_are_always_kept_and_the_others_within_their_room(drawn, room):
    facts = [
        Fact(n, "x" * length or "y", changed=f"2026-02-1{day}", standing=standing)
        for n, (standing, length, day) in enumerate(drawn, start=1)
    ]
    kept = select_facts(facts, room)
    assert [fact for fact in kept if fact.standing] == [fact for fact in facts if fact.standing]
    assert kept == sorted(kept, key=lambda fact: (not fact.standing, fact.id))
    if any(not fact.standing for fact in kept):
        assert sum(len(fact.text) // 4 for fact in kept) <= room


def test_facts_have_a_share_of_the_window():
    windows = (2_000, 8_000, 32_000, 128_000, 200_000, 1_000_000)
    assert [facts_room(one) for one in windows] == [250, 1_000, 1_000, 2_000, 3_125, 4_000]
