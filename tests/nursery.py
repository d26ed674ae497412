"""A process whose children work until they are killed: a fork starts at once, where a program would not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


class Nursery:
    """The process; it reads an order a line, and tells what a child says and how it ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def life(self, **order: Any) -> list[dict[str, Any]]:
        """Let a child live by an order; return what it said until it was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order, default=str) + "\n")
        self._process.stdin.flush()
        heard = []
        for line in self._process.stdout:
            heard.append(json.loads(line))
            if "dead" in heard[-1]:
                assert heard[-1]["dead"], "it died of something else"
                return heard
        raise AssertionError("the nursery is gone")


@contextmanager
def nursery(host: Path) -> Iterator[Nursery]:
    """Run a nursery; hosts find each other in the folder of the long proofs."""
    with subprocess.Popen(
        [sys.executable, str(host)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'e2e'}:{ROOT / 'tests'}", "PATH": ""},
    ) as process:
        try:
            yield Nursery(process)
        finally:
            process.kill()
