"""The control socket: real sockets, whoever is at the other end."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from bot.core.errors import BusError
from bot.runtime import control_socket as control
from bot.runtime.control_socket import SOCKET, call_control, serve_control


async def echo(request):
    return {"ok": True, "text": request["text"]}


async def refuse(_):
    raise BusError("the disk is full")


async def hang(_):
    await anyio.sleep_forever()


async def long(_):
    return {"ok": True, "text": "x" * 900_000}


HANDLERS = {"echo": echo, "refuse": refuse, "hang": hang, "long": long}
UNREAD = json.dumps({"do": "long"}).encode() + b"\n"


@asynccontextmanager
async def served(home: Path):
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            await tasks.start(serve_control, home, HANDLERS)
            yield
            tasks.cancel_scope.cancel()


async def test_the_socket_is_its_owners_alone_and_goes_when_the_bot_does(tmp_path):
    async with served(tmp_path):
        mode = (tmp_path / SOCKET).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("begun", [b"", b'{"do": "ec', UNREAD], ids=["nothing", "half", "unread"])
async def test_many_who_send_no_whole_request_or_read_no_answer_hold_nobody_up(
    tmp_path, monkeypatch, begun
):
    monkeypatch.setattr(control, "_SECONDS", 60)
    async with served(tmp_path):
        async with AsyncExitStack() as held:
            for _ in range(200):
                stream = await held.enter_async_context(await anyio.connect_unix(tmp_path / SOCKET))
                if begun:
                    await stream.send(begun)
            asked = {"do": "echo", "text": "y"}
            assert await call_control(tmp_path, asked) == {"ok": True, "text": "y"}
        # anyio does not bear that a stream is cancelled in the moment when it becomes writable.
        await anyio.wait_all_tasks_blocked()


async def test_the_socket_of_a_dead_process_is_replaced(tmp_path):
    dead = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()"
    await anyio.to_thread.run_sync(
        lambda: subprocess.run([sys.executable, "-c", dead, str(tmp_path / SOCKET)], check=True)
    )
    assert (tmp_path / SOCKET).exists()
    assert await call_control(tmp_path, {"do": "echo", "text": ""}) is None
    async with served(tmp_path):
        assert (await call_control(tmp_path, {"do": "echo", "text": ""})) is not None


async def test_the_socket_of_a_living_process_is_left_alone(tmp_path, caplog):
    async with served(tmp_path):
        with anyio.fail_after(30):
            await serve_control(tmp_path, {})
        assert "another process serves it" in caplog.text
        assert (await call_control(tmp_path, {"do": "echo", "text": ""})) is not None


async def test_a_home_folder_with_a_long_path_has_a_socket_as_well(tmp_path):
    home = tmp_path / ("long" * 40)
    home.mkdir()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    async with served(home):
        assert (home / SOCKET).is_socket()
        reply = await call_control(home, {"do": "echo", "text": "far"})
    assert reply == {"ok": True, "text": "far"}
    assert list(home.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
