"""A read of states that is under way does not bring back a state from before a write or a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio

from bot.tape.state_reads import (
    TapeState,
    begin_session_reads,
    current_reads,
    forget_state,
    shared_state_reads,
)


class SlowStore:
    """Answers with what it held when it was asked, once it may."""

    def __init__(self) -> None:
        self.version = 1
        self.asked = anyio.Event()
        self.may_answer = anyio.Event()

    async def states(self, tapes: Sequence[str]) -> Mapping[str, TapeState]:
        version = self.version
        self.asked.set()
        await self.may_answer.wait()
        return {tape: TapeState(version, 1, 0, None) for tape in tapes}


async def read_version(store: SlowStore) -> int:
    reads = current_reads()
    assert reads is not None
    state = await reads.state("notes", store.states)
    assert state is not None
    return state.version


async def read_in_block(store: SlowStore) -> None:
    with shared_state_reads():
        await read_version(store)


async def test_a_session_sees_its_own_write_though_an_older_read_answers_after_it() -> None:
    begin_session_reads()
    store = SlowStore()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_in_block, store)
        await store.asked.wait()
        store.version = 2
        forget_state("notes")
        store.may_answer.set()
    with shared_state_reads():
        assert await read_version(store) == 2


async def test_a_message_sees_what_is_older_though_an_older_read_answers_after_it() -> None:
    begin_session_reads()
    store = SlowStore()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_in_block, store)
        await store.asked.wait()
        store.version = 2
        with shared_state_reads(anew=True):
            store.may_answer.set()
            await anyio.wait_all_tasks_blocked()
            assert await read_version(store) == 2
