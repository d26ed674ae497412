"""Find a problem by id, number or name. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.memory.records.compartment_records import Problem


def match_problem(problems: Sequence[Problem], wanted: str) -> Problem | None:
    """Return the problem that a text names, in any case; None if there is none.

    The id is tried first (``p2``, or ``2``), then the full name, then the start of a name. Problems
    that are not completed take precedence.

    Raises:
        MemoryRefused: Several problems match.
    """
    said = " ".join(wanted.split()).casefold()
    if not said:
        return None
    ids = (said, f"p{said}" if said.isdecimal() else said)
    if (
        found := next((problem for problem in problems if problem.problem_id in ids), None)
    ) is not None:
        return found
    ranked = sorted(problems, key=lambda problem: problem.state == "completed")
    exact = [problem for problem in ranked if problem.name.casefold() == said]
    if exact:
        return exact[0]
    alike = [problem for problem in ranked if problem.name.casefold().startswith(said)]
    open_ones = [problem for problem in alike if problem.state != "completed"] or alike
    if len(open_ones) > 1:
        several = ", ".join(f"{problem.name} ({problem.problem_id})" for problem in open_ones[:5])
        raise MemoryRefused(
            _(
                "{wanted} may be {several}: say which",
                wanted=repr(wanted.strip()[:60]),
                several=several,
            )
        )
    return open_ones[0] if open_ones else None
