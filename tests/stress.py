"""Repeat the fast suite while two processes keep the processor busy: ``python tests/stress.py 20``.

What fails once of many times is a fault of the test or of the program. The output of runs that failed is shown.
"""

from __future__ import annotations

import subprocess
import sys

BUSY = [sys.executable, "-c", "while True: pass"]
SUITE = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow"]
BUSY_PROCESSES = 2


def main(runs: int, paths: list[str]) -> int:
    busy = [subprocess.Popen(BUSY) for _ in range(BUSY_PROCESSES)]
    failed = 0
    try:
        for number in range(1, runs + 1):
            done = subprocess.run([*SUITE, *paths], capture_output=True, text=True, check=False)
            failed += done.returncode != 0
            if done.returncode:
                print(done.stdout[-20_000:], done.stderr[-2_000:])
            print(f"run {number} of {runs}: {done.stdout.splitlines()[-1]}", flush=True)
    finally:
        for one in busy:
            one.kill()
    return failed


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]), sys.argv[2:]), 1))
