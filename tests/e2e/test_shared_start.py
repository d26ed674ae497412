"""Starting a process of several: what a person reads, and where; real programs on a real database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio.to_thread
import pexpect
import pytest
from databases import drop, fresh_database

from testkit.telegram.server import TelegramServer

pytestmark = [pytest.mark.slow, pytest.mark.family("starts")]

ROOT = Path(__file__).parents[2]
SECONDS = 60
TOKEN = "999:a-token-that-nobody-knows-of-at-all"
NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def url():
    made = fresh_database()
    yield made
    drop(made)


def environment(home: Path, url: str, **settings: str) -> dict[str, str]:
    """Return what a process of the fleet is started with, and nothing else."""
    home.mkdir()
    given = {"database_url": url, "home": str(home / "home"), "model": "offline"} | settings
    named = {f"TAPEBOT_{name.upper()}": value for name, value in given.items()}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)} | named


def started(role: str, home: Path, url: str, **settings: str) -> tuple[int, list[str]]:
    """Run a process that cannot start; return its exit code and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "bot", role],
        env=environment(home, url, **settings),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()


def at_a_terminal(role: list[str], home: Path, url: str, **settings: str) -> pexpect.spawn:
    return pexpect.spawn(
        sys.executable,
        ["-m", "bot", *role],
        env=environment(home, url, **settings) | {"TERM": "xterm-256color"},
        cwd=home,
        timeout=SECONDS,
        dimensions=(24, 160),
        encoding="utf-8",
    )


def test_a_gateway_without_a_platform_says_what_it_needs_in_one_line(tmp_path, url):
    code, said = started("gateway", tmp_path / "a", url)
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith("TAPEBOT_TELEGRAM_TOKEN: not set")


def test_a_port_of_the_operators_that_is_taken_is_told_in_one_line(tmp_path, url):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        code, said = started("worker", tmp_path / "a", url, operate_listen=taken)
    assert code == 2
    assert len(said) == 1
    assert said[0].startswith(f"TAPEBOT_OPERATE_LISTEN: cannot listen on {taken}")


async def test_a_gateway_with_a_token_that_telegram_does_not_know_says_so_in_one_line(
    tmp_path, url
):
    async with TelegramServer() as telegram:
        more = {"telegram_token": TOKEN, "telegram_api_base": telegram.url}
        code, said = await anyio.to_thread.run_sync(
            lambda: started("gateway", tmp_path / "a", url, **more)
        )
    assert code == 1
    assert len(said) == 1
    assert "does not accept the token" in said[0]
    assert TOKEN not in said[0]


def test_a_second_terminal_reads_that_another_has_the_console_and_has_it_next(tmp_path, url):
    first = at_a_terminal([], tmp_path / "a", url)
    first.expect_exact("you>")
    second = at_a_terminal([], tmp_path / "b", url)
    second.expect_exact("channel/console: another process holds it; waiting")
    first.sendeof()
    first.expect(pexpect.EOF)
    assert "another process" not in first.before
    second.expect_exact("you>")
    second.send("Hello there.\r")
    # The answer, which is no echo of what was typed.
    second.expect_exact("Tell me something about you")
    second.sendeof()
    second.expect(pexpect.EOF)
    for one in (first, second):
        one.wait()
        assert one.exitstatus == 0
