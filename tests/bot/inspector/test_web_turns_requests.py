"""Owners are told what each turn took; what its model saw is shown to the letter, whatever came between."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.agent.request_reconstruction import reconstruct_request
from bot.agent.turn_history import past_turns
from bot.agent.views.registry import context_builder
from bot.llm.base import CapabilityProfile
from bot.llm.http.model import HTTPModel
from bot.llm.http.providers import find_server
from bot.memory.records.tombstones import tombstone
from bot.tape.service import TapeService
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    memory_save_call,
    text_reply,
    tool_call_reply,
)
from testkit.openai_server import Raw, Reply, ScriptedOpenAI


async def shown_again(host: Host, session: str = "fake:1") -> list[list[dict[str, Any]]]:
    """Return the messages of all answered calls of a tape, made again, oldest first."""
    tape = TapeService(host.store, session)
    turns = [one async for one in past_turns(tape, scanned=100_000)]
    return [
        (await reconstruct_request(tape, turn, call, host.services.agent.timezone)).messages()
        for turn in reversed(turns)
        for call in turn.calls
    ]


def letters(messages: list[list[dict[str, Any]]]) -> list[str]:
    return [json.dumps(one, ensure_ascii=False) for one in messages]


def given_to(*models: ScriptedModel) -> list[str]:
    return letters([[*one.messages] for model in models for one in model.requests_for()])


AGAIN = (
    "good morning", "/new", "a new start", "/problem new boat", "my boat is red",
    "/problem switch general", "back again, where is my bike?", "and the boat?",
)  # fmt: skip


@pytest.mark.parametrize("name", ["default", "with-recall"])
async def test_every_request_is_made_again_to_the_letter(tmp_path, name):
    """After tools, a save, a consolidation, a boundary, a switch of problems and a restart."""
    steps = [
        text_reply("noted"),
        tool_call_reply(memory_save_call("I like tea")),
        text_reply("saved"),
        text_reply("in the shed"),
        tool_call_reply(("memory_recall", {"query": "bike"}), ("no_such_tool", {})),
        text_reply("tea"),
    ]
    first = ScriptedModel(
        steps,
        consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] Ada has a bike."),
    )
    bounds, builder = HostLimits(window=4, view_messages=6), context_builder(name)
    async with session_host(tmp_path, first, builder=builder, bounds=bounds) as host:
        for text in ("my bike is green", "I like tea, remember it", "where is my bike?"):
            await host.channel.ask(text)
        await host.wait_for_event("memory/consolidated")
        await host.channel.ask("what colour has my bike, and what do I drink?")
        assert letters(await shown_again(host)) == given_to(first)
    second = ScriptedModel(
        lambda _: text_reply("ok"), consolidation=lambda _: consolidation_reply("[x] More.")
    )
    async with session_host(tmp_path, second, builder=builder, bounds=bounds) as host:
        for number, text in enumerate(AGAIN):
            sent = await host.channel.send(text, message_id=f"again-{number}")
            await host.channel.wait_for_answer(sent)
        given = given_to(first, second)
        assert letters(await shown_again(host)) == given
    assert len(given) == 11
    assert any("From the tape and memory:" in one for one in given)
    assert any("2026 the user said: " in one for one in given)


REASONED = (
    b'data: {"choices":[{"delta":{"reasoning_content":"I should look."}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":'
    b'{"name":"memory_recall","arguments":"{\\"query\\": \\"Gr\xc3\xbc\xc3\x9fe\\"}"}}]},'
    b'"finish_reason":"tool_calls"}],'
    b'"usage":{"prompt_tokens":12,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":9}}}'
    b"\n\ndata: [DONE]\n\n"
)


async def test_what_arrived_at_a_provider_is_what_is_shown(tmp_path):
    """Over a socket, reasoning included; of its second answer the provider does not count the tokens."""
    script = [Raw(REASONED), Reply("好", counted=False), Reply("fine")]
    async with ScriptedOpenAI(script) as server:
        place = find_server("openai/scripted", server.base_url, "none")
        assert place is not None
        model = HTTPModel("openai/scripted", place, timeout=60.0, profile=CapabilityProfile())
        async with session_host(tmp_path, model) as host:
            for text in ("Grüße aus 東京 🦊", "and?"):
                await host.channel.wait_for_answer(await host.channel.send(text))
            made = await shown_again(host)
            tape = TapeService(host.store, "fake:1")
            told = [call.cache_reported async for turn in past_turns(tape) for call in turn.calls]
        await model.aclose()
    assert made == [one["messages"] for one in server.requests]
    assert made[1][-2]["reasoning_content"] == "I should look."
    assert told == [True, True, False]


async def test_an_owner_is_told_what_each_turn_took_and_what_its_model_was_shown(rig):
    await rig.talk("fake:1", ("hello", "hi"), "/help", ("<b>again</b>", "yes"))
    new, old = (await rig.get("/turns", tape="fake:1"))["turns"]
    assert (new["status"], new["prompt_tokens"], new["cached_tokens"]) == ("ok", 10, 4)
    assert (new["model"], new["steps"], new["cost"]) == ("offline", 1, 0.001)
    page = await rig.get("/turns", tape="fake:1", limit=1)
    assert [one["id"] for one in page["turns"]] == [new["id"]]
    page = await rig.get("/turns", tape="fake:1", limit=1, before=page["older"])
    assert [one["id"] for one in page["turns"]] == [old["id"]]
    view = await rig.get("/view", tape="fake:1", turn=new["id"])
    assert view["cached_share"] == 0.4
    keys = [part["key"] for part in view["parts"]]
    assert (keys[:2], keys[-2:]) == (["identity", "memory"], ["history", "newest"])
    assert view["tokens"] == sum(part["tokens"] for part in view["parts"])
    roles = [one["role"] for one in view["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    entries = [one["entries"] for one in view["messages"]]
    for [entry], message in zip(entries[1:], view["messages"][1:], strict=True):
        [found] = await rig.store.read("fake:1", entry, entry)
        assert found.payload["content"] in message["content"]
    shown = await rig.page("/turn", tape="fake:1", turn=new["id"])
    assert "&lt;b&gt;again&lt;/b&gt;" in shown
    assert "<b>again</b>" not in shown
    assert f"turn={old['id']}" in shown


async def test_words_that_were_erased_are_said_to_be_missing(rig):
    await rig.talk("fake:1", ("my code is swordfish", "noted"), ("next", "ok"), "and now?")
    newest, second, _ = (await rig.get("/turns", tape="fake:1"))["turns"]
    entry = next(e for e in await rig.store.read("fake:1") if e.kind == "message")
    await rig.store.erase("fake:1", [tombstone(entry)])
    view = await rig.get("/view", tape="fake:1", turn=second["id"])
    assert view["erased"] == [entry.id]
    assert "swordfish" not in json.dumps(view)
    assert "erased since" in await rig.page("/turn", tape="fake:1", turn=second["id"])
    # A provider that says nothing of its cache is not said to have none.
    view = await rig.get("/view", tape="fake:1", turn=newest["id"])
    assert view["cached_share"] is view["call"]["cached_tokens"] is None
