"""Pages of memory: facts and quarantine, one fact, problems, reference values and beliefs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse

from bot.core.i18n import _, format_list
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.labels import fact_filters
from bot.inspector.parameters import (
    BeforeVersion,
    BeliefName,
    FactNumber,
    Offset,
    ReferenceKey,
    TapeName,
)
from bot.inspector.reading.beliefs import WhichBeliefs, beliefs_in, why_believed
from bot.inspector.reading.facts import (
    FactQuery,
    FactView,
    fact_detail,
    fact_page,
    load_memory,
)
from bot.inspector.reading.memory import memory_view, quarantine
from bot.inspector.reading.problems import problems_in, working_sets_in
from bot.inspector.reading.reference import reference_in, versions_of
from bot.inspector.rendering import render_markdown, render_page
from bot.memory.records.imports import ASSISTANTS
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX

router = APIRouter(include_in_schema=False)

_FACTS = 200
_WAITING = 20
_VERSIONS = 20
_BELIEFS = 100


@router.get("/memory")
async def memory_page(
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    *,
    tape: TapeName,
    asked: Annotated[FactQuery, Depends()],
    waiting: Annotated[int, Query(ge=0, le=999_999)] = 0,
) -> Response:
    """Render the memory of a conversation or scope."""
    # Without JavaScript, the form always sends the field.
    subject = None if asked.subject == "*" else asked.subject
    fact_query = replace(asked, subject=subject, limit=_FACTS)
    loaded_memory = await load_memory(web, visitor, tape)
    view = await memory_view(web, loaded_memory)
    found = fact_page(loaded_memory, fact_query)
    shared = () if loaded_memory.is_workspace else loaded_memory.workspace.active()
    notes = view.zone.notes if view.zone else []
    return render_page(
        request,
        "memory.html",
        visitor,
        tape=tape,
        memory=view,
        whose=_whose(view.kind, view.scope, view.identities),
        found=found,
        groups=_by_subject(found.facts),
        wanted=fact_query,
        statuses=fact_filters(),
        shared=[loaded_memory.view(fact, shared=True) for fact in shared],
        quarantine=await quarantine(web, loaded_memory, waiting, _WAITING),
        waiting_at=waiting,
        assistants=ASSISTANTS,
        newer=_facts_url(tape, fact_query, max(0, asked.cursor - _FACTS)) if asked.cursor else "",
        older="" if found.next is None else _facts_url(tape, fact_query, found.next),
        notes=[(day, render_markdown(text)) for day, text in reversed(notes)],
    )


def _facts_url(tape: str, fact_query: FactQuery, cursor: int) -> str:
    asked = {"tape": tape, "words": fact_query.words, "status": fact_query.status}
    asked |= {} if fact_query.subject is None else {"subject": fact_query.subject}
    return f"/memory?{urlencode({**asked, 'cursor': cursor})}#facts"


def _by_subject(facts: Iterable[FactView]) -> list[tuple[str, list[FactView]]]:
    """Group facts by subject; they are sorted by it already."""
    return [
        (subject, list(some))
        for subject, some in groupby(facts, lambda fact_view: fact_view.subject.strip().lower())
    ]


def _whose(kind: str, scope: str, identities: list[str]) -> str:
    """Describe in words whose memory a scope is."""
    if kind == "workspace":
        return _("everyone who uses the bot")
    if kind == "session":
        return _("this conversation alone")
    known = identities or [scope.removeprefix(PERSON_SCOPE_PREFIX)]
    people = format_list(known)
    return _("{people}, in all their private chats", people=people)


@router.get("/fact")
async def fact_page_of_one(
    request: Request, web: WebContextDep, visitor: Owner, *, tape: TapeName, number: FactNumber
) -> Response:
    """Render one fact: its evidence, the decisions on it, and its history."""
    loaded_memory = await load_memory(web, visitor, tape)
    detail = await fact_detail(web, loaded_memory, number)
    return render_page(
        request,
        "fact.html",
        visitor,
        tape=tape,
        detail=detail,
        fact=detail.fact,
        kind=loaded_memory.kind,
    )


@router.get("/problems")
async def problems(
    request: Request, web: WebContextDep, visitor: Owner, tape: TapeName
) -> HTMLResponse:
    """Render a conversation's problems, with the working sets of those not completed."""
    problem_list = await problems_in(web, visitor, tape)
    living = [
        problem_view for problem_view in problem_list.problems if problem_view.state != "completed"
    ]
    ended = [
        problem_view for problem_view in problem_list.problems if problem_view.state == "completed"
    ]
    sets = await working_sets_in(web, visitor, tape, [problem_view.id for problem_view in living])
    return render_page(
        request,
        "problems.html",
        visitor,
        tape=tape,
        found=problem_list,
        living=living,
        ended=ended,
        sets=sets,
    )


@router.get("/reference")
async def reference(
    *,
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    key: ReferenceKey | None = None,
    before: BeforeVersion = None,
    belief: BeliefName | None = None,
    which: WhichBeliefs = "current",
    offset: Offset = 0,
) -> HTMLResponse:
    """Render reference values, one value's versions if asked for, and the beliefs."""
    reference_list = await reference_in(web, visitor, tape)
    versions = why = None
    if key is not None:
        versions = await versions_of(web, visitor, tape, key, before=before, limit=_VERSIONS)
    if belief is not None:
        why = await why_believed(web, visitor, tape, belief)
    listed = await beliefs_in(web, visitor, tape, which=which, offset=offset, limit=_BELIEFS)
    return render_page(
        request, "reference.html", visitor, tape=tape, found=reference_list, key=key, versions=versions, why=why,
        beliefs=listed, which=which, offset=offset, older=max(0, offset - _BELIEFS),
    )  # fmt: skip
