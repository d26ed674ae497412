"""What the runbook gives to psql does what it says, on a real server."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from databases import server

from bot.bus import Address, Inbound, Sender
from bot.bus.postgres import PostgresBus
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups

RUNBOOK = Path(__file__).parents[2] / "deploy" / "RUNBOOK.md"


def block(first: str) -> str:
    text = RUNBOOK.read_text(encoding="utf-8")
    [found] = [
        one for one in re.findall(r"```sql\n(.*?)```", text, re.DOTALL) if one.startswith(first)
    ]
    return found


def psql(url: str, text: str) -> str:
    done = subprocess.run(
        [server().program("psql"), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", url],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(number: int) -> Inbound:
    text = f"It's number {number}, with \x00, \ud800 and a \\ in it"
    return Inbound(
        Address("telegram", "42"), str(number), Sender("42", "Ada"), text, datetime.now(UTC)
    )


@pytest.mark.slow
async def test_a_message_that_was_set_aside_is_found_and_put_back_whole(
    url: str, tmp_path: Path
) -> None:
    """Behind what waits in its session, and not a letter of it is another."""
    database = Database(url)
    await database.open()
    wakeups = Wakeups(database)
    bus = PostgresBus(database, wakeups, holder="here", max_queued_messages=9, exports=tmp_path)
    try:
        port = bus.channel("telegram")
        for number in (1, 2):
            await port.publish(said(number))
        [[buried]] = await database.fetch("select min(id) from tapebot.inbound")
        await database.fetch(
            "with gone as (delete from tapebot.inbound where id = %s returning *)"
            " insert into tapebot.dead_letter select id, session, body, reads from gone",
            [buried],
        )

        rows = await anyio.to_thread.run_sync(psql, url, block("select id, session"))
        [line] = rows.splitlines()
        assert line.startswith(f"{buried}|telegram:42|")

        back = block(r"\set id").replace(r"\set id 17", rf"\set id {buried}")
        await anyio.to_thread.run_sync(psql, url, back)
        assert not await anyio.to_thread.run_sync(psql, url, block("select id, session"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wakeups.run)
            tasks.start_soon(bus.run)
            with anyio.fail_after(20):
                # What stood behind it becomes visible within an hour; nobody wants to wait for that here.
                await database.fetch("update tapebot.inbound set free_at = now()")
                inbox = await bus.claim()
                got = [await inbox.receive() for _ in range(2)]
            tasks.cancel_scope.cancel()
        assert [one.inbound.id for one in got] == ["2", "1"]
        assert got[1].inbound.text == said(1).text
    finally:
        await bus.aclose()
        await database.close()


def test_every_statement_of_the_runbook_is_of_one_of_these_kinds() -> None:
    """One that is added is played, too."""
    text = RUNBOOK.read_text(encoding="utf-8")
    firsts = [one.split("\n")[0] for one in re.findall(r"```sql\n(.*?)```", text, re.DOTALL)]
    known = ("select convert_from", "select distinct on", "select id, session", r"\set id")
    assert [one for one in firsts if not one.startswith(known)] == []
    assert len(firsts) == len(known)
