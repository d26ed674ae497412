"""Starting a process of several: what a person reads, and where; real programs on a real database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio.to_thread
import pexpect
import psycopg
import pytest
from databases import drop, fresh_database

from testkit.telegram.server import TelegramServer

pytestmark = [pytest.mark.slow, pytest.mark.family("starts")]

ROOT = Path(__file__).parents[2]
SECONDS = 60
TOKEN = "999:a-token-that-nobody-knows-of-at-all"
NOBODY = "http://127.0.0.1:1"

STOPPED_AT_ONCE = """
import importlib, os, signal
from bot.runtime.settings import load_settings
serve = importlib.import_module("bot.runtime.app.serve")
serve._print = lambda _: os.kill(os.getpid(), signal.SIGTERM)
serve.run(load_settings(), "worker")
"""
"""A worker that is asked to stop in the moment in which it says that it is ready."""


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


def test_a_worker_that_is_asked_to_stop_as_soon_as_it_is_ready_stops_in_good_order(tmp_path, url):
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AT_ONCE],
        env=environment(tmp_path / "a", url),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


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


async def test_whoever_starts_a_gateway_at_a_terminal_reads_there_how_to_own_the_bot(tmp_path, url):
    """Nobody shows what would be sent to a console: a gateway has none."""

    def read(home: str, base: str, *said: str) -> str:
        more = {"telegram_token": TOKEN, "telegram_api_base": base}
        gateway = at_a_terminal(["gateway"], tmp_path / home, url, **more)
        shown = ""
        for text in said:
            gateway.expect_exact(text)
            shown += gateway.before
        gateway.sendintr()
        gateway.expect(pexpect.EOF)
        gateway.wait()
        assert gateway.exitstatus == 0
        return shown

    # Whether the token is right is not known before the platform has said so.
    assert "/claim" not in await anyio.to_thread.run_sync(read, "a", NOBODY, "no connection")
    async with TelegramServer(token=TOKEN) as telegram:
        await anyio.to_thread.run_sync(read, "b", telegram.url, "connected as", "/claim ")


def test_a_gateway_that_waits_for_its_turn_has_loaded_what_it_needs_by_then(tmp_path, url):
    """Else people would wait for that, too, whenever a gateway dies."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select tapebot.lease_take('channel/telegram', 'another', 600)")
    more = {"telegram_token": TOKEN, "telegram_api_base": NOBODY}
    gateway = at_a_terminal(["gateway"], tmp_path / "a", url, **more)
    gateway.expect_exact("channel/telegram: another process holds it; waiting")
    assert "aiohttp" in Path(f"/proc/{gateway.pid}/maps").read_text()
    gateway.sendintr()
    gateway.expect(pexpect.EOF)


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
