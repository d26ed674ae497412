"""AgentDojo in a virtual environment of its own, and its suites as servers."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from filelock import FileLock

_ROOT = Path(__file__).parent.parent.parent
_LOCK = _ROOT / "locks" / "agentdojo.txt"
CACHE = _ROOT / ".cache" / "agentdojo"
"""Where the virtual environment is made."""

_LONGEST_CALL = 60.0


def install(cache: Path = CACHE) -> Path:
    """Return the Python of a virtual environment with AgentDojo; make it if it is not there.

    Raises:
        subprocess.CalledProcessError: A package could not be installed.
    """
    cache.mkdir(parents=True, exist_ok=True)
    name = f"{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]}-{sys.version_info.minor}"
    folder, done = cache / name, cache / f"{name}.done"
    with FileLock(cache / "lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"installing AgentDojo into {folder} (once) ...", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(_python(folder)), "-m", "pip", "--disable-pip-version-check", "--quiet"]
            subprocess.run(
                [*pip, "install", "--require-hashes", "-r", str(_LOCK)],
                check=True,
                stdout=sys.stderr,
            )
            done.touch()
    return _python(folder)


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


class SuiteServer:
    """A running server of one suite.

    Args:
        port: Its port.
    """

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    @property
    def mcp(self) -> str:
        """The address of the MCP server."""
        return f"{self._base}/mcp"

    def request(self, path: str, **given: Any) -> dict[str, Any]:
        """Send a request that is not MCP's; return its answer.

        Raises:
            RuntimeError: AgentDojo failed.
        """
        sent = Request(f"{self._base}/{path}", json.dumps(given).encode())
        with urlopen(sent, timeout=_LONGEST_CALL) as answer:
            told: dict[str, Any] = json.load(answer)
        if "error" in told:
            raise RuntimeError(f"AgentDojo failed: {told['error']}")
        return told


@contextmanager
def suite_server(python: Path, suite: str) -> Iterator[SuiteServer]:
    """Run the server of a suite.

    Args:
        python: The Python of the virtual environment.
        suite: The suite's name.
    """
    script = str(Path(__file__).with_name("server.py"))
    process = subprocess.Popen(
        [str(python), "-I", script, suite],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline()
        if not port:
            raise RuntimeError(f"AgentDojo's suite {suite} did not start")
        yield SuiteServer(int(port))
    finally:
        process.kill()
        process.communicate()


class Tasks(NamedTuple):
    """The tasks of a suite that AgentDojo's own checks pass, by name.

    Attributes:
        user: Tasks of the user.
        injection: Tasks of the attacker.
    """

    user: list[str]
    injection: list[str]


def describe(python: Path, suite: str) -> Tasks:
    """Return the tasks of a suite.

    Args:
        python: The Python of the virtual environment.
        suite: The suite's name.
    """
    with suite_server(python, suite) as server:
        told = server.request("describe")
    kinds = told["user_tasks"], told["injection_tasks"]
    return Tasks(*([name for name, passes in kind.items() if passes] for kind in kinds))
