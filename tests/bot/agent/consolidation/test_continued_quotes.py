"""A quote after the conversation is found in the message that says it, as if that had been cited."""

from __future__ import annotations

import pytest
from continued_talk import CACHED, cached_model, is_continued, kept, operation

from bot.bus import Sender
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, judgement_reply, text_reply

BOB = Sender("8", "Bob")


async def memory_of_new(host: Host, private: bool = True) -> str:
    assert await host.channel.ask("/new", private=private) == "New session started."
    return str(await host.channel.ask("/memory", private=private))


async def test_not_in_a_later_message_that_quotes_it(tmp_path):
    said = "I live in Kiel."
    model = cached_model(kept(operation("The user lives in Kiel.", said)))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(said)
        sent = await host.channel.send("Where is the nearest beach?", quote=said)
        await host.channel.wait_for_answer(sent)
        assert "The user lives in Kiel." in await memory_of_new(host)
    assert is_continued(model.requests_for("consolidation")[0])


async def test_not_in_a_later_question_alone(tmp_path):
    said = "I take 50 mg of aspirin."
    model = cached_model(kept(operation("The user takes 50 mg of aspirin.", said)))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(said)
        await host.channel.ask("Should I take 50 mg of aspirin with food?")
        assert "The user takes 50 mg of aspirin." in await memory_of_new(host)


async def test_of_each_person_of_a_group_who_says_the_same(tmp_path):
    said = "I am a vegetarian."
    facts = ("Ada (7) is a vegetarian.", "Bob (8) is a vegetarian.")
    model = cached_model(kept(*(operation(fact, said) for fact in facts)))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(said, private=False)
        await host.channel.ask(said, private=False, sender=BOB)
        shown = await memory_of_new(host, private=False)
    assert is_continued(model.requests_for("consolidation")[0])
    assert all(fact in shown for fact in facts)


async def test_at_the_time_that_the_claim_names(tmp_path):
    said, clock = "I fly to Rome tomorrow.", ManualClock()
    model = cached_model(kept(operation("The user flies to Rome on 2026-02-11.", said)))
    async with session_host(tmp_path, model, clock=clock) as host:
        await host.channel.ask(said)
        clock.advance(20 * 86_400)
        await host.channel.ask(said)
        assert "The user flies to Rome on 2026-02-11." in await memory_of_new(host)


async def test_with_the_question_that_each_of_two_equal_answers_had(tmp_path):
    answers = ("Do you have a dog?", "Do you like tea?", "Noted.")
    said = ("Hi.", "Yes.", "Yes.")
    assert "Do you have a dog?" in await judged(tmp_path, said, answers, "The user has a dog.")


async def test_with_the_sentence_that_gives_a_short_question_its_subject(tmp_path):
    answers = ("It rains. You only write if you want to give your plot up. Do you?", "Noted.")
    claim = "The user does not want to give the plot up."
    asked = await judged(tmp_path, ("Hi.", "No way."), answers, claim)
    assert '"asked": "You only write if you want to give your plot up. Do you?"' in asked


async def judged(tmp_path, said, answers, claim: str) -> str:
    """Hold a talk; return what the judge was asked about a claim that rests on its last message."""
    replies, asked = iter(answers), []

    def rule(request):
        asked.append(str(request.messages[-1]["content"]))
        return judgement_reply(request, lambda _: "supported")

    model = ScriptedModel(
        lambda _: text_reply(next(replies), usage=CACHED),
        consolidation=[kept(operation(claim, said[-1]))],
        judgement=rule,
    )
    async with session_host(tmp_path, model) as host:
        for one in said:
            await host.channel.ask(one)
        assert claim in await memory_of_new(host)
    return asked[0]


async def test_a_name_that_is_refused_is_nobodys(tmp_path):
    model = cached_model(
        kept(
            operation("The user's name is Tom.", "My brother Tom says hi.", slot="user: name"),
            operation("Tom lives in Kiel.", "I live in Kiel."),
        )
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("My brother Tom says hi. I live in Kiel.")
        assert "Tom lives in Kiel" not in await memory_of_new(host)


@pytest.mark.parametrize("count", [12, 30])
async def test_of_a_quote_that_many_messages_have_the_newest_count(tmp_path, count):
    said = "I like tea."
    model = cached_model(kept(operation("The user likes tea.", said)))
    async with session_host(tmp_path, model) as host:
        for _ in range(count):
            await host.channel.ask(said)
        assert "The user likes tea." in await memory_of_new(host)
