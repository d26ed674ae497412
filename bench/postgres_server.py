"""A PostgreSQL server that is measured: durable, with a folder of its own, and what it spends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testkit.postgres import PostgresServer

_SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "autovacuum_naptime": "1min",
}
SETTINGS = "PostgreSQL: shared_buffers 1 GB, max_wal_size 4 GB, else as it comes; each commit waits for the disk"


@contextmanager
def running() -> Iterator[PostgresServer]:
    """Run a server that waits for its disk, as in earnest."""
    server = PostgresServer(durable=True, settings=_SETTINGS)
    try:
        server.start()
        yield server
    finally:
        server.close()


def cpu(server: PostgresServer) -> float:
    """Return the CPU seconds that a server has used, those of ended connections included."""
    ticks = sum(_stat(server.pid)[11:15])
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = _stat(int(folder.name))
        except OSError:
            continue
        if fields[1] == server.pid:
            ticks += sum(fields[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[int]:
    """Return the numbers of ``/proc/PID/stat`` behind the name; what is none is 0."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    fields = text.rpartition(")")[2].split()
    return [int(one) if one.lstrip("-").isdigit() else 0 for one in fields]
