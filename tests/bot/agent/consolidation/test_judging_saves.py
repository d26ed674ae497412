"""What the model saved in a turn is judged behind it, and put right where the words do not carry it."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from judged_claims import CLAIM, SAID, always, refuting, until_judged
from waiting import until

from bot.core.telemetry.active_work import current_work
from bot.llm.base import ModelReply, ModelRequest, Usage
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.runtime.sessions.background_run import VERIFICATION
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    PausedStep,
    Script,
    ScriptedModel,
    judgement_reply,
    text_reply,
    tool_call_reply,
)


def saving(text: str, judgement: Script, *, over: int = 0) -> ScriptedModel:
    """A model that saves a text in its first turn, in the place of a fact where one is given."""
    change = {"op": "change", "fact": over} if over else {"op": "add"}
    save = ("memory_save", {"changes": [{**change, "text": text}]})
    steps = iter([tool_call_reply(save), text_reply("saved")])
    return ScriptedModel(lambda _: next(steps, text_reply("ok")), judgement=judgement)


async def test_a_letter_in_view_keeps_no_words_of_the_persons_own_from_being_saved_as_others(
    tmp_path,
):
    """What only the letter says is not theirs, whatever the judge would say."""
    letter = (
        'Got this: "From: G. Patel <g@lets.example> To: Ada. Subject: Rent. Dear Ada, from 1 January the rent goes '
        'up to 1,450. I am also selling the garage. Regards, Gita Patel" Is that allowed?'
    )
    own, others = (
        "The user agreed to a rent of 1,450 from January.",
        "The user is selling the garage.",
    )
    changes = [{"op": "add", "text": text} for text in (own, others)]
    steps = iter(
        [
            text_reply("ok"),
            tool_call_reply(("memory_save", {"changes": changes})),
            text_reply("saved"),
        ]
    )
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), judgement=always("supported"))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(letter)
        await host.channel.ask("OK we accepted the rent, so it's 1450 from January.")
        memory = str(await host.channel.ask("/memory"))
    assert own in memory
    assert others not in memory


async def test_the_judge_sees_the_whole_message_and_what_was_said_since_of_a_fact_that_is_reworded(
    tmp_path,
):
    first = "My physio said it: no hills until February. She is called Ines."
    later = "The knee is fine again, she says, and hills are allowed."
    made = (
        "The user's physio Ines said no hills until February, and now says that hills are allowed."
    )
    steps = iter(
        [
            tool_call_reply(
                ("memory_save", {"changes": [{"op": "add", "text": "No hills until February"}]})
            ),
            text_reply("saved"),
            text_reply("good"),
            tool_call_reply(
                ("memory_save", {"changes": [{"op": "change", "fact": 1, "text": made}]})
            ),
        ]
    )
    asked: list[str] = []

    def rule(request: ModelRequest) -> ModelReply:
        asked.append(str(request.messages[-1]["content"]))
        return judgement_reply(request, lambda _: "supported")

    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), judgement=rule)
    async with session_host(tmp_path, model) as host:
        for said in (first, later, "Tidy up what you know about me."):
            await host.channel.ask(said)
        await until(lambda: any(made in one for one in asked))
    words = next(one for one in asked if made in one)
    assert first in words
    assert later in words


async def test_what_was_merged_is_believed_again_as_it_was_where_the_judge_refutes_the_merger(
    tmp_path,
):
    """And the model is told in the next turn what it had said to be saved."""
    said = "My mum Ewa lives in Leeds. Her birthday is 9 May. She turns 70 next year."
    apart = ["Ewa lives in Leeds", "Her birthday is 9 May", "She turns 70 next year"]
    made = "The user's mum Ewa lives in Leeds; birthday 9 May, she turns 70 next year"
    merged = [
        {"op": "change", "fact": 1, "text": made},
        {"op": "end", "fact": 2},
        {"op": "end", "fact": 3},
    ]
    steps = iter(
        [
            tool_call_reply(
                ("memory_save", {"changes": [{"op": "add", "text": text} for text in apart]})
            ),
            text_reply("saved"),
            tool_call_reply(("memory_save", {"changes": merged})),
        ]
    )

    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), judgement=refuting(made))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(said)
        await host.channel.ask("Tidy up what you know about me.")
        with anyio.fail_after(20):
            # What was saved apart may be judged, too.
            while made in (memory := str(await host.channel.ask("/memory"))):
                await until_judged(host)
        await host.channel.ask("Thanks!")
    for text in apart:
        assert text in memory
    assert made not in memory
    assert "said:" not in memory
    assert f"- {made}" in str(model.requests_for()[-1].messages[-1]["content"])


async def test_no_turn_waits_for_the_judge(tmp_path):
    held = PausedStep(text_reply("never"))
    async with session_host(tmp_path, saving(CLAIM, [held])) as host:
        assert await host.channel.ask(SAID) == "saved"
        with anyio.fail_after(20):
            await held.entered.wait()
        assert await host.channel.ask("And how are you?") == "ok"
        assert f"{CLAIM} (today) (not verified yet)" in await host.channel.ask("/memory")
        held.release.set()


async def test_what_a_save_ended_is_believed_again_where_the_judge_refutes_it(tmp_path):
    old, new = "I take 50 mg of aspirin", "The user stopped taking 50 mg of aspirin."
    model = saving(new, always("overstated"), over=1)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(f"/memory add {old}")
        assert await host.channel.ask("My 50 mg of aspirin ran out today.") == "saved"
        await until_judged(host)
        memory = await host.channel.ask("/memory")
    assert old in memory
    assert 'said: "My 50 mg of aspirin ran out today."' in memory
    assert new not in memory


async def test_a_kill_before_the_judge_answers_loses_nothing_and_it_is_asked_once_more(tmp_path):
    held, clock = PausedStep(text_reply("never")), ManualClock()
    async with session_host(tmp_path, saving(CLAIM, [held]), clock=clock) as host:
        await host.channel.ask(SAID)
        with anyio.fail_after(20):
            await held.entered.wait()
    model = ScriptedModel(lambda _: text_reply("ok"), judgement=always("supported"))
    async with session_host(tmp_path, model, clock=clock) as host:
        # A new channel numbers from one, and ids of the first life would be heard no second time.
        await host.channel.wait_for_answer(
            await host.channel.send("Hello again.", message_id="later")
        )
        await until_judged(host)
        asked = await host.channel.send("/memory", message_id="last")
        memory = await host.channel.wait_for_answer(asked)
    assert CLAIM in memory
    assert "not verified" not in memory
    assert len(model.requests_for("judgement")) == 1


async def test_a_hang_of_the_judge_counts_as_one_of_the_verification_and_it_is_asked_later(
    tmp_path,
):
    worked_on: list[str] = []

    def hang(_: ModelRequest) -> ModelReply:
        work = current_work()
        assert work is not None
        worked_on.extend(work.messages())
        return text_reply("This is no ruling.")

    async with session_host(tmp_path, saving(CLAIM, hang)) as host:
        await host.channel.ask(SAID)
        await until(lambda: worked_on)
        await host.wait_for_pending(0)  # else the session is opened before it is a suspect
    assert worked_on == [VERIFICATION]
    clock = ManualClock()
    model = ScriptedModel(lambda _: text_reply("ok"), judgement=always("supported"))
    async with session_host(tmp_path, model, clock=clock) as host:
        poison_messages = host.services.poison_messages
        poison_messages.add("fake:1", worked_on, "hang")
        pause = poison_messages.pause("fake:1")  # other sessions go first
        await host.channel.send("Hello again.", message_id="later")
        await until(lambda: pause in clock.remaining_sleeps)
        clock.advance(pause)
        await until(lambda: 30 in clock.remaining_sleeps)
        assert model.requests_for("judgement") == []
        clock.advance(30)
        await until_judged(host)
        assert await host.events(CONSOLIDATION_FAILED_EVENT) == []


async def test_undo_takes_back_what_was_learned_and_not_the_judges_word_on_it(tmp_path):
    async with session_host(tmp_path, saving(CLAIM, always("supported"))) as host:
        await host.channel.ask(SAID)
        await until_judged(host)
        await host.channel.ask("/memory undo")
        assert "Porto" not in await host.channel.ask("/memory")


@pytest.mark.parametrize(
    ("ruling", "believed"),
    [("supported", "The user trains new drivers."), ("not_supported", "The user drives buses.")],
)
async def test_a_change_that_is_told_in_another_language_is_for_the_judge_to_hold(
    tmp_path, ruling, believed
):
    model = saving("The user trains new drivers.", always(ruling), over=1)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add The user drives buses.")
        await host.channel.ask("Od poniedziałku szkolę nowych kierowców.")
        await until_judged(host)
        memory = str(await host.channel.ask("/memory"))
    assert believed in memory


async def test_a_judge_sees_all_that_a_merged_fact_was_made_from(tmp_path):
    asked: list[str] = []

    def judgement(request: ModelRequest) -> ModelReply:
        asked.append(str(request.messages[-1]["content"]))
        return judgement_reply(request, lambda _: "supported")

    changes = [
        {"op": "change", "fact": 1, "text": "Emil's hobbies: judo in Graz and swimming"},
        {"op": "end", "fact": 2},
    ]
    steps = iter([
        tool_call_reply(("memory_save", {"changes": [
            {"op": "add", "text": "Emil does judo in Graz"}, {"op": "add", "text": "Emil swims"},
        ]})),
        text_reply("saved"),
        tool_call_reply(("memory_save", {"changes": changes})),
        text_reply("done"),
    ])  # fmt: skip
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), judgement=judgement)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("Emil does judo in Graz. Emil swims.")
        await host.channel.ask("Tidy up what you know about Emil.")
        await until_judged(host)
    [replaced] = [one for one in asked if "hobbies" in one]
    assert '"replaces": "Emil does judo in Graz. Emil swims"' in replaced


@pytest.mark.parametrize(
    ("old", "stays"),
    [("We have an old beagle called Borys.", False), ("I am allergic to nuts.", True)],
)
async def test_a_change_in_another_language_takes_the_place_of_a_fact_on_the_same_matter(
    tmp_path, old, stays
):
    model = saving("Rodzina uśpiła psa Borysa.", always("supported"), over=1)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(f"/memory add {old}")
        await host.channel.ask("Musieliśmy uśpić Borysa, naszego psa, w sobotę.")
        await until_judged(host)
        memory = str(await host.channel.ask("/memory"))
    assert "Rodzina" in memory
    assert (old in memory) is stays


async def test_the_reason_of_a_ruling_ends_with_one_full_stop(tmp_path):
    def rule(request: ModelRequest) -> ModelReply:
        told = {"number": 1, "reason": "She says so.", "ruling": "supported"}
        return tool_call_reply(("judge_claims", {"rulings": [told]}))

    async with session_host(tmp_path, saving(CLAIM, rule)) as host:
        await host.channel.ask(SAID)
        await until_judged(host)
        why = str(await host.channel.ask("/memory why 1"))
    assert "She says so." in why
    assert "She says so.." not in why


async def test_status_counts_the_judges_calls(tmp_path):
    def judged(request: ModelRequest) -> ModelReply:
        reply = judgement_reply(request, lambda _: "supported")
        return replace(reply, usage=Usage(calls=1, prompt_tokens=1_000, completion_tokens=7))

    model = saving(CLAIM, judged)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(SAID)
        await until_judged(host)
        status = str(await host.channel.ask("/status"))
        assert len(model.requests) == 3
    assert "- Usage: 3 model calls, 1,020 tokens read (8 cached), 17 written" in status
