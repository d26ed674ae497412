"""What a turn asks of the system: calls, and bytes that stay on the disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bench.models import InstantModel
from bench.processes import environment
from bench.program import program
from bench.report import Cell, Scale, Table
from bench.turns import process_io

_WARM = 10
_MOST_NAMED = 8

_CALL = re.compile(r'\d+ +(\w+)\((?:\d+<(/[^>]*)>, "[^"]*"\.*, (\d+))?')
"""A call in a trace; where it has a file and a buffer, its path and the buffer's size."""

_WRITES = ("write", "pwrite64")
_DIGITS = re.compile(r"[0-9a-f]{16}")
_INDEX = re.compile(r"\.index\.db.*")


class Traffic(NamedTuple):
    """What a run asked of the system.

    Attributes:
        calls: Its calls, by name.
        written: Bytes that it wrote below its home, by file.
    """

    calls: Counter[str]
    written: Counter[str]


async def measure(scale: Scale) -> list[Table]:
    """Count calls and bytes of many turns, less those of few."""
    turns = scale.pick(200, 20)
    strace = shutil.which("strace")
    found = None if strace is None else _traffic(strace, scale.work, turns)
    why = "strace is not installed" if strace is None else "strace may not trace here"
    notes = [] if found is not None else [f"by file, and system calls: not counted, {why}"]
    written = await _bytes(scale.work / "bytes", turns, {} if found is None else found.written)
    tables = [Table(f"What a turn writes, over {turns} turns", ("", "a turn"), written, notes)]
    if found is not None:
        rows = [("all", found.calls.total() / turns)]
        rows += [(name, count / turns) for name, count in found.calls.most_common(_MOST_NAMED)]
        tables.append(Table("System calls a turn (strace -f)", ("call", "a turn"), rows))
    return tables


async def _bytes(home: Path, turns: int, by_file: Mapping[str, int]) -> list[tuple[Cell, ...]]:
    async with program(home, InstantModel()) as running:
        for _ in range(_WARM):
            await running.turn("bytes")
        size, io = _size(home), process_io()
        for _ in range(turns):
            await running.turn("bytes")
        grown = _size(home) - size
        after = process_io()
    rows: list[tuple[Cell, ...]] = [("bytes on the disk", grown / turns)]
    if io is not None and after is not None:
        rows.append(("bytes written", (after["wchar"] - io["wchar"]) / turns))
        rows += [(f"to `{name}`", count / turns) for name, count in sorted(by_file.items())]
        rows.append(("read calls", (after["syscr"] - io["syscr"]) / turns))
        rows.append(("write calls", (after["syscw"] - io["syscw"]) / turns))
    return rows


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _traffic(strace: str, work: Path, turns: int) -> Traffic | None:
    """Return what ``turns`` turns ask for: a long run, less a short one."""
    short = _trace(strace, work, _WARM)
    long = _trace(strace, work, _WARM + turns)
    if short is None or long is None:
        return None
    return Traffic(long.calls - short.calls, long.written - short.written)


def _trace(strace: str, work: Path, turns: int) -> Traffic | None:
    report, home = work / f"strace-{turns}", work / f"home-{turns}"
    command = [strace, "-f", "-y", "-s", "0", "-o", str(report)]
    done = subprocess.run(
        [*command, sys.executable, "-m", "bench.alone", str(home), str(turns)],
        env=environment(),
        cwd=work,
        check=False,
        capture_output=True,
    )
    if done.returncode or not report.exists():
        return None
    calls, written = Counter[str](), Counter[str]()
    for line in report.read_text(encoding="utf-8", errors="replace").splitlines():
        if (call := _CALL.match(line)) is None:
            continue
        name, path, size = call.groups()
        calls[name] += 1
        if name in _WRITES and path and Path(path).is_relative_to(home):
            written[_kind(str(Path(path).relative_to(home)))] += int(size)
    report.unlink()
    return Traffic(calls, written)


def _kind(name: str) -> str:
    """Return a file's name as those of all tapes are."""
    return _INDEX.sub(".index.db", _DIGITS.sub("*", name)).replace("*__*", "*")
