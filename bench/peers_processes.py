"""Processes of the assistants that are compared, and of the model server that all of them ask."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any

from bench.drivers.settings import bub_environment, nanobot_settings, tapebot_environment
from bench.processes import environment
from bench.workload import question

_LONGEST = 300.0
_SAID = b"Reply "
"""How the model's answers begin."""


@dataclass(frozen=True, slots=True)
class Peer:
    """An assistant that is compared: its name, which is that of its driver, and what runs it."""

    name: str
    python: Path = Path(sys.executable)

    @contextmanager
    def drive(self, home: Path, address: str, *, wide: bool = False) -> Iterator[DrivenProcess]:
        """Run it with a driver; kill it at the end."""
        home.parent.mkdir(parents=True, exist_ok=True)
        bounds = "wide" if wide else "default"
        module = f"bench.drivers.{self.name}"
        command = [str(self.python), "-m", module, str(home), address, bounds]
        log = home.parent / f"{home.name}.log"
        with log.open("ab") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env=self._environment(home), cwd=home.parent,
            )  # fmt: skip
        limit = Timer(_LONGEST, process.kill)
        limit.start()
        try:
            yield DrivenProcess(process, log)
        finally:
            limit.cancel()
            process.kill()
            process.communicate()

    def first_reply(self, home: Path, address: str) -> float:
        """Start it as a person would, with one message; return the seconds until its answer is seen."""
        home.mkdir(parents=True, exist_ok=True)
        command, variables, said = self._once(home, address)
        seen, began = b"", perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**self._environment(home), **variables}, cwd=home,
        )  # fmt: skip
        limit = Timer(_LONGEST, process.kill)
        limit.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(said)
            process.stdin.close()
            while _SAID not in seen:
                more = process.stdout.read1()
                if not more:
                    raise RuntimeError(f"{self.name} answered nothing, but {seen!r}")
                seen += more
            return perf_counter() - began
        finally:
            limit.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def _environment(self, home: Path) -> dict[str, str]:
        # A home of its own: it must not read or write what a person keeps in theirs.
        return environment(HOME=str(home.parent), COLUMNS="200")

    def _once(self, home: Path, address: str) -> tuple[list[str], dict[str, str], bytes]:
        """Return its command, what it has in its environment, and its input."""
        bin_folder, said = self.python.parent, question(1)
        if self.name == "tapebot":
            variables = tapebot_environment(home, address)
            return [str(self.python), "-m", "bot"], variables, f"{said}\n".encode()
        if self.name == "nanobot":
            settings = home / "config.json"
            settings.write_text(json.dumps(nanobot_settings(home, address)), encoding="utf-8")
            return [str(bin_folder / "nanobot"), "agent", "-c", str(settings), "-m", said], {}, b""
        if self.name == "bub":
            return [str(bin_folder / "bub"), "run", said], bub_environment(home, address), b""
        module = f"bench.drivers.{self.name}"
        return [str(self.python), "-m", module, str(home), address, "once"], {}, b""


class DrivenProcess:
    """A driver's process (see ``bench/drivers/driver.py``), and the log of its standard error."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def id(self) -> int:
        """Id of the process."""
        return self._process.pid

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Ask for something; return what is told, or raise RuntimeError if it ended or took too long."""
        self.tell(do, **more)
        told: dict[str, Any] = json.loads(self.line())
        return told

    def tell(self, do: str, **more: Any) -> None:
        """Ask for something, and wait for nothing."""
        assert self._process.stdin is not None
        # If it has ended, its next line says so.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"do": do, **more}) + "\n")
            self._process.stdin.flush()

    def line(self) -> str:
        """Return its next line, or raise RuntimeError if it ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            tail = self._log.read_text(encoding="utf-8", errors="replace").strip()[-600:]
            raise RuntimeError(f"{self._process.args!r} ended: {tail}")
        return line

    def kill(self) -> list[str]:
        """End it by SIGKILL; return the lines that it had written and nobody had read."""
        assert self._process.stdout is not None
        self._process.kill()
        left = self._process.stdout.read().splitlines()
        self._process.wait()
        return left


@dataclass(frozen=True, slots=True)
class Server:
    """The model server: its port, and the folder where it keeps requests."""

    port: int
    folder: Path

    def address(self, name: str) -> str:
        """Return the address under which requests are treated as the server's module says."""
        return f"http://127.0.0.1:{self.port}/{name}/v1"

    def requests(self, name: str) -> list[dict[str, Any]]:
        """Return the requests that were kept under a name."""
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@contextmanager
def instant_server(folder: Path) -> Iterator[Server]:
    """Run the model server in a process of its own."""
    folder.mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.instant_server", str(folder)],
        env=environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield Server(int(process.stdout.readline()), folder)
    finally:
        process.kill()
        process.communicate()
