"""Where PostgreSQL's answer is lost, a change is done once, or it is said that it may or may not be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import psycopg
import pytest
from databases import WAITING, server
from postgres_tapes import PATIENCE, TAPE, opened, says, texts
from waiting import until

from bot.core.errors import TapeUnavailable, TapeWriteError
from bot.tape.store import TapeStore
from testkit.wire_cutter import WireCutter


def through(url: str, wire: WireCutter) -> str:
    return url.replace(f":{server().port}/", f":{wire.port}/")


@pytest.mark.parametrize(
    ("change", "table", "outcome"),
    [
        (lambda store: store.append_many(TAPE, [says("x"), says("y")], expect=2), "tape", "abxy"),
        (lambda store: store.archive(TAPE, [says("x")], expect=2), "tape", "abx"),
        (lambda store: store.reset(TAPE, [says("x")], expect=2), "tape", "x"),
        (lambda store: store.fork(TAPE, "child"), "entry", "abab"),
        (lambda store: store.create_tape(TAPE, replace_if_exists=True), "tape", ""),
    ],
    ids=["append", "archive", "reset", "fork", "create"],
)
async def test_a_change_whose_answer_was_lost_is_done_once(
    url: str,
    workspace: str,
    change: Callable[[TapeStore], Awaitable[Any]],
    table: str,
    outcome: str,
):
    """The wire is cut while the change waits in the server; it is asked for again, and both come to be done."""
    with anyio.fail_after(PATIENCE):
        async with (
            WireCutter(server().port) as wire,
            opened(through(url, wire), workspace=workspace, hears=False) as store,
        ):
            await store.create_tape(TAPE)
            await store.append(TAPE, says("ab"))
            async with (
                anyio.create_task_group() as tasks,
                await psycopg.AsyncConnection.connect(url) as other,
            ):
                await other.execute(f"lock table tapebot.{table} in share mode".encode())
                tasks.start_soon(change, store)
                await _waits(url, 1)
                await wire.cut()
                await wire.heal()
                await _waits(url, 2)
                await other.rollback()
            found = [
                text for tape in await store.list_tapes() for text in texts(await store.read(tape))
            ]
            assert "".join(found) == outcome


async def _waits(url: str, count: int) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:

        async def so_many() -> bool:
            return len(await (await connection.execute(WAITING)).fetchall()) >= count

        await until(so_many)


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
