"""Pages of memory: a scope's facts, quarantine and zone, and one fact with its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from bot.inspector.api.facts import (
    FactNumber,
    FactQuery,
    StatusWanted,
    Subject,
    Words,
    fact_detail,
    fact_page,
)
from bot.inspector.api.memory import memory_view
from bot.inspector.api.parameters import Cursor, TapeName
from bot.inspector.api.quarantine import quarantine
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.facts import FactView, load_memory
from bot.inspector.rendering import render_markdown, render_page
from bot.memory.session.linking.scope_registry import PERSON_SCOPE_PREFIX

router = APIRouter(include_in_schema=False)

_A_PAGE = 200
_WAITING = 20

STATUSES = (
    ("active", "Believed"),
    ("pending", "Waiting"),
    ("ended", "No longer held"),
    ("all", "All"),
)


@router.get("/memory")
async def memory_page(
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    *,
    tape: TapeName,
    words: Words = "",
    status: StatusWanted = "active",
    subject: Subject = None,
    cursor: Cursor = 0,
    waiting: Annotated[int, Query(ge=0, le=999_999)] = 0,
) -> Response:
    """Render the memory of a conversation or scope."""
    # Without JavaScript, the form always sends the field.
    subject = None if subject == "*" else subject
    held = await load_memory(web, visitor, tape)
    view = await memory_view(web, held)
    wanted = FactQuery(words, status, subject, cursor, _A_PAGE)
    found = fact_page(held, wanted)
    shared = [] if held.is_workspace else [held.view(one, shared=True)
                                           for one in held.workspace.active()]  # fmt: skip
    asked = {"tape": tape, "words": words, "status": status}
    asked |= {} if subject is None else {"subject": subject}

    def at(place: int | None) -> str:
        return "" if place is None else f"/memory?{urlencode({**asked, 'cursor': place})}#facts"

    return render_page(
        request,
        "memory.html",
        visitor,
        tape=tape,
        memory=view,
        whose=_whose(view.kind, view.scope, view.identities),
        found=found,
        groups=_by_subject(found.facts),
        wanted=wanted,
        statuses=STATUSES,
        shared=shared,
        quarantine=await quarantine(web, held, waiting, _WAITING),
        waiting_at=waiting,
        newer=at(max(0, cursor - _A_PAGE)) if cursor else "",
        older=at(found.next),
        notes=[
            (day, render_markdown(text)) for day, text in (view.zone.notes if view.zone else ())
        ][::-1],
    )


def _by_subject(facts: Iterable[FactView]) -> list[tuple[str, list[FactView]]]:
    """Group facts by subject; they are sorted by it already."""
    return [
        (subject, list(some))
        for subject, some in groupby(facts, lambda one: one.subject.strip().lower())
    ]


def _whose(kind: str, scope: str, identities: list[str]) -> str:
    """Describe in words whose memory a scope is."""
    if kind == "workspace":
        return "everybody who talks to the bot"
    if kind == "session":
        return "this conversation alone"
    known = identities or [scope.removeprefix(PERSON_SCOPE_PREFIX)]
    return f"{' and '.join(known)}, in all their private chats"


@router.get("/fact")
async def fact_page_of_one(
    request: Request, web: WebContextDep, visitor: Owner, *, tape: TapeName, number: FactNumber
) -> Response:
    """Render one fact: its evidence, the decisions on it, and its history."""
    held = await load_memory(web, visitor, tape)
    detail = await fact_detail(web, held, number)
    return render_page(
        request, "fact.html", visitor, tape=tape, detail=detail, fact=detail.fact, kind=held.kind
    )
