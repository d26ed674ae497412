"""The runbook's restore, played: a base backup, archived WAL, and a bot that goes on from a moment before."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest
from fleet_books import close_books
from fleet_database import check_database, rows, tapes_in
from fleet_processes import Fleet
from fleet_traffic import Traffic
from fleet_world import World, open_world
from platform_stage import now
from preloaded import environment, run_program
from waiting import until

from testkit.postgres import PostgresServer

SEED = 20_261_125

_QUIET = """
select (select count(*) from tapebot.inbound where kind = 'in')
    + (select count(*) from tapebot.outbox) + (select count(*) from tapebot.spool where raw is not null)
"""


class Vault:
    """Where base backups and WAL are kept, apart from the server that may be lost."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.wal = self.folder / "wal"
        self.base = self.folder / "base"
        self.wal.mkdir()

    def archiving(self) -> PostgresServer:
        """Return a server that archives its WAL here, as the runbook sets it up."""
        server = PostgresServer(
            durable=True,
            settings={
                "archive_mode": "on",
                "archive_command": "true",
                "archive_timeout": "60",
            },
        )
        # The runbook's, with its folders.
        server._settings["archive_command"] = (
            f"cd {self.wal} && test ! -f %f && cp {server._data}/%p .%f && sync .%f && mv .%f %f"
        )
        server.own(self.folder, self.wal)
        return server

    def back_up(self, server: PostgresServer) -> None:
        server._command(
            "pg_basebackup", "-d", server.url("postgres"), "-D", self.base, "-c", "fast"
        )

    def tidy(self, server: PostgresServer) -> None:
        label = (self.base / "backup_label").read_text()
        first = re.search(r"^START WAL LOCATION.*file (.*)\)$", label, re.MULTILINE)
        assert first is not None
        server._command("pg_archivecleanup", self.wal, first[1])

    def restored(self, moment: str) -> PostgresServer:
        """Return a server that was put back to a moment, started and writable."""
        server = PostgresServer(
            durable=True,
            settings={
                "restore_command": f"cp {self.wal}/%f %p",
                "recovery_target_time": moment,
                "recovery_target_action": "promote",
            },
        )
        shutil.rmtree(server._data)
        subprocess.run(["cp", "-a", self.base, server._data], check=True)
        signal = server._data / "recovery.signal"
        signal.touch()
        server.own(signal)
        server.start()
        return server


def tapebot(*arguments: str, url: str, home: Path) -> str:
    given = environment(home, TAPEBOT_DATABASE_URL=url)
    done = run_program(["-m", "bot", *arguments], environment=given, cwd=home, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def asked(url: str, sql: str) -> Any:
    """Return the first value that a statement returns."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        [value] = await (await connection.execute(sql.encode())).fetchone()
        return value


async def until_said(url: str, sql: str, wanted: Any) -> None:
    async def is_said() -> bool:
        return await asked(url, sql) == wanted

    await until(is_said, every=0.1)


async def archived_until_now(url: str) -> None:
    segment = await asked(url, "select pg_walfile_name(pg_switch_wal())")
    archived = f"select last_archived_wal >= '{segment}' from pg_stat_archiver"
    await until_said(url, archived, wanted=True)


async def talk_and_lose_the_server(
    fleet: Fleet, traffic: Traffic, keep: Vault
) -> tuple[str, float]:
    """Talk through a backup and past a moment; return the moment, by the server's clock and by ours."""
    world = fleet.world
    assert world.server is not None
    assert world.database is not None
    await traffic.begin()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(traffic.talk, 20)
        await anyio.to_thread.run_sync(keep.back_up, world.server)
    await traffic.settled()
    # Some turns are in the middle at this moment.
    half = len(world.ledger.said) + 20
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(traffic.talk, 40)
        await fleet.until(
            lambda: len(world.ledger.said) >= half and world.ledger.open, "nobody was in the middle"
        )
        ours = now()
        moment = await asked(world.database, "select clock_timestamp()::text")
    # However long it took to ask for it, some is said after it.
    await traffic.talk(20)
    await traffic.settled()
    await fleet.stop_all()
    await archived_until_now(world.database)
    written = {one.name for one in keep.wal.iterdir()}
    await anyio.to_thread.run_sync(keep.tidy, world.server)
    # Meanwhile some may have been written.
    left = {one.name for one in keep.wal.iterdir()}
    assert written & left
    assert written - left
    await anyio.to_thread.run_sync(world.server.close)
    return moment, ours


async def start_again(fleet: Fleet, server: PostgresServer) -> None:
    world = fleet.world
    assert world.database is not None
    world.server, world.database = server, server.url(world.database.rpartition("/")[2])
    for member in [*fleet.members.values()]:
        await fleet.start(member)


def divided(world: World, seen: set[tuple[str, str]]) -> tuple[set[str], set[str]]:
    """Return the ids that Telegram sends again and those that nobody has any more."""
    gone = [one for one in world.ledger.said if (f"telegram:{one.chat}", one.id) not in seen]
    again = {one.id for one in gone if one.chat % 2}
    return again, {one.id for one in gone} - again


@pytest.mark.family("fleets")
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_bot_restored_to_a_moment_knows_all_that_it_had_answered_and_goes_on(
    tmp_path: Path,
) -> None:
    """What came after the moment is forgotten, unless the platform sends it again; nothing is there twice."""
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="tapebot-vault-") as folder:
        keep = Vault(folder)
        before = await anyio.to_thread.run_sync(keep.archiving)
        after = None
        try:
            await anyio.to_thread.run_sync(before.start)
            url = before.create()
            tapebot("db", "create", url=url, home=tmp_path)
            async with open_world(chance, people=8, database=url, server=before) as world:
                fleet = Fleet(world, tmp_path)
                async with fleet.running(gateways=1, workers=2):
                    traffic = Traffic(fleet, chance, rate=20, resent=0)
                    moment, ours = await talk_and_lose_the_server(fleet, traffic, keep)
                    answered = {
                        (f"telegram:{one.chat}", one.id)
                        for one in world.ledger.said
                        if one.shown_at is not None and one.shown_at < ours
                    }
                    after = await anyio.to_thread.run_sync(keep.restored, moment)
                    await until_said(
                        after.url("postgres"), "select pg_is_in_recovery()", wanted=False
                    )
                    url = after.url(url.rpartition("/")[2])
                    assert "have this version" in tapebot("db", "status", url=url, home=tmp_path)
                    await start_again(fleet, after)
                    await goes_on(fleet, traffic, answered, ours)
        finally:
            before.close()
            if after is not None:
                after.close()


async def goes_on(
    fleet: Fleet, traffic: Traffic, answered: set[tuple[str, str]], ours: float
) -> None:
    """See that the restored bot finishes what it had begun, takes what is sent again, and talks on."""
    world = fleet.world
    assert world.database is not None
    await until_said(world.database, _QUIET, 0)
    seen = set(await rows(fleet, "select session, id from tapebot.seen"))
    assert len(answered) > 20
    assert answered <= seen
    again, lost = divided(world, seen)
    assert again
    assert lost
    known = next(one for one in world.ledger.said if (f"telegram:{one.chat}", one.id) in seen)
    # Each is put before the others.
    for delivery in reversed([*world.telegram.records.updates]):
        message = delivery.update.get("message", {})
        if str(message.get("message_id")) in again | {known.id}:
            world.telegram.redeliver(delivery)
    count = len(seen) + len(again)
    await until_said(world.database, "select count(*) from tapebot.seen", count)
    await until_said(world.database, _QUIET, 0)
    # Whatever was shown from the moment on may have been shown once more.
    fleet.blow("restored", None, ours)
    world.ledger.said[:] = [one for one in world.ledger.said if one.id not in lost]
    await traffic.talk(20)
    await traffic.settled()
    await fleet.stop_all()
    async with tapes_in(world.database) as read:
        await close_books(fleet, read)
    await check_database(fleet)
