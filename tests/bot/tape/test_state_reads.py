"""A session reads the states of all the tapes that it looks at in one round trip, and misses no change before its message."""

from __future__ import annotations

import pytest
from postgres_tapes import opened

from bot.core.errors import TapeNotFound
from bot.tape.entries import message
from bot.tape.state_reads import begin_session_reads, shared_state_reads
from bot.tape.stores.postgres import PostgresTapeStore

pytestmark = pytest.mark.slow

TAPES = ("people", "person", "files")


@pytest.fixture
async def stores(url, workspace):
    """Two processes' stores: of the session, and of somebody else."""
    async with opened(url, workspace=workspace) as ours, opened(url, workspace=workspace) as other:
        begin_session_reads()
        for name in TAPES[:2]:
            await ours.create_tape(name)
        yield ours, other


async def look(store: PostgresTapeStore) -> list[int | None]:
    found: list[int | None] = []
    for name in TAPES:
        try:
            found.append(await store.version(name) + await store.erasures(name))
        except TapeNotFound:
            found.append(None)
    return found


def trips(store: PostgresTapeStore) -> int:
    return store._database.statistics()["requests_num"]


async def test_all_states_that_a_session_looks_at_are_one_round_trip(stores):
    ours, _ = stores
    with shared_state_reads(anew=True):
        await look(ours)
    before = trips(ours)
    with shared_state_reads(anew=True):
        assert await look(ours) == [1, 1, None]
        assert await look(ours) == [1, 1, None]
    assert trips(ours) - before == 1


async def test_a_message_sees_what_others_wrote_before_it(stores):
    ours, other = stores
    with shared_state_reads(anew=True):
        await look(ours)
    await other.append_many("people", [message("user", "x")])
    await other.create_tape("files")
    with shared_state_reads(anew=True):
        assert await look(ours) == [2, 1, 1]


async def test_a_session_sees_its_own_writes_at_once(stores):
    ours, _ = stores
    with shared_state_reads(anew=True):
        await look(ours)
        await ours.append_many("people", [message("user", "x")])
        await ours.create_tape("files")
        assert await look(ours) == [2, 1, 1]
