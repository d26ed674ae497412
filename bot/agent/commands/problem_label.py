"""Label an entry with its problem when that is not the active one. Pure."""

from __future__ import annotations

from collections.abc import Callable

from bot.core.i18n import _
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of


def problem_labeller(fold: SessionFold) -> Callable[[TapeEntry], str]:
    """Return a function that labels an entry with its problem; empty for the active one."""

    def told(entry: TapeEntry) -> str:
        problem_id = problem_of(entry)
        if problem_id == fold.problem:
            return ""
        problem = fold.compartments.problem(problem_id)
        name = problem.name if problem is not None else problem_id
        return " " + _("(problem {name})", name=f"“{name}”")

    return told
