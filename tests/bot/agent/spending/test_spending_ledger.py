"""The ledger: several processes share it, embeddings and transcriptions are in it, no word of anybody is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC
from pathlib import Path
from typing import Any

import anyio
import pytest
from databases import drop, fresh_database
from spending_host import opened

from bot.agent.spending.decision import LimitUse
from bot.agent.spending.metered_services import MeteredEmbedder, MeteredTranscriber
from bot.agent.spending.spending import Spending
from bot.bus import RemoteFile
from bot.bus.media.attachments import AttachmentService
from bot.bus.media.blobs import FolderBlobs
from bot.core.errors import BudgetReached, ModelRejected
from bot.llm.base import Usage
from bot.llm.spender import Spender, report_usage
from bot.memory.records.spending import SPENDING_TAPE
from bot.memory.records.spending_amounts import EVERYONE, NANO, Limit
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply

OWNER = Spender("telegram:1", "telegram:1", owner=True)
TODAY = "2026-02-10"


def spending_on(store: Any) -> Spending:
    return Spending(store, ManualClock(), UTC)


async def call(spending: Spending, cost: float = 0.4, spender: Spender = OWNER) -> bool:
    """Make one call; return whether it was allowed."""
    made = await spending.reserve(spender, "turn", "a/b", lambda: (10, 10))
    if isinstance(made, LimitUse):
        return False
    used = Usage()
    try:
        await anyio.lowlevel.checkpoint()
        used = Usage(10, 0, 10, cost, 1)
    finally:
        spending.settle(made, used)
    return True


async def test_two_workers_on_one_database_overspend_by_at_most_one_call_each() -> None:
    """Each reads the tape before it reserves, so a limit set in one holds in the other."""
    url = await anyio.to_thread.run_sync(fresh_database)
    try:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(opened(url)) for _ in range(2)]
            workers = [spending_on(store) for store in stores]
            await workers[0].set_limit(Limit(EVERYONE, "day", "usd", 4 * NANO))
            # What a model costs is known from the first call.
            await call(workers[1])
            await workers[1].refresh()
            allowed: list[bool] = []

            async def work(spending: Spending) -> None:
                while not allowed or allowed[-1]:
                    allowed.append(await call(spending))

            async with anyio.create_task_group() as tasks:
                for worker in workers:
                    for _ in range(3):
                        tasks.start_soon(work, worker)
            for worker in workers:
                await worker.refresh()
            spent = workers[0].fold.total(TODAY, EVERYONE)
            assert spent == workers[1].fold.total(TODAY, EVERYONE)
            assert 4 * NANO <= spent.money <= (4 + 2 * 0.4) * NANO
            assert spent.calls == sum(allowed) + 1
    finally:
        await anyio.to_thread.run_sync(drop, url)


async def test_a_cancelled_reservation_costs_nothing(tmp_path: Path) -> None:
    """Whoever is cancelled while the reservation is written has called nobody."""
    store = FileTapeStore(tmp_path)
    spending = spending_on(store)
    await spending.set_limit(Limit(EVERYONE, "day", "usd", 1_000 * NANO))
    for steps in range(12):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, spending)
            tasks.start_soon(call, spending)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    await spending.refresh()
    again = spending_on(store)
    await again.refresh()
    assert again.fold == spending.fold
    done = [entry for entry in await store.read(SPENDING_TAPE) if entry.name == "settled"]
    assert again.fold.open == {}
    costs = [entry.data["usage"]["cost"] for entry in done]
    assert again.fold.total(TODAY, EVERYONE).money == round(sum(costs) * NANO)
    await store.close()


async def test_a_person_on_two_channels_has_one_limit_and_may_have_their_own() -> None:
    people = {"telegram:1": ("telegram:1", "discord:2"), "discord:2": ("telegram:1", "discord:2")}
    spending = Spending(
        InMemoryTapeStore(), ManualClock(), UTC, lambda one: people.get(one, (one,))
    )
    there, other = Spender("discord:2", "discord:2"), Spender("telegram:3", "telegram:3")
    await spending.set_limit(Limit("each", "day", "usd", NANO))
    assert await call(spending, 1.0)
    assert not await call(spending, spender=there)
    assert await call(spending, spender=other)
    await spending.set_limit(Limit("person:telegram:1", "day", "usd", 3 * NANO))
    assert await call(spending, 1.0, there)
    [use] = spending.uses(there)
    assert (use.used, use.left) == (2 * NANO, NANO)


class Meaning:
    """An embedding model that reports what it used."""

    name = "openai/embedding"
    dimensions = 3

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        if self.error is not None:
            raise self.error
        report_usage(Usage(50 * len(texts), 0, 0, 0.2, 1))
        return [[1.0, 0.0, 0.0] for _ in texts]

    async def aclose(self) -> None:
        """Nothing to close."""


async def test_embeddings_count_what_the_provider_reports_and_stop_at_four_fifths() -> None:
    spending = spending_on(InMemoryTapeStore())
    embedder = MeteredEmbedder(Meaning(), spending)  # type: ignore[arg-type] (vectors of lists)
    await spending.set_limit(Limit(EVERYONE, "day", "usd", NANO))
    for _ in range(4):
        await embedder.embed(["a", "b"])
    with pytest.raises(BudgetReached, match=r"embeddings stop at 80 % of a budget"):
        await embedder.embed(["a"])
    spent = spending.fold.total(TODAY, "role:embedding")
    assert (spent.calls, spent.tokens, spent.money) == (4, 400, 0.8 * NANO)
    failing = MeteredEmbedder(Meaning(ModelRejected("no")), spending_on(InMemoryTapeStore()))  # type: ignore[arg-type]
    with pytest.raises(ModelRejected):
        await failing.embed(["a"])


class Ears:
    """A transcription model that reports nothing."""

    name = "openai/whisper-1"

    async def transcribe(self, _: bytes, __: str) -> str:
        return "hello there"

    async def aclose(self) -> None:
        """Nothing to close."""


async def test_a_voice_message_is_counted_for_who_sent_it(tmp_path: Path) -> None:
    spending = spending_on(InMemoryTapeStore())
    desk = AttachmentService(
        FolderBlobs(tmp_path), max_bytes=10**6, transcriber=MeteredTranscriber(Ears(), spending)
    )

    async def fetch(_: int) -> bytes:
        return b"OggS" + bytes(40_000)

    voice = RemoteFile(
        "voice", "v.ogg", "audio/ogg", None, fetch, session="telegram:-7", sender="8"
    )
    assert (await desk.receive(voice)).text == "hello there"
    await spending.refresh()
    spent = spending.fold.total(TODAY, "person:telegram:8")
    assert spent == spending.fold.total(TODAY, "session:telegram:-7")
    assert spent.calls == 1
    assert spent.assumed > 0
    await spending.set_limit(Limit("person:telegram:8", "day", "tokens", 10))
    assert "the budget of 10 tokens a day" in ((await desk.receive(voice)).note or "")


async def test_no_search_finds_the_ledger_and_no_erasure_changes_it(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: text_reply("scripted words"))
    async with session_host(tmp_path, model, metered=True) as host:
        await host.channel.ask("/memory add everybody: The word is scripted")
        await host.channel.ask("hi")
        spending = host.services.agent.spending
        assert spending is not None
        await spending.refresh()
        before = await host.tape(SPENDING_TAPE)
        assert "scripted" in str(before)
        hits = await host.store.search(SearchQuery("scripted", tapes=[SPENDING_TAPE]))
        assert hits == []
        await host.channel.ask("/memory forget scripted")
        await host.channel.ask(host.channel.answers[-1].buttons[0].command)
        assert "scripted words" not in str(await host.tape())
        assert await host.tape(SPENDING_TAPE) == before
