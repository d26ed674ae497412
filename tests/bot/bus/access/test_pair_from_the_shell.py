"""``tapebot pair``: beside a running bot, and without one."""

from __future__ import annotations

import re

import anyio
import anyio.to_thread
import pytest

from bot.bus import AccessDecision, AccessRequest, Address, Sender
from bot.bus.access.control import open_access_control
from bot.cli.main import main
from bot.runtime.control_socket import serve_control

STRANGER = AccessRequest(Address("telegram", "9"), Sender("9", "Eve"), True, ("9",), "hello")


@pytest.fixture(autouse=True)
def home(bare, monkeypatch):
    monkeypatch.setenv("TAPEBOT_HOME", str(bare / "home"))
    monkeypatch.setattr("bot.bus.access.file_store._LOCK_SECONDS", 0.0)
    return bare / "home"


async def shell(*arguments: str) -> int:
    with anyio.fail_after(30):
        return await anyio.to_thread.run_sync(lambda: main(["pair", *arguments]))


async def code_of(access_control) -> str:
    found = re.search(r"pair (\S+)", (await access_control.authorize(STRANGER)).reply or "")
    assert found is not None
    return found[1]


async def test_a_running_bot_lets_in_whom_the_shell_approves_and_tells_them(home, capsys):
    told = []

    async def tell(address: Address, _: str) -> None:
        told.append(address.session)

    async with (
        open_access_control(home, send_notice=tell) as access_control,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(serve_control, home, {"pair": access_control.handle})
        code = await code_of(access_control)
        assert await shell() == 0
        assert "`telegram:9` `Eve`, asked just now" in capsys.readouterr().out
        assert await shell(code) == 0
        assert "and I told them" in capsys.readouterr().out
        assert await access_control.authorize(STRANGER) == AccessDecision("member")
        tasks.cancel_scope.cancel()
    assert told == ["telegram:9"]


async def test_without_a_bot_the_shell_lets_in_by_itself(home, capsys):
    async with open_access_control(home) as access_control:
        code = await code_of(access_control)
    assert await shell(code) == 0
    assert "do it yourself" in capsys.readouterr().out
    async with open_access_control(home) as access_control:
        assert await access_control.authorize(STRANGER) == AccessDecision("member")
