"""API routes of memory: facts, quarantine, beliefs, problems and reference values."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from bot.inspector.dependencies import Owner, WebContextDep, require_owner
from bot.inspector.parameters import (
    API,
    BeforeVersion,
    BeliefName,
    Cursor,
    FactNumber,
    Offset,
    ProblemId,
    ReferenceKey,
    TapeName,
)
from bot.inspector.reading.beliefs import (
    BeliefList,
    BeliefWhy,
    WhichBeliefs,
    beliefs_in,
    why_believed,
)
from bot.inspector.reading.facts import (
    FactDetail,
    FactPage,
    FactQuery,
    fact_detail,
    fact_page,
    load_memory,
)
from bot.inspector.reading.memory import MemoryView, Quarantine, memory_view, quarantine
from bot.inspector.reading.problems import (
    ProblemList,
    WorkingSetView,
    problems_in,
    working_set_in,
)
from bot.inspector.reading.reference import (
    ReferenceList,
    ReferenceVersionList,
    reference_in,
    versions_of,
)

router = APIRouter(prefix=API, dependencies=[Depends(require_owner)])


@router.get("/memory", tags=["memory"])
async def get_memory(web: WebContextDep, visitor: Owner, tape: TapeName) -> MemoryView:
    """Return the state of memory of a conversation or scope.

    A private conversation's facts belong to the person, a group's to the group; everybody reads
    those of the workspace.
    """
    return await memory_view(web, await load_memory(web, visitor, tape))


@router.get("/facts", tags=["memory"])
async def list_facts(
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    fact_query: Annotated[FactQuery, Depends()],
) -> FactPage:
    """List facts by subject, those without one last.

    For a conversation, these are the facts of its scope; facts that everybody reads are listed by
    `tape=workspace:shared`. Erased facts are never listed.
    """
    return fact_page(await load_memory(web, visitor, tape), fact_query)


@router.get("/fact", tags=["memory"])
async def get_fact(
    web: WebContextDep, visitor: Owner, tape: TapeName, number: FactNumber
) -> FactDetail:
    """Return one fact with its evidence, the write gate's decisions and reasons, and its history.

    Of an erased fact, only its number, dates, entries and verdicts are left.
    """
    return await fact_detail(web, await load_memory(web, visitor, tape), number)


@router.get("/quarantine", tags=["memory"])
async def list_quarantine(
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    cursor: Cursor = 0,
    limit: Annotated[int, Query(ge=1, le=200, description="Number of results.")] = 50,
) -> Quarantine:
    """List facts that wait for a person's decision, with reasons, and recent rejections."""
    return await quarantine(web, await load_memory(web, visitor, tape), cursor, limit)


@router.get("/beliefs", tags=["beliefs"])
async def beliefs(
    *,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    which: Annotated[
        WhichBeliefs, Query(description="`current`: active and stale ones.")
    ] = "current",
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="Most beliefs.")] = 100,
) -> BeliefList:
    """List beliefs, the most confident first: confidence, daily decay, evidence.

    Commands confirm or end one: `/memory accept p3`, `/memory drop p3`.
    """
    return await beliefs_in(web, visitor, tape, which=which, offset=offset, limit=limit)


@router.get("/belief", tags=["beliefs"])
async def belief(web: WebContextDep, visitor: Owner, tape: TapeName, name: BeliefName) -> BeliefWhy:
    """Explain a belief: the evidence that it rests on in the end, and the gate's decision."""
    return await why_believed(web, visitor, tape, name)


@router.get("/problems", tags=["problems"])
async def problems(web: WebContextDep, visitor: Owner, tape: TapeName) -> ProblemList:
    """List a conversation's problems: the outcome and state of each, and which is active.

    Commands change them, such as `/problem switch p2`.
    """
    return await problems_in(web, visitor, tape)


@router.get("/working-set", tags=["problems"])
async def working_set(
    web: WebContextDep, visitor: Owner, tape: TapeName, problem: ProblemId = "general"
) -> WorkingSetView:
    """Return a problem's working set: constraints, assumptions, questions, drafts, decisions.

    Contested assumptions have the gate's reason. A working set expires when unused for its number
    of hours; then all lists are empty, and the problem's `summary` has its outcome.
    """
    return await working_set_in(web, visitor, tape, problem)


@router.get("/reference", tags=["reference"])
async def reference(web: WebContextDep, visitor: Owner, tape: TapeName) -> ReferenceList:
    """List the reference values in effect for a conversation: its scope's and the workspace's.

    Commands change them, such as `/reference rollback deadline 2`.
    """
    return await reference_in(web, visitor, tape)


@router.get("/reference/versions", tags=["reference"])
async def versions(
    *,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    key: ReferenceKey,
    before: BeforeVersion = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Most versions.")] = 20,
) -> ReferenceVersionList:
    """Return a value's versions, newest first: who set it, when, its evidence, what changed.

    If the scope never had the key, these are the versions of the workspace's value.
    """
    return await versions_of(web, visitor, tape, key, before=before, limit=limit)
