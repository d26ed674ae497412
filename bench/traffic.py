"""What a turn asks of the system: calls, and bytes that stay on the disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from bench.models import InstantModel
from bench.processes import environment
from bench.program import program
from bench.report import Scale, Table
from bench.turns import process_io

_WARM = 10
_MOST_NAMED = 8


async def measure(scale: Scale) -> list[Table]:
    """Count calls and bytes of many turns, less those of few."""
    turns = scale.pick(200, 20)
    written = await _bytes(scale.work / "bytes", turns)
    strace = shutil.which("strace")
    calls = None if strace is None else _calls(strace, scale.work, turns)
    if calls is None:
        why = "strace is not installed" if strace is None else "strace may not trace here"
        return [replace(written, notes=[f"system calls were not counted: {why}"])]
    rows: list[tuple[str, float]] = [("all", sum(calls.values()) / turns)]
    rows += [(name, count / turns) for name, count in calls.most_common(_MOST_NAMED)]
    return [written, Table("System calls a turn (strace -c -f)", ("call", "a turn"), rows)]


async def _bytes(home: Path, turns: int) -> Table:
    async with program(home, InstantModel()) as running:
        for _ in range(_WARM):
            await running.turn("bytes")
        size, io = _size(home), process_io()
        for _ in range(turns):
            await running.turn("bytes")
        grown = _size(home) - size
        after = process_io()
    rows: list[tuple[str, float | None]] = [("bytes on the disk", grown / turns)]
    if io is not None and after is not None:
        rows.append(("bytes written (/proc/self/io)", (after["wchar"] - io["wchar"]) / turns))
        rows.append(("read calls", (after["syscr"] - io["syscr"]) / turns))
        rows.append(("write calls", (after["syscw"] - io["syscw"]) / turns))
    return Table(f"What a turn writes, over {turns} turns", ("", "a turn"), rows)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _calls(strace: str, work: Path, turns: int) -> Counter[str] | None:
    """Return the calls of ``turns`` turns by name: a long run's less a short one's."""
    short = _trace(strace, work, _WARM)
    long = _trace(strace, work, _WARM + turns)
    if short is None or long is None:
        return None
    long.subtract(short)
    return long


def _trace(strace: str, work: Path, turns: int) -> Counter[str] | None:
    report = work / f"strace-{turns}"
    command = [strace, "-c", "-f", "-o", str(report), sys.executable, "-m", "bench.alone"]
    done = subprocess.run(
        [*command, str(work / f"home-{turns}"), str(turns)],
        env=environment(),
        cwd=work,
        check=False,
        capture_output=True,
    )
    if done.returncode or not report.exists():
        return None
    calls: Counter[str] = Counter()
    for line in report.read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[3].isdecimal() and fields[-1] not in {"total", "syscall"}:
            calls[fields[-1]] += int(fields[3])
    return calls
