"""Logins of a workspace's processes are in their database."""

from __future__ import annotations

import databases

from bot.core.database.connections import Database
from bot.mcp_client.postgres_login_store import PostgresLoginStore


async def test_a_login_that_one_process_keeps_is_found_by_the_others():
    url = databases.fresh_database()
    one, other = Database(url), Database(url)
    try:
        for database in (one, other):
            await database.open()
        kept, read = PostgresLoginStore(one), PostgresLoginStore(other)
        assert await read.read("files") is None
        for login in ('{"tokens": {"access_token": "é"}}', "{}"):
            await kept.write("files", login)
            assert await read.read("files") == login
    finally:
        for database in (one, other):
            await database.close()
        databases.drop(url)
