"""Budgets: what calls cost is counted for whom they were made, and limits stop them with a plain word."""

from __future__ import annotations

from typing import Any

import pytest

from bot.bus import Sender
from bot.core.errors import ModelRejected
from bot.llm.base import Usage
from bot.memory.records.spending import SPENDING_TAPE, SpendingFold
from bot.memory.records.spending_amounts import EVERYONE
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    consolidation_reply,
    text_reply,
)

BOB = Sender("9", "Bob")
DAY = 24 * 3600


def costing(dollars: float | None, tokens: int = 100) -> Any:
    """Return a script of turns, each of which costs this much."""
    usage = Usage(tokens - 10, 0, 10, dollars, 1)
    return lambda _: text_reply("hello", usage=usage)


async def ledger(host: Host) -> SpendingFold:
    """Return what the tape says, folded anew; everything queued is written first."""
    spending = host.services.agent.spending
    assert spending is not None
    await spending.refresh()
    fold = SpendingFold()
    for entry in await host.tape(SPENDING_TAPE):
        fold.apply(entry)
    return fold


async def money(host: Host, scope: str = EVERYONE, period: str = "2026-02-10") -> float:
    return (await ledger(host)).total(period, scope).money / 1e9


async def ask(host: Host, text: str, sender: Sender = BOB, *, chat: str = "9") -> str:
    """Ask as a member, in a private chat."""
    sent = await host.channel.send(text, sender=sender, role="member", chat=chat)
    return await host.channel.wait_for_answer(sent)


async def test_a_call_is_counted_for_person_chat_role_and_model(tmp_path):
    async with session_host(tmp_path, ScriptedModel(costing(0.25)), metered=True) as host:
        await host.channel.ask("hi")
        await ask(host, "hi")
        await ask(host, "hi")
        assert await money(host) == 0.75
        assert await money(host, "person:fake:9") == 0.5
        assert await money(host, "session:fake:9", "2026-02") == 0.5
        assert await money(host, "role:turn") == 0.75
        [key] = {key.model for key in (await ledger(host)).days["2026-02-10"]}
        assert key == "scripted"
        mine = await ask(host, "/budget")
        assert "You, today: $0.50, 200 tokens, 2 model calls" in mine
        assert "No limit holds for you" in mine


async def test_near_a_limit_a_person_is_told_once_in_each_period(tmp_path):
    clock = ManualClock()
    model = ScriptedModel(costing(0.3))
    async with session_host(tmp_path, model, metered=True, clock=clock) as host:
        assert "Limit set: each person: $1.00 a day" in await host.channel.ask(
            "/budget set each 1$ day"
        )
        answers = [await ask(host, "hi") for _ in range(3)]
        assert answers[:2] == ["hello", "hello"]
        told = "_Budget: $0.90 of $1.00 today (for each person), $0.10 left._"
        assert answers[2] == f"hello\n\n{told}"
        assert await ask(host, "again") == "hello"
        clock.advance(DAY)
        answers = [await ask(host, "hi") for _ in range(3)]
        assert ["Budget:" in one for one in answers] == [False, False, True]


async def test_a_used_up_limit_is_said_and_the_offline_responder_answers(tmp_path):
    clock = ManualClock()
    model = ScriptedModel(costing(0.6))
    async with session_host(tmp_path, model, metered=True, clock=clock) as host:
        await host.channel.ask("/budget set each 1$ day")
        await ask(host, "remember that my cat is Tom")
        await ask(host, "hi")
        refused = await ask(host, "what is my cat's name?")
        assert "Tom" in refused
        assert "without a language model: the budget of $1.00 a day (for each person)" in refused
        assert "it goes on at 00:00" in refused
        assert len(model.requests) == 2
        assert await host.channel.ask("hi") == "hello"
        assert "0 left" in await ask(host, "/budget")
        clock.advance(DAY)
        assert await ask(host, "hi") == "hello"


async def test_of_a_limit_for_everyone_a_tenth_is_kept_for_owners(tmp_path):
    async with session_host(tmp_path, ScriptedModel(costing(0.3)), metered=True) as host:
        await host.channel.ask("/budget set everyone 1$ day")
        for _ in range(3):
            await ask(host, "hi")
        assert "the rest is kept for the owners" in await ask(host, "hi")
        assert "hello" in await host.channel.ask("hi")
        assert "is used up" in await host.channel.ask("hi")
        assert await money(host) == 1.2


async def test_background_work_stops_at_four_fifths_and_goes_on_in_the_next_period(tmp_path):
    clock = ManualClock()
    model = ScriptedModel(costing(0.45), consolidation=numbered_consolidations())
    bounds = HostLimits(window=4)
    async with session_host(tmp_path, model, metered=True, clock=clock, bounds=bounds) as host:
        await host.channel.ask("/budget set everyone 1$ day")
        await host.channel.ask("one")
        await host.channel.ask("two")
        status = await host.channel.ask("/status")
        assert "Consolidation: waits: consolidations stop at 80 % of a budget" in status
        assert await host.events("memory.history") == []
        before = len(await host.tape())
        clock.advance(DAY)
        await host.channel.ask("/memory")
        await host.wait_for_event("memory.history")
        failures = await host.events("memory.consolidation_failed")
        assert failures == []
        assert before
        assert {request.purpose for request in model.requests} == {"turn", "consolidation"}


def numbered_consolidations() -> Any:
    return lambda _: consolidation_reply("They talked.")


async def test_calls_without_a_price_count_by_tokens_and_an_assumed_price(tmp_path):
    model = ScriptedModel(costing(None, tokens=500_000))
    async with session_host(tmp_path, model, metered=True) as host:
        await host.channel.ask("/budget set each 600k day")
        await host.channel.ask("/budget set each 10$ month")
        await host.channel.ask("hi")
        mine = await host.channel.ask("/budget")
        assert "500,000 of 600,000 tokens today" in mine
        assert "$1.50 of $10.00 this month" in mine
        assert "of it $1.50 assumed, at $3 for a million tokens" in mine
        await host.channel.ask("hi")
        assert "the budget of 600,000 tokens a day" in await host.channel.ask("hi")


async def test_a_failed_call_costs_nothing_and_a_stopped_one_what_it_read(tmp_path):
    waiting = PausedStep(text_reply("never"), partial="so far")
    model = ScriptedModel([ModelRejected("no", of_content=False), waiting])
    async with session_host(tmp_path, model, metered=True) as host:
        await host.channel.ask("/budget set each 5$ day")
        await host.channel.ask("hi")
        assert (await ledger(host)).total("2026-02-10", EVERYONE).tokens == 0
        await host.channel.send("hi")
        await waiting.entered.wait()
        assert len((await ledger(host)).open) == 1
        await host.channel.ask("/stop")
        fold = await ledger(host)
        assert fold.open == {}
        assert fold.total("2026-02-10", EVERYONE).tokens > 100


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("/budget set fake:9 5$ day", "`fake:9`: $5.00 a day"),
        ("/budget set here 200k month", "the chat `fake:1`: 200,000 tokens a month"),
        ("/budget set role:consolidation $0.5 day", "consolidations: $0.50 a day"),
        ("/budget set everyone five day", "I do not understand `five`"),
        ("/budget set somebody 5$ day", "I do not know `somebody`"),
        ("/budget set everyone 5$ week", "I do not understand `week`"),
        ("/budget off each", "There is no such limit"),
        ("/budget rate 0", "each person may ask N times a minute"),
        ("/budget al", "Did you mean `/budget all`?"),
    ],
)
async def test_owners_set_limits_in_words(tmp_path, said, answer):
    async with session_host(tmp_path, ScriptedModel([]), metered=True) as host:
        assert answer in await host.channel.ask(said)
