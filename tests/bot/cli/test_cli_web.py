"""``tapebot web``: links and tokens from the shell, through a running bot."""

from __future__ import annotations

import re

import anyio
import anyio.to_thread
import pytest

from bot.bus.access.control import open_access_control
from bot.cli.main import main
from bot.inspector.access.control_handlers import web_handlers
from bot.inspector.access.logins import LoginService
from bot.runtime.control_socket import serve_control
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock


@pytest.fixture(autouse=True)
def home(bare, monkeypatch):
    monkeypatch.setenv("TAPEBOT_HOME", str(bare / "home"))
    (bare / "home").mkdir()
    return bare / "home"


@pytest.fixture
async def logins(home):
    """Logins of a bot that runs."""
    clock = ManualClock()
    async with (
        open_access_control(home, clock=clock) as access_control,
        anyio.create_task_group() as tasks,
    ):
        made = LoginService(InMemoryTapeStore(), access_control, clock, "http://127.0.0.1:8020")
        await tasks.start(serve_control, home, web_handlers(made, "Ada"))
        yield made
        tasks.cancel_scope.cancel()


async def shell(*arguments: str) -> int:
    with anyio.fail_after(30):
        return await anyio.to_thread.run_sync(lambda: main(["web", *arguments]))


async def test_a_link_from_the_shell_logs_in_who_runs_the_bot_once(logins, capsys):
    assert await shell("link") == 0
    link = capsys.readouterr().out.strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:8020/enter#[\w-]{43}", link)
    opened = await logins.log_in_with_link(link.partition("#")[2])
    assert (opened.visitor.id, opened.visitor.name, opened.visitor.role) == (
        "local",
        "Ada",
        "owner",
    )
    assert await logins.login_store.find_one_time_login(link.partition("#")[2]) is None


async def test_tokens_are_made_listed_and_taken_back(logins, capsys):
    assert await shell("tokens") == 0
    assert "no tokens" in capsys.readouterr().out
    assert await shell("token", "backup") == 0
    token = capsys.readouterr().out.strip()
    found = await logins.login_store.token(token)
    assert found is not None
    assert found.visitor == "local"
    assert await shell("tokens") == 0
    listed = capsys.readouterr().out
    assert "backup  since 2026-02-10" in listed
    assert token not in listed
    assert await shell("revoke", "backup") == 0
    assert await logins.login_store.token(token) is None
    assert await shell("revoke", "backup") == 1
    assert "there is no token backup" in capsys.readouterr().err
