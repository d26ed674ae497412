"""Strange addresses and servers are told of in words, without secrets, and change nothing."""

from __future__ import annotations

import logging
import re
import traceback

import anyio
import psycopg
import pytest

from bot.core.database.connections import Database, connection_parameters
from bot.core.database.schema import check_schema, create_schema
from bot.core.errors import DatabaseUnavailable, SettingsError

PASSWORD = "kvothe"


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


async def test_who_is_not_let_in_reads_why_and_no_password(url, caplog):
    caplog.set_level(logging.DEBUG)
    url = re.sub("//[^@/]*@", f"//nobody:{PASSWORD}@", url)
    with anyio.fail_after(20), pytest.raises(DatabaseUnavailable, match='"nobody"') as raised:
        await Database(url, retry_seconds=0.5).open()
    assert PASSWORD not in "".join(traceback.format_exception(raised.value)) + caplog.text


async def test_a_user_without_rights_is_told_so(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop role if exists weak")
        connection.execute("create role weak login")
    weak = Database(re.sub("//[^@/]*@", "//weak@", url), retry_seconds=3)
    await weak.open()
    try:
        with pytest.raises(DatabaseUnavailable, match="does not let this user"):
            await check_schema(weak)
        with pytest.raises(DatabaseUnavailable, match="does not let this user"):
            await create_schema(weak)
    finally:
        await weak.close()
