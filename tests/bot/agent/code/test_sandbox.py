"""What code in the sandbox can do, what it cannot reach, where it is stopped, and that nothing of it is left."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from code_sandbox import built_sandbox, processes_of
from waiting import until

from bot.agent.code.sandbox import PythonSandbox

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc"),
    pytest.mark.timeout(900),  # one of them builds the interpreter
]


@pytest.fixture
async def sandbox(tmp_path):
    """A sandbox that leaves neither a process nor a file of its runs."""
    folder = tmp_path / "sandbox"
    yield await built_sandbox(folder)
    assert processes_of(folder) == []
    assert list((folder / "runs").iterdir()) == []


ATTEMPTS = {
    "connect": "socket.create_connection(('127.0.0.1', {port}), 1)",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
    "listen": "socket.socket().bind(('127.0.0.1', 0))",
    "unix": "socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
    "resolve": "socket.getaddrinfo('localhost', 80)",
    "fetch": "urllib.request.urlopen('http://127.0.0.1:{port}/')",
    "fork": "os.fork()",
    "system": "os.system('id')",
    "exec": "os.execv('/bin/sh', ['sh'])",
    "process": "__import__('subprocess').run('id')",
    "native": "__import__('ctypes').CDLL(None)",
    "thread": "threading.Thread(target=print).start()",
    "kill": "os.kill(os.getppid(), 9)",
    "root file": "open('/etc/passwd').read()",
    "parent file": "open('../../../../../../../../etc/passwd').read()",
    "process file": "open('/proc/self/environ').read()",
    "the home": "os.listdir('{home}')",
    "above": "os.listdir('..')[0]",
    "linked file": "(os.symlink('../../../../../../../etc/passwd', 'a'), open('a').read())",
    "linked folder": "(os.symlink('..', 'b'), os.listdir('b/..')[0])",
    "absolute link": "(os.symlink('/etc', 'c'), os.listdir('c'))",
    "hard link": "os.link('/etc/passwd', 'd')",
    "rename out": "(open('e', 'w').close(), os.rename('e', '../e'))",
    "device": "os.mknod('f', 0o600 | 0o020000, 259)",
    "a pipe": "os.mkfifo('g')",
    "environment": "dict(os.environ)['PATH']",
    "input": "input()",
    "another package": "__import__('anyio')",
}


async def test_code_reaches_no_network_process_file_or_secret_of_the_machine(
    sandbox, tmp_path, monkeypatch
):
    monkeypatch.setenv("TAPEBOT_MODEL_API_KEY", "sk-secret")
    (tmp_path / "outside").write_text("outside")
    arrived: list[object] = []
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    lines = [
        f"attempt({name!r}, lambda: {attempt.format(port=port, home=tmp_path)})"
        for name, attempt in ATTEMPTS.items()
    ]
    code = (
        "import os, socket, threading, urllib.request\n"
        "def attempt(name, done):\n"
        "    try:\n        print('DONE', name, done())\n"
        "    except BaseException as error:\n        print('refused', type(error).__name__)\n"
    )
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, _recorder(arrived))
        result = await sandbox.run(code + "\n".join(lines) + "\nprint(dict(os.environ))")
        tasks.cancel_scope.cancel()
    assert [line for line in result.output.splitlines() if line.startswith("DONE")] == []
    assert result.output.count("refused") == len(ATTEMPTS)
    assert result.output.endswith("{}")
    assert arrived == []
    assert result.files == {"e": b""}


def _recorder(arrived):
    async def record(stream):
        async with stream:
            arrived.append(stream)

    return record


@pytest.mark.slow
async def test_waiting_is_no_work_but_is_bounded_too(tmp_path):
    sandbox = await built_sandbox(tmp_path / "sandbox", seconds=0.5)
    result = await sandbox.run("import time\ntime.sleep(1)\nprint('awake')")
    assert (result.output, result.problem) == ("awake", "")
    result = await sandbox.run("import time\ntime.sleep(1000)")
    assert result.problem == "it took more than 7.5 seconds"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("while True: pass", "it took more than 2 seconds of processor time"),
        (
            "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
            "it took more than 2 seconds of processor time",
        ),
        ("while True: print('x' * 10_000)", "it printed too much"),
        (
            # It holds what it wrote: so it is seen, however seldom the watchdog gets to look.
            "import os, time\nkept = []\ntry:\n  while True:\n    kept.append(open('x', 'wb'))\n"
            "    os.unlink('x')\n    for _ in range(64): kept[-1].write(bytes(1 << 17))\n"
            "except OSError: time.sleep(1000)",
            "it wrote more than 64 MB or 1,000 files",
        ),
        ("n = 0\nwhile True:\n  n += 1\n  open(f'{n}', 'w').close()", "it wrote"),
        ("import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()", "the interpreter broke"),
    ],
)
async def test_code_is_stopped_where_it_takes_too_much(tmp_path, code, problem):
    folder = tmp_path / "sandbox"
    sandbox = await built_sandbox(folder, seconds=2 if "seconds" in problem else 20)
    result = await sandbox.run(code)
    assert not result.ok
    assert result.problem.startswith(problem)
    assert result.files == {}
    assert len(result.output) < 13_000
    assert processes_of(folder) == []
    assert list((folder / "runs").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("kept = []\nwhile True: kept.append(bytearray(1 << 20))", "MemoryError"),
        (
            "import zlib\nbomb = zlib.compress(bytes(1 << 26))\n[zlib.decompress(bomb) for _ in range(9)]",
            "MemoryError: Unable to allocate output buffer.",
        ),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("open('x', 'wb').write(bytes(20 << 20))", "OSError: [Errno 29] I/O error"),
        ("f = open('x', 'wb')\nf.truncate(10**12)", "OSError: [Errno 22] File too large"),
        ("raise SystemExit('no data')", "SystemExit: no data"),
        ("raise ValueError('x' * 10**8)", "ValueError: too long to be shown"),
    ],
)
async def test_code_that_meets_a_limit_is_told_by_an_exception(sandbox, code, end):
    result = await sandbox.run(code)
    assert (result.ok, result.problem) == (False, "")
    assert result.output.endswith(end)

    # The fixture looks for what is left.


BOT = """
import sys
from pathlib import Path
import anyio
from bot.agent.code.sandbox import PythonSandbox
anyio.run(PythonSandbox(Path(sys.argv[1]), seconds=600).run, sys.argv[2])
"""


async def killed_when(looked, folder: Path, code: str = "") -> None:
    """Run code in a program that is killed as soon as something is seen; wait for its processes' end."""
    async with await anyio.open_process(
        [sys.executable, "-c", BOT, str(folder), code], stdout=None, stderr=None
    ) as program:
        await until(looked)
        assert len(processes_of(folder)) >= 2  # the builder starts some for a moment
        program.kill()
        await program.wait()
    await until(lambda: processes_of(folder) == [])


@pytest.mark.slow
@pytest.mark.parametrize("code", ["while True: pass", "import time\ntime.sleep(500)"])
async def test_code_ends_with_a_killed_bot(tmp_path, code):
    folder = tmp_path / "sandbox"
    await built_sandbox(folder)
    began = f"open('begun', 'w').close()\n{code}"
    await killed_when(lambda: list(folder.glob("runs/*/begun")), folder, began)
    sandbox = PythonSandbox(folder)
    assert list(folder.glob("runs/*")) == []
    assert (await sandbox.run("1 + 1")).output == "2"
