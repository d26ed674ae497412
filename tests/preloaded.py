"""Processes of tapebot that start at once: they are forks of one that has imported everything."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import IO

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
from databases import RUN
from filelock import FileLock

ROOT = Path(__file__).parents[1]
_HOST = Path(__file__).with_name("preloaded_host.py")
_LOADS = 120.0
_hosts: list[subprocess.Popen[bytes]] = []

Stream = int | IO[bytes] | None


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return all that a program has which lives in a folder, its site apart: many run at once."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "TAPEBOT_HOME": str(folder / "home"),
        "TAPEBOT_WEB_LISTEN": "off",
        **variables,
    }


class Pipe(anyio.abc.ByteStream):
    def __init__(self, end: socket.socket) -> None:
        self._end = end
        end.setblocking(False)

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        while True:
            await anyio.lowlevel.checkpoint_if_cancelled()
            try:
                chunk = self._end.recv(max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self._end)
            except ConnectionError:
                raise anyio.EndOfStream from None
            else:
                if not chunk:
                    raise anyio.EndOfStream
                return chunk

    async def send(self, item: bytes) -> None:
        left = memoryview(item)
        while left:
            try:
                left = left[self._end.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._end)
            except OSError as error:
                raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        self._end.close()


class Forked(anyio.abc.Process):
    def __init__(self, told: socket.socket, pid: int, pipes: list[Pipe | None]) -> None:
        self._told = told
        self._pid = pid
        self._pipes = pipes
        self._code: int | None = None
        self._ending = anyio.Lock()
        told.setblocking(False)

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def stdin(self) -> Pipe | None:
        return self._pipes[0]

    @property
    def stdout(self) -> Pipe | None:
        return self._pipes[1]

    @property
    def stderr(self) -> Pipe | None:
        return self._pipes[2]

    @property
    def returncode(self) -> int | None:
        if self._code is None:
            with suppress(BlockingIOError):
                line = self._told.recv(64)
                assert line, "the process that forks was killed"
                self._code = int(line)
                self._told.close()
        return self._code

    async def wait(self) -> int:
        async with self._ending:
            while (code := self.returncode) is None:
                await anyio.wait_readable(self._told)
        return code

    def send_signal(self, signal: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def aclose(self) -> None:
        for pipe in self._pipes:
            if pipe is not None:
                await pipe.aclose()
        try:
            await self.wait()
        except BaseException:
            self.kill()
            with anyio.CancelScope(shield=True):
                await self.wait()
            raise


async def open_program(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.STDOUT,
) -> Forked:
    told, pid, ends = await anyio.to_thread.run_sync(
        _start, arguments, environment, cwd, (stdin, stdout, stderr)
    )
    return Forked(told, pid, [None if one is None else Pipe(one) for one in ends])


def run_program(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    given: str = "",
    timeout: float = 60.0,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; see ``subprocess.run``. What it reads and writes are a few lines."""
    streams = (subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
    told, pid, ends = _start(arguments, environment, cwd, streams)
    with ExitStack() as stack:
        stack.enter_context(told)
        given_to, out, errors = (stack.enter_context(one) for one in ends if one is not None)
        for one in (told, out, errors):
            one.settimeout(timeout)
        try:
            with suppress(BrokenPipeError):
                given_to.sendall(given.encode())
            given_to.close()
            said = [_all_of(one) for one in (out, errors)]
            code = int(told.recv(64))
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess([*arguments], code, *said)


def _all_of(end: socket.socket) -> str:
    found = b""
    with suppress(ConnectionResetError):
        while chunk := end.recv(65_536):
            found += chunk
    return found.decode()


def _start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path | None,
    streams: tuple[Stream, Stream, Stream],
) -> tuple[socket.socket, int, list[socket.socket | None]]:
    order = {
        "arguments": [*arguments],
        "cwd": str(cwd or Path.cwd()),
        "environment": dict(environment),
    }
    ends: list[socket.socket | None] = []
    files: list[int] = []
    opened: list[socket.socket | int] = []
    for number, stream in enumerate(streams):
        end: socket.socket | None = None
        if stream == subprocess.PIPE:
            end, other = socket.socketpair()
            opened.append(other)
            files.append(other.fileno())
        elif stream == subprocess.DEVNULL:
            file = os.open(os.devnull, os.O_RDWR)
            opened.append(file)
            files.append(file)
        elif stream == subprocess.STDOUT:
            files.append(files[1])
        elif stream is None:
            files.append(number)
        else:
            files.append(stream if isinstance(stream, int) else stream.fileno())
        ends.append(end)
    told = socket.socket(socket.AF_UNIX)
    told.connect(str(_host()))
    socket.send_fds(told, [json.dumps(order).encode() + b"\n"], files)
    for one in opened:
        os.close(one) if isinstance(one, int) else one.close()
    line = b""
    while not line.endswith(b"\n"):
        line += told.recv(1)
    return told, int(line), ends


@cache
def _host() -> Path:
    """Return where the process listens that forks; whoever needs it first starts it."""
    if RUN not in os.environ:
        # A benchmark is no run of tests.
        os.environ[RUN] = tempfile.mkdtemp(prefix="tapebot-bench-")
        atexit.register(shutil.rmtree, os.environ[RUN], ignore_errors=True)
    path = Path(os.environ[RUN]) / "preloaded.sock"
    with FileLock(path.with_suffix(".lock"), timeout=_LOADS):
        if not path.exists():
            host = subprocess.Popen(
                [sys.executable, str(_HOST), str(path)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
            _hosts.append(host)  # it outlives this process, and ends when its folder is gone
            while not path.exists():
                assert host.poll() is None, "the process that forks did not come up"
                time.sleep(0.05)  # another process's socket has no event here
    return path
