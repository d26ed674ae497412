"""Where PostgreSQL's answer is lost, a change is done once, or it is said that it may or may not be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import psycopg
import pytest
from databases import WAITING, server
from postgres_talk import PATIENCE, TAPE, gone, says, texts
from postgres_tapes import opened
from waiting import until

from bot.core.errors import TapeUnavailable, TapeWriteError
from bot.tape.store import TapeStore
from testkit.wire_cutter import WireCutter


def through(url: str, wire: WireCutter) -> str:
    return url.replace(f":{server().port}/", f":{wire.port}/")


# Answers that are lost.


async def _appended(store: TapeStore) -> Any:
    written = await store.append_many(TAPE, [says("x"), says("y")], expect=2)
    assert written == await store.read(TAPE, 3)
    return [entry.id for entry in written]


async def _archived(store: TapeStore) -> Any:
    segment = await store.archive(TAPE, [says("x")], expect=2)
    assert await store.segments(TAPE) == [segment]
    return segment.last_id


async def _forked(store: TapeStore) -> Any:
    await store.fork(TAPE, "child")
    return texts(await store.read("child"))


async def _reset(store: TapeStore) -> Any:
    await store.reset(TAPE, expect=2)
    return [entry.id for entry in await store.read(TAPE)]


async def _erased(store: TapeStore) -> Any:
    number = await store.erase(TAPE, [gone(entry) for entry in await store.read(TAPE, 2)])
    return (number, await store.erasures(TAPE), texts(await store.read(TAPE)))


async def _made(store: TapeStore) -> Any:
    await store.create_tape("new", replace_if_exists=True)
    return await store.version("new")


@pytest.mark.parametrize(
    ("change", "table", "outcome"),
    [
        (_appended, "tapebot.tape", [3, 4]),
        (_archived, "tapebot.tape", 2),
        (_reset, "tapebot.tape", [3]),
        (_erased, "tapebot.tape", (1, 1, [""])),
        (_forked, "tapebot.entry", ["before"]),
        (_made, "tapebot.entry", 1),
    ],
    ids=["append", "archive", "reset", "erase", "fork", "create"],
)
async def test_a_change_whose_answer_was_lost_is_done_once(
    url: str,
    workspace: str,
    change: Callable[[TapeStore], Awaitable[Any]],
    table: str,
    outcome: Any,
):
    """The wire is cut while the change waits in the server; it is asked for again, and both come to be done."""
    found: list[Any] = []
    with anyio.fail_after(PATIENCE):
        async with (
            WireCutter(server().port) as wire,
            opened(through(url, wire), workspace=workspace, hears=False) as store,
        ):
            await store.create_tape(TAPE)
            await store.append(TAPE, says("before"))

            async def act() -> None:
                found.append(await change(store))

            async with (
                anyio.create_task_group() as tasks,
                await psycopg.AsyncConnection.connect(url) as other,
            ):
                await other.execute(f"lock table {table} in share mode".encode())
                tasks.start_soon(act)
                await _waits(url, 1)
                await wire.cut()
                await wire.heal()
                await _waits(url, 2)
                await other.rollback()
    assert found == [outcome]


async def _waits(url: str, count: int) -> None:
    """Wait until so many statements wait for a lock."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:

        async def so_many() -> bool:
            return len(await (await connection.execute(WAITING)).fetchall()) >= count

        await until(so_many)


# A server that is away.


@pytest.mark.slow
async def test_a_server_that_is_away_is_told_of_without_secrets_and_a_write_is_not_said_to_be_done(
    url,
    workspace,
):
    with anyio.fail_after(90):
        async with WireCutter(server().port) as wire:
            address = through(url, wire).replace("tapebot@", "tapebot:hunter2@")
            async with opened(address, workspace=workspace, patience=0.5, hears=False) as store:
                await store.create_tape(TAPE)
                await wire.cut()
                with pytest.raises(TapeUnavailable, match="could not be read") as read:
                    await store.read(TAPE)
                with pytest.raises(TapeWriteError, match="may or may not be on the tape") as wrote:
                    await store.append(TAPE, says("secret words"))
                for raised in (read, wrote):
                    assert "hunter2" not in str(raised.value)
                    assert "secret words" not in str(raised.value)
            async with opened(url, workspace=workspace) as beside:
                assert await beside.version(TAPE) == 1
