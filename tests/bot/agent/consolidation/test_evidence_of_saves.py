"""What is saved in a turn rests on the words that carry it, and older words do not undo it."""

from __future__ import annotations

from counting_talk import SMALL
from judged_claims import refuting, until_judged

from bot.llm.base import ModelReply, ModelRequest
from bot.memory.records.event_names import HISTORY_EVENT
from bot.testing.host import session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    text_reply,
    tool_call_reply,
)

FAMILY = "I teach maths at a school in Leipzig and have two kids, Jonas and Klara."


def save(*changes: dict[str, object]) -> ModelReply:
    return tool_call_reply(("memory_save", {"changes": list(changes)}))


def add(text: str) -> dict[str, object]:
    return {"op": "add", "text": text}


async def test_words_that_other_facts_tell_are_not_quoted_in_place_of_a_refuted_one(tmp_path):
    told = [
        "The user teaches maths at a school in Leipzig.",
        "The user has two kids, Jonas and Klara.",
    ]
    wrong = "The user teaches Jonas and Klara."
    steps = iter([save(*map(add, (*told, wrong))), text_reply("saved")])

    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), judgement=refuting(wrong))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(FAMILY)
        await until_judged(host)
        memory = str(await host.channel.ask("/memory"))
    assert all(text in memory for text in told)
    assert wrong not in memory
    assert "said:" not in memory


async def test_the_model_is_told_of_what_was_taken_back_though_the_opposite_was_saved(tmp_path):
    wrong, right = "Klara eats walnuts at times.", "Klara does not eat walnuts at any times."
    steps = iter([save(add(wrong)), text_reply("saved"), save(add(right)), text_reply("saved")])

    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), judgement=refuting(wrong))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("Klara eats walnuts only in cakes at times.")
        await until_judged(host)
        await host.channel.ask("Klara does not eat walnuts at any times, I mixed it up.")
        await host.channel.ask("Thanks!")
    assert f"- {wrong}" in str(model.requests_for()[-1].messages[-1]["content"])


async def test_what_was_said_after_the_conversation_is_marked_newer_and_does_not_end_by_it(
    tmp_path,
):
    newer = "Klara is allergic to walnuts."
    steps = {"I mixed it up: Klara is allergic to walnuts.": [save(add(newer)), text_reply("ok")]}
    asked: list[str] = []

    def answer(request: ModelRequest) -> ModelReply:
        waiting = next((s for said, s in steps.items() if said in str(request.messages)), [])
        return waiting.pop(0) if waiting else text_reply("ok")

    def consolidate(request: ModelRequest) -> ModelReply:
        asked.append(str(request.messages[-1]["content"]))
        old = "Klara is not allergic to walnuts, I think."
        return consolidation_reply(
            "[2026-02-10] Talk.", fact_operation(None, old, op="retire", fact=1)
        )

    model = ScriptedModel(answer, consolidation=consolidate)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await host.channel.ask("Klara is not allergic to walnuts, I think.")
        for number in (2, 3, 4):
            await host.channel.ask(f"I count number {number}.")
        await host.channel.ask("I mixed it up: Klara is allergic to walnuts.")
        await host.wait_for_event(HISTORY_EVENT)
        memory = str(await host.channel.ask("/memory"))
    assert f"[1] {newer} (since 2026-02-10, newer)" in asked[0]
    assert newer in memory
