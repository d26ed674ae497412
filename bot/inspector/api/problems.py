"""API routes of problems: list a conversation's problems, and show one's working set."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from bot.inspector.api import API
from bot.inspector.api.parameters import TapeName
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.problems import (
    ProblemList,
    WorkingSetView,
    problems_in,
    working_set_in,
)

router = APIRouter(prefix=API, tags=["problems"])

ProblemId = Annotated[
    str, Query(min_length=1, max_length=64, description="The problem's id: `general`, `p1`, …")
]


@router.get("/problems")
async def problems(web: WebContextDep, visitor: Owner, tape: TapeName) -> ProblemList:
    """List a conversation's problems: the outcome and state of each, and which is active.

    Commands change them, such as `/problem switch p2`.
    """
    return await problems_in(web, visitor, tape)


@router.get("/working-set")
async def working_set(
    web: WebContextDep, visitor: Owner, tape: TapeName, problem: ProblemId = "general"
) -> WorkingSetView:
    """Return a problem's working set: constraints, assumptions, questions, drafts, decisions.

    Contested assumptions have the gate's reason. A working set expires when unused for its number
    of hours; then all lists are empty, and the problem's `summary` has its outcome.
    """
    return await working_set_in(web, visitor, tape, problem)
