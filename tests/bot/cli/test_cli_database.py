"""The command line on the database that processes share."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
import psycopg
import pytest
from databases import drop, server

from bot.bus import Address
from bot.bus.access.access_list import AccessList, AllowedPerson, PairingRequest
from bot.bus.access.file_store import FILE
from bot.bus.access.store import encode
from bot.cli.main import main
from bot.core.clock import SystemClock
from bot.core.files import replace_file
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore

pytestmark = pytest.mark.slow

SINCE = datetime(2026, 2, 10, 12, tzinfo=UTC)


@pytest.fixture
def home(bare, monkeypatch) -> Path:
    """A home folder of this test's own."""
    monkeypatch.setenv("TAPEBOT_HOME", str(bare / "home"))
    return bare / "home"


@pytest.fixture
def url(home, url, monkeypatch) -> str:
    monkeypatch.setenv("TAPEBOT_DATABASE_URL", url)
    return url


async def _said(home: Path) -> None:
    store = FileTapeStore(home / "tapes", sync=False)
    for name, words in (("telegram:42", "the samovar is blue"), ("telegram:43", "I like tea")):
        await store.create_tape(name)
        await store.append(name, message("user", words, sender={"id": "7", "name": "Ada"}))
        await store.archive(name)
    await store.close()


@pytest.fixture
def moved(home, url, capsys) -> str:
    """The database, with two tapes and a roster that were moved into it; the home is gone."""
    anyio.run(_said, home)
    people = (AllowedPerson("telegram:7", "owner", "Ada", SINCE),)
    now = SystemClock().now()
    ask = PairingRequest("ABCD2345", "telegram:99", "Eve", Address("telegram", "99"), now, now)
    replace_file(home / FILE, encode(AccessList(people, (), (ask,))))
    assert main(["migrate", "files", "postgres"]) == 0
    capsys.readouterr()
    home.rename(home.with_name("elsewhere"))
    return url


def test_an_empty_database_is_set_up_and_says_so(home, monkeypatch, capsys):
    url = server().create()
    monkeypatch.setenv("TAPEBOT_DATABASE_URL", url)
    assert main(["tape", "list"]) == 1
    assert "tapebot db create" in capsys.readouterr().err
    assert main(["db", "status"]) == 1
    assert "no tables yet" in capsys.readouterr().out
    assert main(["db", "create"]) == 0
    assert "were created" in capsys.readouterr().out
    assert main(["db", "create"]) == 0
    assert "there already" in capsys.readouterr().out
    assert main(["db", "status"]) == 0
    assert "tapes: 0, entries: 0, waiting messages: 0, leases held: 0" in capsys.readouterr().out
    drop(url)


def test_tapes_in_the_database_are_listed_shown_found_checked_and_exported(moved, capsys, tmp_path):
    assert main(["tape", "list"]) == 0
    assert capsys.readouterr().out == "telegram:42\t3 entries\ntelegram:43\t3 entries\n"
    assert main(["tape", "show", "telegram:42"]) == 0
    assert "Ada: the samovar is blue" in capsys.readouterr().out
    assert main(["tape", "search", "samovar"]) == 0
    assert "telegram:42" in capsys.readouterr().out
    assert main(["tape", "search", "locomotive"]) == 1
    capsys.readouterr()
    assert main(["tape", "verify"]) == 0
    assert capsys.readouterr().out == "tapes: 2, entries checked: 6; no problems\n"
    assert main(["tape", "export", "--output", str(tmp_path / "out")]) == 0
    assert len(list((tmp_path / "out").glob("*.jsonl"))) == 2
    assert main(["tape", "show", "telegram:44"]) == 1
    assert main(["memory", "files", "telegram:42", "--to", str(tmp_path / "files")]) == 0
    assert (tmp_path / "files" / "MEMORY.md").exists()


def test_a_row_that_is_missing_or_damaged_is_found_by_verify(moved, capsys):
    with psycopg.connect(moved, autocommit=True) as connection:
        connection.execute("update tapebot.entry set line = '[' where id = 2 and tape = 1")
    assert main(["tape", "verify", "telegram:42"]) == 1
    assert "telegram:42: " in capsys.readouterr().out
    assert main(["tape", "verify", "telegram:43"]) == 0


def test_a_code_is_approved_in_the_database_without_a_running_process(moved, capsys):
    assert main(["pair"]) == 0
    assert "Ada" in capsys.readouterr().out
    assert main(["pair", "WRONG234"]) == 1
    capsys.readouterr()
    assert main(["pair", "ABCD2345"]) == 0
    assert "Eve" in capsys.readouterr().out
    with psycopg.connect(moved, autocommit=True) as connection:
        told = connection.execute("select channel, session from tapebot.outbox").fetchall()
    assert told == [("telegram", "telegram:99")]
    assert main(["pair"]) == 0
    assert "Eve" in capsys.readouterr().out


@pytest.mark.slow
def test_the_doctor_says_what_is_wrong_with_a_database(home, monkeypatch, capsys):
    empty = server().create()
    monkeypatch.setenv("TAPEBOT_DATABASE_URL", empty)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "-> tapebot db create" in said
    drop(empty)
    monkeypatch.setenv(
        "TAPEBOT_DATABASE_URL", "postgresql://ada:secret@127.0.0.1:1/none?connect_timeout=1"
    )
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "cannot be reached" in said
    assert "secret" not in said


def test_a_move_tells_what_it_did_and_how_to_go_back(home, url, capsys):
    anyio.run(_said, home)
    assert main(["migrate", "files", "postgres", "--dry-run"]) == 0
    assert "would move\ttelegram:42: up to entry 3, 1 sealed segment\n" in capsys.readouterr().out
    assert main(["migrate", "files", "postgres"]) == 0
    said = capsys.readouterr().out
    assert "moved\ttelegram:42: 3 entries, SHA-256 " in said
    assert "2 tapes, 6 entries: identical in both places" in said
    assert f"The files in {home} are unchanged" in said
    assert main(["migrate", "files", "postgres"]) == 0
    assert "there\ttelegram:42: 3 entries" in capsys.readouterr().out
