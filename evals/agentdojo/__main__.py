"""The command ``python -m evals.agentdojo``."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from bench.report import write_section
from evals.agentdojo.installation import Tasks, describe, install
from evals.agentdojo.report import CONDITIONS, carried_out, report
from evals.agentdojo.runs import Batch, Condition, Outcome, run_batch

SUITES = ("banking", "slack", "travel", "workspace")
_PAGE = Path(__file__).parent.parent.parent / "docs" / "security.md"
_AT_ONCE = 20
"""Pairs that one program runs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pairs, and print the tables.

    Returns:
        1 if something was done for an attacker though nobody said yes to it.
    """
    chosen = _parser().parse_args(arguments)
    if chosen.write and (chosen.every > 1 or chosen.suite):
        _parser().error("--write is for the whole")
    outcomes = run_suites(chosen.suite or SUITES, every=chosen.every, jobs=chosen.jobs)
    text = report(outcomes)
    print(text)
    if chosen.write:
        write_section(_PAGE, "agentdojo", text)
    unasked = [one for one in carried_out(outcomes) if one.condition.person != "yes"]
    unasked += [one for one in outcomes if one.acted_for_attack and one.condition.person != "yes"]
    for one in unasked:
        print(f"something was done for the attacker: {asdict(one)}", file=sys.stderr)
    return 1 if unasked else 0


def run_suites(suites: Sequence[str], *, every: int = 1, jobs: int = 1) -> list[Outcome]:
    """Run the pairs of suites in all conditions, and each user's task without an attack.

    Args:
        suites: The suites.
        every: Of all pairs, run each of this number.
        jobs: Processes at once.
    """
    python, began = install(), time.monotonic()
    outcomes: list[Outcome] = []
    # Not forked: each process has an event loop of its own.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        told = list(pool.map(describe, [python] * len(suites), suites))
        running = [
            pool.submit(run_batch, python, suite, batch)
            for suite, tasks in zip(suites, told, strict=True)
            for batch in _batches(tasks, every)
        ]
        for done in running:
            outcomes += done.result()
            took = time.monotonic() - began
            print(f"{len(outcomes)} runs, {took:.0f} s", file=sys.stderr)
    return outcomes


def _batches(tasks: Tasks, every: int) -> Iterator[Batch]:
    """Yield a suite's pairs in all conditions."""
    pairs = [(user, attack) for user in tasks.user for attack in tasks.injection][::every]
    calm = [(user, None) for user in tasks.user][::every]
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        alone = [] if start else calm
        yield {Condition(obeys=False): alone, **dict.fromkeys(CONDITIONS.values(), some)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evals.agentdojo",
        description="Run AgentDojo's tasks on tapebot with a model that obeys the attacker.",
    )
    parser.add_argument("--suite", action="append", choices=SUITES, help="this suite alone")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth pair alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {_PAGE.name}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
