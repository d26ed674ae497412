"""A database that version 0.1 wrote is opened by this one, verifies, says the same, and goes on."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from databases import drop, server

ROOT = Path(__file__).parents[2]
WRITTEN = Path(__file__).parent / "database_0_1"

Program = Callable[..., str]

pytestmark = [pytest.mark.slow, pytest.mark.family("earlier versions")]


@pytest.fixture
def tapebot(tmp_path: Path) -> Iterator[Program]:
    """Runs the program on a copy of the database."""
    url = server().create()
    subprocess.run(
        [server().program("psql"), "--quiet", "--set", "ON_ERROR_STOP=1", url],
        input=gzip.decompress((WRITTEN / "dump.sql.gz").read_bytes()),
        stdout=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        timeout=60,
        check=True,
    )
    environment = {"PYTHONPATH": str(ROOT), "TAPEBOT_DATABASE_URL": url, "TZ": "UTC"}
    environment |= {"TAPEBOT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}

    def run(*arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "bot", *arguments],
            env=environment | {"TAPEBOT_WEB_LISTEN": "off"},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield run
    drop(url)


def test_it_is_brought_to_this_version_and_verifies(tapebot):
    tapebot("db", "migrate")
    tapebot("db", "status")
    assert "no problems" in tapebot("tape", "verify")


@pytest.mark.parametrize("session", ["console:local", "person:console:local"])
def test_its_tapes_are_exported_as_they_were(tapebot, tmp_path, session):
    tapebot("db", "migrate")
    out = tmp_path / "out.jsonl"
    tapebot("tape", "export", session, "--format", "jsonl", "--output", str(out))
    expected = WRITTEN / f"{session.replace(':', '_')}.jsonl"
    assert out.read_bytes() == expected.read_bytes()


def test_its_conversation_goes_on(tapebot):
    tapebot("db", "migrate")
    said = tapebot(stdin="/problem switch general\nWhat is my sister called?\n/memory\n")
    assert "Clara" in said
    assert "The user is allergic to peanuts." in said
    assert "no problems" in tapebot("tape", "verify")
