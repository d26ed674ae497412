"""Routes of problems: what a conversation keeps apart, and what each of them needs right now."""

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
    """List a conversation's problems: what each came to, its state, and which is worked on.

    What changes them is a command, such as `/problem switch p2`.
    """
    return await problems_in(web, visitor, tape)


@router.get("/working-set")
async def working_set(
    web: WebContextDep, visitor: Owner, tape: TapeName, problem: ProblemId = "general"
) -> WorkingSetView:
    """Tell what a problem needs right now: constraints, assumptions, questions, drafts, decisions.

    Contested assumptions are told with the gate's reason. A working set ends when it was not used for
    its hours; then all lists are empty, and the problem's `summary` tells what it came to.
    """
    return await working_set_in(web, visitor, tape, problem)
