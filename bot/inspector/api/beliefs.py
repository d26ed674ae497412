"""API routes of beliefs: list them, and explain one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from bot.inspector.api import API
from bot.inspector.api.parameters import TapeName
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.beliefs import (
    BeliefList,
    BeliefWhy,
    WhichBeliefs,
    beliefs_in,
    why_believed,
)

router = APIRouter(prefix=API, tags=["beliefs"])

BeliefName = Annotated[str, Query(pattern=r"^p[0-9]{1,15}$", description="Such as `p3`.")]


@router.get("/beliefs")
async def beliefs(
    *,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    which: Annotated[
        WhichBeliefs, Query(description="`current`: active and stale ones.")
    ] = "current",
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="How many to pass over.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="Most beliefs.")] = 100,
) -> BeliefList:
    """List beliefs, the most confident first: confidence, daily decay, evidence.

    Commands confirm or end one: `/memory accept p3`, `/memory drop p3`.
    """
    return await beliefs_in(web, visitor, tape, which=which, offset=offset, limit=limit)


@router.get("/belief")
async def belief(web: WebContextDep, visitor: Owner, tape: TapeName, name: BeliefName) -> BeliefWhy:
    """Explain a belief: the evidence that it rests on in the end, and the gate's decision."""
    return await why_believed(web, visitor, tape, name)
