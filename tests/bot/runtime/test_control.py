"""The control socket: real sockets, whoever is at the other end."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from bot.core.errors import BusError, TapebotError
from bot.runtime import control_socket as control
from bot.runtime.control_socket import SOCKET, call_control, serve_control


async def echo(request):
    return {"ok": True, "text": request["text"]}


async def refuse(_):
    raise BusError("the disk is full")


async def hang(_):
    await anyio.sleep_forever()


HANDLERS = {"echo": echo, "refuse": refuse, "hang": hang}


@asynccontextmanager
async def served(home: Path):
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            await tasks.start(serve_control, home, HANDLERS)
            yield
            tasks.cancel_scope.cancel()


async def sent(home: Path, data: bytes, *, end: bool = False) -> bytes:
    """Return everything that comes back."""
    answer = b""
    async with await anyio.connect_unix(home / SOCKET) as stream:
        try:
            await stream.send(data)
            if end:
                await stream.send_eof()
            while True:
                answer += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return answer


async def answered(home: Path):
    """Ask until it is answered: who is slow for a moment is cut off like whoever says nothing."""
    while True:
        try:
            return await call_control(home, {"do": "echo", "text": ""})
        except TapebotError as error:
            if "did not finish" not in str(error):
                raise


async def test_a_request_is_answered(tmp_path):
    async with served(tmp_path):
        reply = await call_control(tmp_path, {"do": "echo", "text": "Grüße\n"})
    assert reply == {"ok": True, "text": "Grüße\n"}


async def test_where_nothing_runs_there_is_no_answer(tmp_path):
    assert await call_control(tmp_path, {"do": "echo"}) is None
    assert await call_control(tmp_path / "missing", {"do": "echo"}) is None
    assert await call_control(tmp_path / ("x" * 120), {"do": "echo"}) is None
    (tmp_path / "file").touch()
    assert await call_control(tmp_path / "file", {"do": "echo"}) is None


async def test_the_socket_is_its_owners_alone_and_goes_when_the_bot_does(tmp_path):
    async with served(tmp_path):
        mode = (tmp_path / SOCKET).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
    assert list(tmp_path.iterdir()) == []


async def test_what_a_handler_refuses_is_told_with_its_reason(tmp_path):
    async with served(tmp_path):
        reply = await call_control(tmp_path, {"do": "refuse"})
    assert reply == {"ok": False, "text": "the disk is full"}


@pytest.mark.parametrize(
    "line",
    [b"\n", b"hello\n", b"[]\n", b"{}\n", b'{"do": 1}\n', b"\xff\n", b"[" * 4000 + b"\n"],
)
async def test_what_is_no_request_is_refused_and_the_next_is_answered(tmp_path, line):
    async with served(tmp_path):
        assert json.loads(await sent(tmp_path, line))["ok"] is False
        assert (await call_control(tmp_path, {"do": "echo", "text": ""})) is not None


async def test_a_request_that_is_too_long_is_not_read_to_its_end(tmp_path):
    async with served(tmp_path):
        with anyio.fail_after(20):
            answer = await sent(tmp_path, b'{"do": "echo", "text": "' + b"x" * 5_000)
    assert answer == b"" or b"too long" in answer


async def test_whoever_hangs_up_disturbs_nobody(tmp_path):
    async with served(tmp_path):
        assert await sent(tmp_path, b'{"do": ', end=True) == b""
        stream = await anyio.connect_unix(tmp_path / SOCKET)
        await stream.send(b'{"do": "echo", "text": "x"}\n')
        await stream.aclose()
        assert (await call_control(tmp_path, {"do": "echo", "text": "y"})) is not None


async def test_whoever_is_slow_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "_SECONDS", 0.05)
    monkeypatch.setattr(control, "_HANDLING", 0.05)
    async with served(tmp_path):
        assert await sent(tmp_path, b'{"do": ') == b""
        with pytest.raises(TapebotError, match="did not finish"):
            await call_control(tmp_path, {"do": "hang"})


@pytest.mark.parametrize("begun", [b"", b'{"do": "ec'], ids=["nothing", "half"])
async def test_many_who_send_no_whole_request_hold_nobody_up(tmp_path, monkeypatch, begun):
    monkeypatch.setattr(control, "_SECONDS", 60)
    async with served(tmp_path), AsyncExitStack() as held:
        for _ in range(200):
            stream = await held.enter_async_context(await anyio.connect_unix(tmp_path / SOCKET))
            if begun:
                await stream.send(begun)
        asked = {"do": "echo", "text": "y"}
        assert await call_control(tmp_path, asked) == {"ok": True, "text": "y"}


async def test_who_was_cut_off_for_others_leaves_the_rest_answered(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "_SECONDS", 60)
    async with served(tmp_path), AsyncExitStack() as held:
        asked = [
            await held.enter_async_context(await anyio.connect_unix(tmp_path / SOCKET))
            for _ in range(20)
        ]
        for stream in asked:
            await stream.send(b'{"do": "echo", "text": "y"}\n')
        for stream in asked:
            assert json.loads(await stream.receive()) == {"ok": True, "text": "y"}


async def test_a_bot_that_does_not_answer_is_told_apart_from_none(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "_PATIENCE", 0.05)
    async with served(tmp_path):
        with pytest.raises(TapebotError, match="does not answer"):
            await call_control(tmp_path, {"do": "hang"})


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


async def test_a_file_in_the_place_of_the_socket_is_left_alone(tmp_path, caplog):
    (tmp_path / SOCKET).write_text("mine")
    with anyio.fail_after(30):
        await serve_control(tmp_path, HANDLERS)
    assert "move it away" in caplog.text
    assert (tmp_path / SOCKET).read_text() == "mine"


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


async def test_an_answer_that_is_none_is_told_as_another_versions(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / SOCKET))
        server.listen()

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(b"220 hello\n")

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, answer)
                with pytest.raises(TapebotError, match="another version"):
                    await call_control(tmp_path, {"do": "echo"})
