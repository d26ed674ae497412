"""Budgets: what calls cost is counted for whom they were made, and limits stop them with a plain word."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from databases import drop, fresh_database

from bot.agent.spending.decision import LimitUse
from bot.agent.spending.spending import Spending
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.llm.base import Usage
from bot.llm.spender import Spender
from bot.memory.records.spending import SPENDING_TAPE
from bot.memory.records.spending_amounts import EVERYONE, NANO, Limit
from bot.tape.search import SearchQuery
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.tape.stores.postgres import PostgresTapeStore
from bot.testing.host import HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    text_reply,
)
from tests.bot.agent.telling import BOB, DAY, forget, pressed, say, talk

TODAY = "2026-02-10"
HIS = {"chat": "9", "sender": BOB, "role": "member"}


@asynccontextmanager
async def metered(folder, dollars: float | None = 0.0, tokens: int = 100, **settings: Any):
    """Run the program with a model of which each turn costs this much."""
    hello = text_reply("hello", usage=Usage(tokens - 10, 0, 10, dollars, 1))
    summed_up = consolidation_reply("They talked.")
    model = settings.pop("model", None)
    model = model or ScriptedModel(lambda _: hello, consolidation=lambda _: summed_up)
    async with session_host(folder, model, metered=True, **settings) as host:
        yield host


async def test_what_is_used_is_told_for_a_person_and_to_owners_for_everybody(tmp_path):
    async with metered(tmp_path, 0.25) as host:
        await say(host, "hi")
        told = "You, today: $0.50, 200 tokens, 2 model calls"
        await talk(host, ("hi",), ("hi",), ("/budget", told, "No limit holds for you"), **HIS)
        await talk(host, ("/budget all", "Only an owner"), **HIS)
        await talk(
            host,
            *(("/budget set fake:8 5$ month", "`fake:8`: $5.00 a month"),),
            ("/budget all", "**Everybody, today:** $0.75, 300 tokens, 3 model calls"),
        )
        assert "`fake:8`: $0.50" in host.channel.answers[-1].text
        [(_, off)] = pressed(host)
        await talk(host, ("/budget set fake:8 1$ month",), (off, "There is no such limit."))
        await talk(host, ("/budget all",))
        [(_, off)] = pressed(host)
        await talk(host, (off, "Removed: "), ("/budget all",))
        assert pressed(host) == []
        await talk(host, ("/budget all", "in our private chat"), private=False)


async def test_near_a_limit_a_person_is_told_once_and_at_it_the_notebook_answers(tmp_path):
    async with metered(tmp_path, 0.3) as host:
        await talk(host, ("/budget set each 1$ day", "Limit set: each person: $1.00 a day"))
        near = "hello\n\n_Budget: $0.90 of $1.00 today (for each person), $0.10 left._"
        told = [await say(host, text, **HIS) for text in ("my cat is Tom", "hi", "hi", "hi")]
        assert told == ["hello", "hello", near, "hello"]
    async with metered(tmp_path, 0.3) as host:  # also after a restart
        await talk(
            host,
            (
                "What is my cat's name?",
                *("Tom", "it goes on at 00:00"),
                "without a language model: the budget of $1.00 a day (for each person) is used up",
            ),
            **HIS,
        )
        assert await say(host, "hi") == "hello"
        host.clock.advance(DAY)
        assert await say(host, "hi", **HIS) == "hello"


async def test_of_a_limit_for_everyone_a_tenth_is_kept_for_owners(tmp_path):
    async with metered(tmp_path, 0.3) as host:
        await say(host, "/budget set everyone 1$ day")
        rest = ("hi", "the rest is kept for the owners")
        await talk(host, *[("hi", "hello")] * 3, rest, **HIS)
        await talk(host, ("hi", "hello"), ("hi", "is used up"))


async def test_background_work_stops_at_four_fifths_and_goes_on_in_the_next_period(tmp_path):
    async with metered(tmp_path, 0.45, bounds=HostLimits(window=4)) as host:
        await talk(host, ("/budget set everyone 1$ day",), ("one",), ("two",))
        await talk(host, ("/status", "waits: consolidations stop at 80 % of a budget"))
        assert await host.events("memory.history") == []
        host.clock.advance(DAY)
        await say(host, "/memory")
        await host.wait_for_event("memory.history")
        assert await host.events("memory.consolidation_failed") == []


async def test_asking_too_often_is_refused_and_calls_without_a_price_count_by_an_assumed_one(
    tmp_path,
):
    async with metered(tmp_path, None, 500_000) as host:
        await talk(host, ("/budget set each 600k day",), ("/budget set each 10$ month",), ("hi",))
        assumed = "of it $1.50 assumed, at $3 for a million tokens"
        used = ("500,000 of 600,000 tokens today", "$1.50 of $10.00 this month")
        await talk(host, ("/budget", assumed, *used), ("hi",))
        await talk(host, ("hi", "the budget of 600,000 tokens a day"), ("/budget rate 1",))
        again = "each person may ask once a minute; try again in 60 seconds"
        await say(host, "hi", **HIS)
        await talk(host, ("hi", again), **HIS)


async def test_no_search_finds_the_ledger_and_no_erasure_changes_it(tmp_path):
    async with metered(tmp_path) as host:
        await talk(host, ("/memory add The word is scripted",), ("scripted",))
        await host.services.agent.spending.refresh()
        before = await host.tape(SPENDING_TAPE)
        assert "scripted" in str(before)
        assert await host.store.search(SearchQuery("scripted", tapes=[SPENDING_TAPE])) == []
        await forget(host, "scripted")
        assert await host.tape(SPENDING_TAPE) == before


# The ledger itself: several processes and channels share it.


def spending_on(store: Any, linked: Any = lambda one: (one,)) -> Spending:
    return Spending(store, ManualClock(), UTC, linked)


async def call(spending: Spending, cost: float = 0.4, who: str = "telegram:1") -> bool:
    made = await spending.reserve(Spender(who, who, owner=True), "turn", "a/b", lambda: (10, 10))
    if isinstance(made, LimitUse):
        return False
    used = Usage()
    try:
        await anyio.lowlevel.checkpoint()
        used = Usage(10, 0, 10, cost, 1)
    finally:
        spending.settle(made, used)
    return True


async def test_a_person_on_two_channels_has_one_limit_and_may_have_their_own():
    both = ("telegram:1", "discord:2")
    spending = spending_on(InMemoryTapeStore(), lambda one: both if one in both else (one,))
    await spending.set_limit(Limit("each", "day", "usd", NANO))
    assert await call(spending, 1.0)
    assert not await call(spending, who="discord:2")
    assert await call(spending, who="telegram:3")
    await spending.set_limit(Limit("person:telegram:1", "day", "usd", 3 * NANO))
    assert [await call(spending, 1.0, who) for who in ("discord:2", *both)] == [True, True, False]


@pytest.mark.slow
async def test_two_workers_on_one_database_overspend_by_at_most_one_call_each():
    """Each reads the tape before it reserves, so a limit set in one holds in the other."""
    url = await anyio.to_thread.run_sync(fresh_database)
    database = Database(url, connections=4)
    await database.open()
    stores = [PostgresTapeStore(database, Wakeups(database)) for _ in range(2)]
    workers, allowed = [spending_on(store) for store in stores], list[bool]()
    await workers[0].set_limit(Limit(EVERYONE, "day", "usd", 4 * NANO))
    await call(workers[1])  # what a model costs is known from the first call
    await workers[1].refresh()

    async def work(spending: Spending) -> None:
        while not allowed or allowed[-1]:
            allowed.append(await call(spending))

    async with anyio.create_task_group() as tasks:
        for worker in workers * 3:
            tasks.start_soon(work, worker)
    for worker in workers:
        await worker.refresh()
    spent, other = (worker.fold.total(TODAY, EVERYONE) for worker in workers)
    assert spent == other
    assert 4 * NANO <= spent.money <= (4 + 2 * 0.4) * NANO
    assert spent.calls == sum(allowed) + 1
    await database.close()
    await anyio.to_thread.run_sync(drop, url)
