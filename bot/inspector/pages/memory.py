"""Pages of memory: facts and quarantine, one fact, zones, problems, reference values and beliefs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse

from bot.core.i18n import _, format_list
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.labels import fact_filters
from bot.inspector.parameters import (
    LARGEST_VERSION,
    BeforeVersion,
    BeliefName,
    FactNumber,
    Offset,
    ReferenceKey,
    TapeName,
)
from bot.inspector.reading.beliefs import WhichBeliefs, beliefs_in, why_believed
from bot.inspector.reading.diffs import DiffLine, ZonePartDiff
from bot.inspector.reading.facts import (
    FactQuery,
    FactView,
    fact_detail,
    fact_page,
    last_change,
    load_memory,
)
from bot.inspector.reading.memory import memory_view, quarantine
from bot.inspector.reading.problems import problems_in, working_sets_in
from bot.inspector.reading.reference import reference_in, versions_of
from bot.inspector.reading.zones import list_zones, zone_diff, zone_page
from bot.inspector.rendering import render_markdown, render_page
from bot.memory.records.imports import ASSISTANTS
from bot.memory.session.linking.scope_registry import PERSON_SCOPE_PREFIX, is_shared_scope

router = APIRouter(include_in_schema=False)

_FACTS = 200
_WAITING = 20
_ZONES = 30
_VERSIONS = 20
_BELIEFS = 100

_PICKED = 300
"""Up to this many versions, a list offers them all."""

_AROUND = 3
"""Unchanged lines shown beside a change."""


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line of a diff, or the number of unchanged lines that are left out."""

    line: DiffLine | None
    skipped: int = 0


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


@router.get("/zones")
async def zones_page(
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    *,
    tape: TapeName,
    old: Annotated[int | None, Query(alias="from", ge=0, le=LARGEST_VERSION)] = None,
    new: Annotated[int | None, Query(alias="to", ge=0, le=LARGEST_VERSION)] = None,
    before: BeforeVersion = None,
) -> Response:
    """Render a zone's versions and the diff of two: by default the newest and the one before."""
    zone_locations = await list_zones(web.store, tape)
    listed = await zone_page(web, tape, before, _ZONES, zone_locations)
    numbers = [zone_location.version for zone_location in zone_locations]
    if new is None:
        new = numbers[0] if numbers else 0
    if old is None:
        old = next((number for number in numbers if number < new), 0)
    diff = await zone_diff(web, tape, old, new, zone_locations)
    older = {"tape": tape, "from": old, "to": new, "before": listed.before}
    return render_page(
        request,
        "zones.html",
        visitor,
        tape=tape,
        is_scope=is_shared_scope(tape),
        last_change=None
        if is_shared_scope(tape)
        else await last_change(await load_memory(web, visitor, tape)),
        listed=listed,
        previous=dict(zip(numbers, [*numbers[1:], 0], strict=False)),
        picked=zone_locations if len(zone_locations) <= _PICKED else [],
        diff=diff,
        parts=[(part, list(rows(part))) for part in diff.parts],
        newest_page=before is None,
        older=f"/zones?{urlencode(older)}#versions" if listed.before else "",
    )


def rows(part: ZonePartDiff) -> Iterator[DiffRow]:
    """Yield the lines of a part's diff, with long unchanged runs cut to the lines near a change."""
    lines = part.lines
    near = {
        at + step
        for at, line in enumerate(lines)
        if line.kind != "same"
        for step in range(-_AROUND, _AROUND + 1)
    }
    skipped = 0
    for at, line in enumerate(lines):
        if line.kind == "same" and at not in near:
            skipped += 1
            continue
        if skipped:
            yield DiffRow(None, skipped)
            skipped = 0
        yield DiffRow(line)
    if skipped:
        yield DiffRow(None, skipped)


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
