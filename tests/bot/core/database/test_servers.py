"""Strange addresses and servers are told of in words, without secrets, and change nothing."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import anyio
import psycopg
import pytest
from databases import drop, fresh_database, server

from bot.core.database.connections import Database, connection_parameters
from bot.core.database.migrations import check_schema_version, migrate
from bot.core.errors import DatabaseUnavailable, SettingsError

PASSWORD = "kvothe"

DAWDLES = """
create function public.dawdle() returns event_trigger language plpgsql as $$
begin
    perform pg_sleep(4);
end $$;
create event trigger dawdle on ddl_command_end when tag in ('CREATE VIEW') execute function public.dawdle();
"""
"""One statement of the steps takes longer than the server allows, however fast it is."""


@pytest.fixture
def empty():
    made = server().create()
    yield made
    drop(made)


@pytest.fixture
def ready():
    made = fresh_database()
    yield made
    drop(made)


def alter(url, setting):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"alter database {url.rpartition('/')[2]} set {setting}")


async def migrated(url):
    database = Database(url, retry_seconds=3)
    await database.open()
    try:
        return await migrate(database)
    finally:
        await database.close()


@pytest.mark.parametrize("mark", ["/", "@", "%", "/@", "@/", ":/"])
def test_no_part_of_a_password_that_tears_the_address_apart_is_shown(mark):
    url = f"postgresql://bob:{PASSWORD[:3]}{mark}{PASSWORD[3:]}@127.0.0.1:1/db"
    with pytest.raises(SettingsError, match="%40") as raised:
        Database(url)
    told = "".join(traceback.format_exception(raised.value))
    told = told.replace(url, "")
    assert PASSWORD[:3] not in told.split("SettingsError", 1)[1]
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql:///name?host=/var/run/postgresql",
        "postgresql://bob:k%40%2F%3F%23@one:5432,two:5433/na%20me?sslmode=require",
        "postgresql://bob@%2Fvar%2Frun/name",
        "host=@abstract dbname=name user=bob",
        "postgresql://[::1]:5432/name",
    ],
)
def test_every_form_of_an_address_is_taken(url):
    assert connection_parameters(url)["client_encoding"] == "utf8"


def test_whatever_name_the_address_gives_its_connections_they_are_known_as_tapebots():
    name = connection_parameters("postgresql://h/n?application_name=my%20bot")["application_name"]
    assert name == "tapebot my bot"
    assert connection_parameters("postgresql://h/n?application_name=tapebot-migrate")[
        "application_name"
    ] == ("tapebot-migrate")


async def test_who_is_not_let_in_reads_why_and_no_password(ready, caplog):
    caplog.set_level(logging.DEBUG)
    url = re.sub("//[^@/]*@", f"//nobody:{PASSWORD}@", ready)
    with anyio.fail_after(20), pytest.raises(DatabaseUnavailable, match='"nobody"') as raised:
        await Database(url, retry_seconds=0.5).open()
    assert PASSWORD not in "".join(traceback.format_exception(raised.value)) + caplog.text


async def test_a_closed_database_says_so_at_once(ready):
    database = Database(ready)
    await database.open()
    await database.close()
    with anyio.fail_after(20), pytest.raises(DatabaseUnavailable, match="was closed"):
        await database.fetch("select 1")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_not_all_words_fit_into_is_not_set_up(empty, encoding):
    name = f"{empty.rpartition('/')[2]}_{encoding.lower()}"
    url = f"{empty.rpartition('/')[0]}/{name}"
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(
            f"create database {name} encoding '{encoding}' template template0 "
            "lc_collate 'C' lc_ctype 'C'"
        )
    with pytest.raises(DatabaseUnavailable, match=encoding):
        await migrated(url)
    drop(url)


async def test_a_server_with_little_patience_is_set_up_all_the_same(empty):
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(DAWDLES)
    alter(empty, "statement_timeout = '3s'")
    alter(empty, "lock_timeout = '3s'")
    assert await migrated(empty)
    assert await migrated(empty) == []


async def test_a_server_that_takes_no_writes_is_told_of_and_found_again_when_it_does(empty):
    alter(empty, "default_transaction_read_only = on")
    with anyio.fail_after(20), pytest.raises(DatabaseUnavailable, match="read-only"):
        await migrated(empty)


async def test_a_connection_to_what_became_a_standby_is_made_anew(ready):
    database = Database(ready, connections=1)
    await database.open()
    try:
        # As the server does it for all at once.
        await database.fetch("set default_transaction_read_only = on")
        with anyio.fail_after(30):
            await database.fetch("select tapebot.tell('topic')")
    finally:
        await database.close()


async def test_a_user_without_rights_is_told_so(ready):
    with psycopg.connect(ready, autocommit=True) as connection:
        connection.execute("drop role if exists weak")
        connection.execute("create role weak login")
    weak = Database(re.sub("//[^@/]*@", "//weak@", ready), retry_seconds=3)
    await weak.open()
    try:
        with pytest.raises(DatabaseUnavailable, match="does not let this user"):
            await check_schema_version(weak)
        with pytest.raises(DatabaseUnavailable, match="does not let this user"):
            await migrate(weak)
    finally:
        await weak.close()


def test_two_commands_that_migrate_at_once_each_end_well(empty, tmp_path):
    environment = {
        **os.environ,
        "TAPEBOT_DATABASE_URL": empty,
        "TAPEBOT_HOME": str(tmp_path / "home"),
    }
    command = [str(Path(sys.executable).with_name("tapebot")), "db", "migrate"]
    both = [
        subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [one.communicate(timeout=60)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert sum("no step run" in one for one in told) == 1
