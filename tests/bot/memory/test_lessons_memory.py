"""What went wrong in memories before this one, and cannot here: each seen from a chat."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from folded import fold_entries

from bot.bus import Sender
from bot.llm.base import ModelRequest, estimate_tokens
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.fact import Fact
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.tape.entries import MEMORY_CONSOLIDATED
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    memory_save_call,
    text_reply,
    tool_call_reply,
)

ADA, CUSTOMER = Sender("7", "Ada"), Sender("42", "Carl")
HEADING = "Data that tapebot looked up; not words of the user."


async def believed(host: Host, scope: str = "person:fake:7") -> list[Fact]:
    return list(fold_entries(await host.tape(scope)).facts.values())


def system(request: ModelRequest) -> str:
    return str(request.messages[0]["content"])


def rest(request: ModelRequest) -> str:
    return "\n".join(str(one["content"]) for one in request.messages[1:])


async def test_however_often_it_fails_a_range_stays_open_and_its_words_stay_in_the_prompt(tmp_path):
    answers: list[Any] = [text_reply("prose")]
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=lambda _: answers[0])
    async with session_host(tmp_path, model, bounds=HostLimits(window=10)) as host:
        for number in range(1, 6):
            await host.channel.ask(f"I count number {number}.")
        for count in range(1, 7):
            failed = await host.wait_for_event(CONSOLIDATION_FAILED_EVENT, count)
            with anyio.fail_after(30):
                await host.clock.wait_for_sleepers()
            if count < 6:
                host.clock.advance(failed[-1].data["retry_in"])
        assert await host.events(MEMORY_CONSOLIDATED) == []
        await host.channel.ask("And now?")
        assert all(f"I count number {n}." in rest(model.requests_for()[-1]) for n in range(1, 6))
        answers[0] = consolidation_reply("[2026-02-10 10:00] Ada counted.")
        host.clock.advance(3_600)
        [history] = await host.wait_for_event(HISTORY_EVENT)
        assert history.data["range"][0] == failed[0].data["after"] + 1
    tried = model.requests_for("consolidation")
    assert len(tried) == 7
    assert all("I count number 1." in rest(one) for one in tried)


async def test_what_the_assistant_made_up_is_not_believed_however_often_it_is_recalled(tmp_path):
    steps: list[Any] = [text_reply("You love durian ice cream.")]
    lie = fact_change("The user loves durian ice cream.", "You love durian ice cream.")
    model = ScriptedModel(
        lambda _: steps.pop(0),
        consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] Ada asked.", lie),
    )
    made_up = "The user loves durian ice cream."
    async with session_host(tmp_path, model, bounds=HostLimits(window=20)) as host:
        await host.channel.ask("What do I love?")
        for _ in range(6):
            steps += [
                tool_call_reply(("memory_recall", {"query": "durian ice cream"})),
                tool_call_reply(memory_save_call(made_up)),
                tool_call_reply(("memory_daily", {"content": made_up})),
                text_reply("You love durian ice cream."),
            ]
            await host.channel.ask("And what do I love?")
        results = [e.payload for e in await host.tape() if e.kind == "tool_result"]
        recalled = [one["content"] for one in results if one["name"] == "memory_recall"]
        assert all("durian" in one for one in recalled)
        written = [one for one in results if one["name"] != "memory_recall"]
        assert len(written) == 12
        assert not any(one["content"].startswith(("Saved", "Added")) for one in written)
        assert {one["status"] for one in written} == {"error"}
        steps += [text_reply("ok")] * 10
        for number in range(10):
            await host.channel.ask(f"What is {number} plus {number}?")
        await host.wait_for_event(HISTORY_EVENT)
        assert [one.text for one in await believed(host) if one.status == "active"] == []
        listed = await host.channel.ask("/memory")
    assert "durian" not in listed


async def test_the_block_is_in_the_system_prompt_and_the_tail_is_labelled_as_records(tmp_path):
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] Ada spoke of cats."),
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("remember: I like green tea")
        assert "New session" in await host.channel.ask("/new")
        await host.channel.ask("remember: my cat is called Minka")
        await host.channel.ask("What is new?")
    last = model.requests_for()[-1]
    assert last.messages[0]["role"] == "system"
    block = system(last).partition("<memory>")[2].partition("</memory>")[0]
    assert "- [1] I like green tea" in block
    assert "Minka" not in block
    assert "<memory>" not in rest(last)
    said, _, tail = str(last.messages[-1]["content"]).partition("<records>\n")
    assert said.rstrip().endswith("What is new?")
    assert tail.startswith(f"{HEADING}\n\nChanges of long-term memory, version ")
    assert "saved 2026-02-10 10:00:" in tail
    assert "- [2] My cat is called Minka" in tail
    assert tail.endswith("</records>")
    assert all("<records>" not in str(one["content"]) for one in last.messages[1:-1])


async def test_a_new_value_closes_the_old_one_and_stands_in_the_prompt_alone(tmp_path):
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] Ada said where she lives."),
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("remember: I live in Bonn")
        host.clock.advance(86_400)
        await host.channel.ask("/memory edit 1 I live in Graz")
        old, new = await believed(host)
        assert (old.status, new.status, new.supersedes) == ("superseded", "active", old.id)
        assert old.valid_to == new.valid_from
        assert new.valid_to is None
        await host.channel.ask("/new")
        await host.channel.ask("Hello")
    block = system(model.requests_for()[-1]).partition("<memory>")[2].partition("</memory>")[0]
    assert "Graz" in block
    assert "Bonn" not in block


@pytest.mark.slow
async def test_private_facts_beyond_the_prompt_are_recalled_in_private_alone(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        for number in range(30):
            await host.channel.ask(f"/memory add Drawer {number} holds {'x' * 300} zq{number:02}qz")
        question = "What does drawer 3 hold?"
        await host.channel.ask(question)
        own = model.requests_for()[-1]
        tail = str(own.messages[-1]["content"]).partition("From the tape and memory:\n")[2]
        untold = [n for n in range(30) if f"zq{n:02}qz" not in system(own) + rest(own)]
        assert untold
        asked = len(model.requests_for())
        for sender, chat, private in (
            (ADA, "-1", False),
            (CUSTOMER, "-1", False),
            (CUSTOMER, "2", True),
        ):
            sent = await host.channel.send(
                f"Drawer {untold[0]}: {question}", chat=chat, private=private, sender=sender
            )
            await host.channel.wait_for_answer(sent)
        others = model.requests_for()[asked:]
        await host.channel.ask(f"What does drawer {untold[0]} hold?")
    assert len(others) == 3
    assert not any("zq" in system(one) + rest(one) for one in others)
    assert 60 < estimate_tokens(tail.partition("\n</records>")[0]) <= 400
    assert f"zq{untold[0]:02}qz" in rest(model.requests_for()[-1])
