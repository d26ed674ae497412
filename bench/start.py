"""How long a person waits after starting the program, and where that time goes."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter

import pexpect

from bench.processes import environment, model_server
from bench.report import Scale, Table, ms, p50, p95
from bench.resident import resident

_PROGRAM = [sys.executable, "-m", "bot"]
_HELLO = b"Hello there, how are you?\n"
_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)")
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds, CPU seconds of the whole process, resident memory in kB."""

    wall: float
    cpu: float
    resident: int | None


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _bare() -> Start:
    wall, cpu = perf_counter(), _children_cpu()
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=environment())
    return Start(perf_counter() - wall, _children_cpu() - cpu, None)


def prompt(
    work: Path, variables: Mapping[str, str], ready: Callable[[], None] = lambda: None
) -> Start:
    """Start the program at a terminal and wait for the prompt.

    Args:
        work: The folder that it is started in.
        variables: Its environment.
        ready: Returns once its memory may be read.
    """
    began = perf_counter()
    child = pexpect.spawn(
        _PROGRAM[0], _PROGRAM[1:], env=environment(**variables), cwd=str(work), timeout=60
    )
    # In a new home without settings the program first offers its setup.
    if child.expect_exact(["you>", "[y/N]"]) == 1:
        child.sendline("n")
        child.expect_exact("you>")
    wall = perf_counter() - began
    ready()
    cpu, held = _spent_by(child.pid)
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    return Start(wall, cpu, held)


def _spent_by(process: int) -> tuple[float, int | None]:
    try:
        fields = (
            Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        )
    except OSError:
        return float("nan"), None
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), resident(process)


def _reply(work: Path, variables: dict[str, str]) -> Start:
    """Pipe a message to the program and wait for the first byte of the answer."""
    wall, cpu = perf_counter(), _children_cpu()
    with subprocess.Popen(
        _PROGRAM,
        env=environment(**variables),
        cwd=work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        if child.stdin is None or child.stdout is None:
            raise RuntimeError("the program has no pipes")
        child.stdin.write(_HELLO)
        child.stdin.close()
        first = child.stdout.read(1)
        wall = perf_counter() - wall
        child.stdout.read()
    if not first or child.returncode:
        raise RuntimeError(f"the program answered nothing (exit {child.returncode})")
    return Start(wall, _children_cpu() - cpu, None)


def _imports(work: Path, home: Path) -> Table:
    """Say which packages' own modules take the time until the first reply."""
    began = perf_counter()
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "bot"],
        env=environment(TAPEBOT_HOME=str(home)),
        cwd=work,
        input=_HELLO,
        capture_output=True,
        check=True,
    )
    wall = perf_counter() - began
    spent: Counter[str] = Counter()
    for line in done.stderr.decode().splitlines():
        if (found := _IMPORT.match(line)) is not None:
            spent[found[2].partition(".")[0]] += int(found[1])
    whole = sum(spent.values())
    return Table(
        "Imports until the first reply, by package (python -X importtime: slower than life)",
        ("package", "ms", "% of imports"),
        [(name, taken / 1000, 100 * taken / whole) for name, taken in spent.most_common(_NAMED)],
        [
            f"all imports {whole / 1000:.0f} ms, {whole / 1e4 / wall:.0f} % of the "
            f"{ms(wall):.0f} ms to the end"
        ],
    )


async def measure(scale: Scale) -> list[Table]:
    """Start the program again and again, each time in a new home."""
    runs = scale.pick(7, 2)
    homes = (scale.work / f"home-{number}" for number in count())
    with model_server() as address:
        provider = {
            "TAPEBOT_MODEL": "openai/scripted",
            "TAPEBOT_MODEL_API_BASE": address,
            "TAPEBOT_MODEL_API_KEY": "bench",
        }

        def fresh(**more: str) -> dict[str, str]:
            return {"TAPEBOT_HOME": str(next(homes)), **more}

        ways: dict[str, Callable[[], Start]] = {
            "a bare interpreter": _bare,
            "prompt, offline responder": lambda: prompt(scale.work, fresh()),
            "first reply, offline responder": lambda: _reply(scale.work, fresh()),
            "prompt, a model": lambda: prompt(scale.work, fresh(**provider)),
            "first reply of a model": lambda: _reply(scale.work, fresh(**provider)),
            "first reply through litellm": lambda: _reply(
                scale.work, fresh(**provider, TAPEBOT_MODEL_CLIENT="litellm")
            ),
        }
        taken: dict[str, list[Start]] = {way: [] for way in ways}
        for run in range(-1, runs):
            for way, start in ways.items():
                one = start()
                if run >= 0:
                    taken[way].append(one)
    return [_table(taken, runs), _imports(scale.work, next(homes))]


def _table(taken: dict[str, list[Start]], runs: int) -> Table:
    bare = p50([one.wall for one in taken["a bare interpreter"]])
    rows = []
    for way, starts in taken.items():
        held = [one.resident / 1000 for one in starts if one.resident is not None]
        rows.append(
            (
                way,
                ms(p50([one.wall for one in starts])),
                ms(p95([one.wall for one in starts])),
                p50([one.wall for one in starts]) / bare,
                ms(p50([one.cpu for one in starts])),
                p50(held) if held else None,
            )
        )
    return Table(
        "From starting the command, in a new home",
        ("until", "ms p50", "p95", "× bare", "CPU ms", "MB"),
        rows,
        [
            f"median of {runs} after one to warm the file cache; CPU: until the prompt, or of the "
            "whole process"
        ],
    )
