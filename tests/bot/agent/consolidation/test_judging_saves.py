"""What the model saved in a turn is judged behind it, and put right where the words do not carry it."""

from __future__ import annotations

import anyio
import pytest
from judged_claims import CLAIM, SAID, always, refuting, until_judged
from waiting import until

from bot.core.telemetry.active_work import current_work
from bot.llm.base import ModelReply, ModelRequest
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.runtime.sessions.background_run import VERIFICATION
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    PausedStep,
    Script,
    ScriptedModel,
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
