"""What one process erases is gone from what another one keeps, though nobody there asks for it again."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import anyio
import pytest
from waiting import until

from bot.memory.records.fact import Evidence
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.vector_files import VectorFiles
from bot.runtime.app.build import open_app
from bot.runtime.app.serve import make_remote_erasures
from bot.runtime.settings import load_settings
from bot.tape.entries import message

pytestmark = pytest.mark.slow

WORD = "zqxjvkwp"


@asynccontextmanager
async def process(home, url, **more):
    """A worker's program, as far as it follows what others do."""
    more = {"embedding_model": "local", **more}
    settings = load_settings(home=home, model="offline", database_url=url, **more)
    async with open_app(settings) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.database_services.wakeups.run)
        yield app
        tasks.cancel_scope.cancel()


def without(entry):
    """A tombstone of an entry, as far as this word goes."""
    payload = json.loads(json.dumps(entry.payload).replace(WORD, "erased"))
    return replace(entry, payload=payload)


def vectors_of(app, tape):
    """The checksums of the texts that a program keeps a vector of, by their entries' ids."""
    return VectorFiles(app.settings.home / "vectors", "", "local").checksums(tape)


async def test_facts_and_vectors_go_from_the_memory_and_the_disk_of_another_process(tmp_path, url):
    said = Evidence("telegram:1", 2, WORD, "Ada", datetime.now(UTC).isoformat(), "person", "7")
    batch = ProposalBatch(
        "k", "person", (Proposal("add", f"Her boat is {WORD}.", evidence=(said,)),)
    )
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(process(tmp_path / "one", url))
        other = await stack.enter_async_context(process(tmp_path / "other", url))
        await one.store.create_tape("telegram:1")
        words = [message("user", f"My boat is {WORD}."), message("user", "I like tea.")]
        [gone, stays] = await one.store.append_many("telegram:1", words)
        await one.services.scopes.identity_scope("telegram:7").apply(batch)
        for app in (one, other):
            await app.vectors.catch_up("telegram:1")
            assert set(vectors_of(app, "telegram:1")) == {gone.id, stays.id}
        kept = other.services.scopes.identity_scope("telegram:7")
        await kept.open()
        assert WORD in str(kept.fold)

        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(make_remote_erasures(other).run)
        facts = await one.store.read(kept.name)
        await one.store.erase("telegram:1", [without(gone)])
        await one.store.erase(kept.name, [without(entry) for entry in facts if WORD in str(entry)])
        await until(lambda: WORD not in str(kept.fold))
        await until(lambda: set(vectors_of(other, "telegram:1")) == {stays.id})
        tasks.cancel_scope.cancel()


async def test_what_was_erased_while_a_process_did_not_run_goes_when_it_starts(tmp_path, url):
    async with process(tmp_path / "one", url) as one:
        async with process(tmp_path / "other", url) as other:
            await one.store.create_tape("telegram:1")
            [gone] = await one.store.append_many("telegram:1", [message("user", WORD)])
            await other.vectors.catch_up("telegram:1")
        await one.store.erase("telegram:1", [without(gone)])
    async with process(tmp_path / "other", url) as other:
        assert set(vectors_of(other, "telegram:1")) == {gone.id}
        await make_remote_erasures(other).apply_new()
        assert vectors_of(other, "telegram:1") == {}
