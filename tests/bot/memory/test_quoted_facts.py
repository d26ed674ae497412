"""A fact is what a person said, until a judge or a person says that a model's sentence for it holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bot.bus import Sender
from bot.llm.base import ModelReply, ModelRequest
from bot.runtime.sessions.fact_verifier import FACTS_JUDGED_EVENT
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    judgement_reply,
    text_reply,
    tool_call_reply,
)
from tests.bot.agent.telling import pressed, say

HOME = "person:fake:7"
MOVED = "I moved to Oslo, and both cats came along."
ROME = "The user lives in Rome with two cats."
OSLO = "The user lives in Oslo with two cats."

Ruling = Callable[[dict[str, Any]], str | tuple[str, list[int]]]


def saving(*turns: list[dict[str, Any]] | None, ruling: Ruling | None = None) -> ScriptedModel:
    """A model that saves changes, a turn at a time, and judges if there is a ruling."""
    steps = []
    for changes in turns:
        steps += [tool_call_reply(("memory_save", {"changes": changes}))] if changes else []
        steps.append(text_reply("saved"))
    left = iter(steps)
    judgement = None if ruling is None else lambda request: judgement_reply(request, ruling)
    return ScriptedModel(lambda _: next(left, text_reply("ok")), judgement=judgement)


async def judged(host: Host, count: int = 1) -> str:
    """Let a minute pass, and wait until the judge has ruled this often; return what memory says."""
    await host.bus.drain()
    host.clock.advance(60)
    found = await host.events("memory.facts", HOME)
    while sum(one.data["author"] == "judge" for one in found) < count:
        found = await host.wait_for_event("memory.facts", len(found) + 1, session=HOME)
    return await host.channel.ask("/memory")


def prompt_of(model: ScriptedModel) -> str:
    return str(model.requests_for("turn")[-1].messages)


async def test_without_a_judge_a_fact_is_what_was_said_with_its_day_wherever_it_is_shown(tmp_path):
    lie = fact_change("The user hates oysters.", "i DON'T like  oysters - at all")
    model = saving([lie])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("Hm. I don’t like oysters — at all! And you?")
        said = "I don’t like oysters — at all!"
        for command in ("/memory", "/memory why 1", "/memory search oysters"):
            answer = await host.channel.ask(command)
            assert f"10 February 2026 you said: “{said}”" in answer, command
        assert "hates" not in await host.channel.ask("/memory")
        assert "The model's sentence for it: The user hates oysters." in await host.channel.ask(
            "/memory why 1"
        )
        await host.channel.ask("/new now")
        await host.channel.ask("Hello.")
        assert f'On 10 February 2026 the user said: "{said}"' in str(
            model.requests_for("turn")[-1].messages
        )
        assert "hates" not in prompt_of(model)


@pytest.mark.parametrize(
    ("message", "quote", "why"),
    [
        ("I like tea.", "I like coffee", "the nearest is 'I like tea.'"),
        ("I like art.", "I like ar", "the nearest is"),
        ("What do you think?\n> I like coffee a lot", "I like coffee a lot", "not the user's own"),
    ],
    ids=["nobody said it", "half a word", "quoted"],
)
async def test_what_no_person_said_in_their_own_words_is_refused_with_the_nearest_words(
    tmp_path, message, quote, why
):
    model = saving([fact_change("The user likes coffee.", quote)])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(message)
        assert "coffee" not in await host.channel.ask("/memory")
    [result] = [one for one in model.requests_for()[-1].messages if one["role"] == "tool"]
    assert why in str(result["content"])


async def test_forwarded_text_is_no_evidence_and_its_denial_keeps_what_it_denies(tmp_path):
    said = "Lies! I never paid."
    model = saving([fact_change("The user paid.", "I paid at once")], [fact_change("No.", said)])
    async with session_host(tmp_path, model) as host:
        await say(host, "", quote="He told us: I paid at once.")
        assert "paid" not in await host.channel.ask("/memory")
        await say(host, said, quote="You accepted the offer.")
        assert f"“{said}” (answering: “You accepted the offer.”)" in await host.channel.ask(
            "/memory why 1"
        )


@pytest.mark.parametrize(
    ("ruling", "shown", "hidden"),
    [
        ("supported", OSLO, "you said"),
        ("not_supported", f"you said: “{MOVED}”", OSLO),
        ("other_person", f"you said: “{MOVED}”", OSLO),
        ("not_stated", "Nothing yet", "Oslo"),
    ],
)
async def test_the_judge_makes_a_sentence_a_fact_or_leaves_the_quotation(
    tmp_path, ruling, shown, hidden
):
    model = saving([fact_change(OSLO, MOVED)], ruling=lambda _: ruling)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(MOVED)
        memory = await judged(host)
        assert shown in memory
        assert hidden not in memory
        assert "the judge finds" in await host.channel.ask("/memory why 1")
        assert len(model.requests_for("judgement")) == 1
        assert len(model.requests_for("turn")) == 2
    [asked] = model.requests_for("judgement")
    [claim] = [json.loads(line) for line in str(asked.messages[-1]["content"]).splitlines()]
    assert claim["claim"] == OSLO
    assert claim["said"][0]["words"] == MOVED


async def test_a_change_ends_what_it_names_with_the_judges_yes_and_undo_brings_it_back(tmp_path):
    change = fact_change(OSLO, MOVED, op="change", facts=[1])
    model = saving([change], ruling=lambda _: "supported")
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(f"/memory add {ROME}")
        await host.channel.ask(MOVED)
        memory = await judged(host)
        assert OSLO in memory
        assert ROME not in memory
        assert f"It replaced **1.** {ROME}" in await host.channel.ask("/memory why 2")
        assert "replaced by **2.**" in await host.channel.ask("/memory why 1")
        await host.channel.ask("/memory undo")
        memory = await host.channel.ask("/memory")
        assert ROME in memory
        assert OSLO not in memory


@pytest.mark.parametrize(
    "ruling",
    [None, lambda _: "not_supported", lambda _: ("supported", [])],
    ids=["no judge", "rejected", "does not end it"],
)
async def test_until_then_both_stand_the_newer_first(tmp_path, ruling):
    change = fact_change(OSLO, MOVED, op="change", facts=[1])
    model = saving([change], ruling=ruling)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(f"/memory add {ROME}")
        await host.channel.ask(MOVED)
        memory = await (judged(host) if ruling is not None else host.channel.ask("/memory"))
        assert ROME in memory
        assert "Oslo" in memory
        assert ruling is not None or memory.index("Oslo") < memory.index("Rome")


async def test_facts_are_merged_and_split_all_or_nothing(tmp_path):
    said = ["Mia is 4 and Ben is 7.", "Ben is 8 now."]
    both = "The user's children are Mia (4) and Ben (7)."
    split = [
        fact_change("Mia is 4.", said[0], op="change", facts=[1]),
        fact_change("Ben is 8.", said[1], op="change", facts=[1]),
    ]
    merge = [fact_change("Mia is 4, Ben is 8.", said[1], op="change", facts=[2, 3])]
    rulings = iter(["supported"] * 3 + ["supported", "supported"])
    model = saving([fact_change(both, said[0])], split, merge, ruling=lambda _: next(rulings))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(said[0])
        assert both in await judged(host)
        await host.channel.ask(said[1])
        memory = await judged(host, 2)
        assert "Mia is 4." in memory
        assert "Ben is 8." in memory
        assert both not in memory
        await host.channel.ask("Put it together.")
        memory = await judged(host, 3)
        assert "Mia is 4, Ben is 8." in memory
        assert "**2.**" not in memory
        assert said[0] in await host.channel.ask("/memory why 4")


async def test_a_part_that_does_not_hold_keeps_the_whole_that_was_split(tmp_path):
    said = "Mia is 4 and Ben is 7."
    split = [
        fact_change("Mia is 4.", said, op="change", facts=[1]),
        fact_change("Ben is 9.", said, op="change", facts=[1]),
    ]
    model = saving(
        split, ruling=lambda one: "not_supported" if "9" in one["claim"] else "supported"
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add Mia is 4, Ben is 7.")
        await host.channel.ask(said)
        memory = await judged(host)
        assert "Mia is 4, Ben is 7." in memory
        assert "Ben is 9" not in memory


@pytest.mark.parametrize("yes", [True, False])
async def test_without_a_judge_the_person_says_whether_a_fact_is_over(tmp_path, yes):
    model = saving([fact_change("", "J'ai arrêté le café.", op="end", facts=[1])])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add three coffees a day")
        await host.channel.ask("J'ai arrêté le café.")
        commands = [command for _, command in pressed(host)]
        assert "Three coffees" in await host.channel.ask("/memory")
        assert "It may end **1.** Three coffees" in await host.channel.ask("/memory pending")
        await host.channel.ask(commands[0 if yes else 1])
        assert ("Three coffees" in await host.channel.ask("/memory")) is not yes
        assert "Nothing is pending" in await host.channel.ask("/memory pending")
        await host.channel.ask("/memory undo")
        assert ("Three coffees" in await host.channel.ask("/memory")) is True


async def test_the_same_words_are_one_fact_and_what_was_removed_stays_removed(tmp_path):
    once, again = fact_change("The user sails.", "I sail."), fact_change("Sailing.", "I sail.")
    model = saving([once], [again], [again])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I sail.")
        await host.channel.ask("Do you remember?")
        assert (await host.channel.ask("/memory")).count("sail") == 1
        await host.channel.ask("/memory undo")
        await host.channel.ask("And now?")
        assert "sail" not in await host.channel.ask("/memory")


async def test_one_request_of_the_judge_rules_on_the_claims_of_a_minute(tmp_path):
    """Names that differ are two facts, and with the judge's yes a fact ends."""
    said = ("Ben gets insulin in the morning.", "Mia gets insulin in the morning.")
    ends = [fact_change("", "I quit coffee.", op="end", facts=[1])]
    model = saving(*([fact_change(one, one)] for one in said), ends, ruling=lambda _: "supported")
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add three coffees a day")
        for one in (*said, "I quit coffee."):
            await host.channel.ask(one)
            host.clock.advance(15)
        assert not model.requests_for("judgement")
        memory = await judged(host)
        assert "it ended" in await host.channel.ask("/memory why 1")
    assert len(model.requests_for("judgement")) == 1
    assert all(one in memory for one in said)
    assert "coffee" not in memory


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_claim_is_judged_once_whatever_chat_is_open_or_clock_set_back(tmp_path, restarted):
    model = saving([fact_change(OSLO, MOVED)], None, ruling=lambda _: "supported")
    async with session_host(tmp_path, model) as host:
        host.clock.advance(3600)
        await host.channel.ask(MOVED)
        if not restarted:
            await host.channel.ask("Hello.", chat="2")
            assert OSLO in await judged(host)
            host.clock.advance(60)
    async with session_host(tmp_path, model) as host:
        await host.channel.send("Hello.", message_id="again")
        await host.wait_for_event(FACTS_JUDGED_EVENT)
    assert len(model.requests_for("judgement")) == 1


async def test_a_short_answer_is_kept_with_what_it_answers(tmp_path):
    steps = iter(
        [
            text_reply("Shall I take the aisle or the window?"),
            tool_call_reply(
                ("memory_save", {"changes": [fact_change("The user likes windows.", "the second")]})
            ),
            text_reply("saved"),
        ]
    )
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("Book a flight.")
        await host.channel.ask("Yes, the second.")
        memory = await host.channel.ask("/memory")
    assert "“Yes, the second.” (answering: “Shall I take the aisle or the window?”)" in memory


async def test_an_edited_message_puts_what_rests_on_it_before_the_judge_again(tmp_path):
    model = saving(
        [fact_change("The user's cat is called Mo.", "My cat is called Mo.")],
        ruling=lambda one: "supported" if "Mo" in one["said"][0]["words"] else "not_supported",
    )
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("My cat is called Mo.", message_id="cat-1")
        await host.channel.wait_for_answer(sent)
        assert "The user's cat is called Mo." in await judged(host)
        await host.channel.send("My cat is called Flo.", edits=sent.id, message_id="cat-1.e1")
        memory = await judged(host, 2)
        assert "called Mo" not in memory
        assert "you said: “My cat is called Flo.”" in memory


async def test_in_a_group_a_quotation_names_who_said_it_and_nobody_ends_anothers_fact(tmp_path):
    bob = Sender("8", "Bob")
    model = saving(
        [fact_change("Bob likes jazz.", "I like jazz.")],
        [fact_change("", "No jazz any more.", op="end", facts=[1])],
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I like jazz.", private=False, sender=bob)
        memory = await host.channel.ask("/memory", private=False)
        assert "Bob (8) said: “I like jazz.”" in memory
        await host.channel.ask("No jazz any more.", private=False)
        assert "jazz" in await host.channel.ask("/memory", private=False)
        assert "Nothing is pending" in await host.channel.ask("/memory pending", private=False)


async def test_a_consolidation_learns_quotations_that_the_judge_rules_on(tmp_path):
    reply = consolidation_reply("[2026-02-10 10:00] Ada moved.", fact_change(OSLO, "moved to Oslo"))
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda _: reply,
        judgement=lambda request: judgement_reply(request, lambda _: "supported"),
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(MOVED)
        await host.channel.ask("/new")
        assert OSLO in await judged(host)
        assert MOVED in await host.channel.ask("/memory why 1")
    assert "Today is Tuesday 2026-02-10" in str(model.requests_for("consolidation")[0].messages)


@pytest.mark.parametrize("about", ["home", ""], ids=["of one subject", "about the like"])
async def test_facts_that_nobody_named_are_the_judges_question_and_no_others(tmp_path, about):
    """What it was not shown it does not end, whatever number it gives."""
    adds = [
        [fact_change("Plays the oboe.", "I play the oboe.")],
        [fact_change("The user lives in Lyon.", "I live in Lyon.", about=about)],
        [fact_change("The user lives in Metz.", "I live in Metz.", about=about)],
    ]
    model = saving(
        *adds,
        ruling=lambda one: (
            "supported",
            [1, *(other["number"] for other in one.get("others", ()))],
        ),
    )
    async with session_host(tmp_path, model) as host:
        for number, said in enumerate(
            ("I play the oboe.", "I live in Lyon.", "I live in Metz."), 1
        ):
            await host.channel.ask(said)
            memory = await judged(host, number)
    assert "Metz" in memory
    assert "Lyon" not in memory
    assert "oboe" in memory


async def test_a_secret_is_not_learned_unasked(tmp_path):
    said = "my password is hunter2hunter"
    async with session_host(tmp_path, saving([fact_change("A password.", said)])) as host:
        await host.channel.ask(said)
        assert "hunter2" not in await host.channel.ask("/memory")


def beside(text: str, *changes: dict[str, Any]) -> ModelReply:
    """Return a reply that saves changes and says that its text is the whole answer."""
    saves = tool_call_reply(("memory_save", {"changes": list(changes), "answered": True}))
    return replace(saves, content=text)


async def test_an_answer_beside_a_save_ends_the_turn_with_one_call_of_the_model(tmp_path):
    tea = fact_change("The user likes tea.", "I like tea.")
    model = ScriptedModel([beside("Tea it is.", tea), text_reply("hello")])
    async with session_host(tmp_path, model) as host:
        assert await host.channel.ask("I like tea.") == "Tea it is."
        assert len(model.requests_for("turn")) == 1
        assert "I like tea." in await host.channel.ask("/memory")
        await host.channel.ask("And?")
    shown = [one for one in model.requests_for("turn")[-1].messages if one["role"] != "system"]
    assert [one["role"] for one in shown] == ["user", "assistant", "tool", "assistant", "user"]
    assert str(shown).count("Tea it is.") == 1


async def test_an_answer_beside_what_is_not_saved_is_not_given(tmp_path):
    """All that it saves must be saved: else the model learns why, and answers anew."""
    lie = fact_change("The user hates tea.", "I hate tea.")
    tea = fact_change("The user likes tea.", "I like tea.")
    model = ScriptedModel([beside("Both noted.", tea, lie), text_reply("You like tea.")])
    async with session_host(tmp_path, model) as host:
        assert await host.channel.ask("I like tea.") == "You like tea."
        said = [one.payload for one in await host.tape() if one.payload.get("role") == "assistant"]
    assert "Both noted." not in str(said)
    assert "Not saved" in str(model.requests_for("turn")[-1].messages[-1]["content"])


async def test_a_judge_says_what_is_no_standing_fact_but_not_of_what_a_person_pinned(tmp_path):
    facts = {
        "I walked to the lake today.": "The user walked to the lake.",
        "I bought a blue lamp today.": "The user bought a blue lamp.",
    }
    changes = [{**fact_change(told, said), "standing": True} for said, told in facts.items()]

    pinned = False

    def plain(request: ModelRequest) -> ModelReply:
        if not pinned:
            return text_reply("Not now.")
        (call,) = judgement_reply(request, lambda _: "supported").tool_calls
        rulings = json.loads(call.arguments)["rulings"]
        return tool_call_reply(
            ("judge_claims", {"rulings": [{**one, "standing": False} for one in rulings]})
        )

    steps = iter((tool_call_reply(("memory_save", {"changes": changes})), text_reply("Saved.")))
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), judgement=plain)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(" ".join(facts))
        assert (await host.channel.ask("/memory")).count("📌") == 2
        host.clock.advance(60)
        await host.wait_for_event(FACTS_JUDGED_EVENT)  # which had no answer of the judge
        await host.channel.ask("/memory pin 2")
        pinned = True
        host.clock.advance(3_600)
        await host.channel.ask("Hello.")
        memory = await judged(host)
    assert "The user walked to the lake." in memory
    assert memory.count("📌") == 1
    assert "📌 The user bought a blue lamp." in memory


async def test_one_half_of_a_split_is_not_ended_by_the_words_of_the_other(tmp_path):
    pets = fact_change("The user has a dog and a rabbit.", "We have a dog and a rabbit.")
    said = "The rabbit is with my sister now."
    halves = [
        fact_change(text, said, op="change", facts=[1])
        for text in ("The user has a dog.", "The user's rabbit is with the user's sister.")
    ]

    def ends_all(claim: dict[str, Any]) -> tuple[str, list[int]]:
        shown = (*claim.get("replaces", ()), *claim.get("others", ()))
        return "supported", [one["number"] for one in shown]

    async with session_host(tmp_path, saving([pets], halves, ruling=ends_all)) as host:
        await host.channel.ask("We have a dog and a rabbit.")
        await judged(host)
        await host.channel.ask(said)
        memory = await judged(host, 2)
    assert "The user has a dog." in memory
    assert "The user's rabbit is with the user's sister." in memory
    assert "a dog and a rabbit" not in memory
