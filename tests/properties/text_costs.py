"""Measures what work on a text costs as the text grows: run as a program, since it may never end.

It prints a line of JSON for each finding. Processor time is measured, and limited by the system: work
that never ends kills the process, and the parent names what was being done and goes on behind it.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).parent
SHORT, LONG = 2_000, 16_000
LIMIT = float(os.environ.get("LIMIT", "8"))
"""Seconds of processor time that one text may take before the process is killed."""
# Eight times the text may cost eight times as much, and n log n a little more; a square costs 64 times.
_MOST_GROWTH = 24.0
_LONGEST = 3.0
_NOISE = 0.004
_COUNT = count()


@dataclass(frozen=True, slots=True)
class HostileText:
    """A piece repeated after a beginning and before an end."""

    beginning: str
    piece: str
    end: str

    def of_length(self, length: int) -> str:
        """Return the text with as many pieces as come to a length."""
        times = max(1, (length - len(self.beginning) - len(self.end)) // len(self.piece))
        return self.beginning + self.piece * times + self.end

    def __str__(self) -> str:
        return f"{self.beginning!r} + {self.piece!r} * n + {self.end!r}"


@dataclass(frozen=True, slots=True)
class Work:
    name: str
    run: Callable[[str], object]
    texts: Sequence[HostileText]


def measure(works: Sequence[Work], tried: int, first: int, progress: Path, report: TextIO) -> None:
    """Report what grows too fast, from one piece of work on; write down where it stands."""
    with progress.open("r+b") as file, mmap.mmap(file.fileno(), 8) as standing:
        for number, work in enumerate(works[first:], first):
            cost = {}
            for at, text in enumerate(work.texts):
                standing[:] = struct.pack("ii", number, at)
                cost[text] = _cost(work, text, tried)
            for text in sorted(cost, key=cost.__getitem__, reverse=True)[:3]:
                standing[:] = struct.pack("ii", number, work.texts.index(text))
                if finding := _grows(work, text):
                    report.write(json.dumps(finding) + "\n")
                    report.flush()
                    break


def _grows(work: Work, text: HostileText) -> str | None:
    long = _cost(work, text, LONG)
    if long < _NOISE:
        return None
    # Three times, since another process may have slowed one of them down.
    for _ in range(3):
        short, long = _cost(work, text, SHORT), min(long, _cost(work, text, LONG))
        growth = long / max(short, 0.00002)
        if long < _LONGEST and growth < _MOST_GROWTH:
            return None
    return (
        f"{work.name}: {SHORT} characters take {short * 1000:.2f} ms, {LONG} take"
        f" {long * 1000:.1f} ms, with {text}"
    )


def _cost(work: Work, text: HostileText, length: int) -> float:
    # Never the same text twice: what was answered before may be remembered.
    given = text.of_length(length + next(_COUNT) % 64 * len(text.piece))
    # The signal's default action ends the process, even within one call of a pattern.
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    before = time.thread_time()
    work.run(given)
    return time.thread_time() - before


def findings(program: str, *arguments: str, limit: float = LIMIT) -> list[str]:
    """Run a measuring program to its end; return what grows too fast."""
    found: list[str] = []
    first, root = 0, HERE.parents[1]
    command = [sys.executable, "-W", "ignore", str(HERE / program), *arguments]
    env = {
        "PYTHONPATH": f"{root}:{root / 'tests'}",
        "PYTHONHASHSEED": "0",
        "PATH": "",
        "LIMIT": str(limit),
    }
    with tempfile.NamedTemporaryFile() as progress:
        while True:
            progress.seek(0)
            progress.write(struct.pack("ii", -1, -1))
            progress.flush()
            ended = subprocess.run(
                [*command, str(first), progress.name],
                capture_output=True,
                text=True,
                cwd=root,
                env=env,
                check=False,
            )
            lines = [json.loads(line) for line in ended.stdout.splitlines()]
            found += [line for line in lines if isinstance(line, str)]
            names = next((line["names"] for line in lines if isinstance(line, dict)), [])
            if ended.returncode == 0:
                return found
            if ended.returncode != -signal.SIGPROF:
                raise AssertionError(ended.stderr or f"it ended with {ended.returncode}")
            progress.seek(0)
            number, at = struct.unpack("ii", progress.read(8))
            assert number >= 0, "it was ended before it began"
            found.append(
                f"{names[number][0]}: takes more than {limit} s with {names[number][1][at]}"
            )
            first = number + 1


def main(works: Sequence[Work], tried: int) -> None:
    first, progress = int(sys.argv[-2]), Path(sys.argv[-1])
    # What is measured may print.
    report = os.fdopen(os.dup(1), "w")
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    named = [(work.name, [str(text) for text in work.texts]) for work in works]
    report.write(json.dumps({"names": named}) + "\n")
    report.flush()
    measure(works, tried, first, progress, report)
