"""The page of reference values, their versions, and beliefs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from bot.inspector.api.beliefs import BeliefName
from bot.inspector.api.parameters import BeforeVersion, TapeName
from bot.inspector.api.reference import Key
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.beliefs import WhichBeliefs, beliefs_in, why_believed
from bot.inspector.reading.reference import reference_in, versions_of
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)

_VERSIONS = 20
_BELIEFS = 100


@router.get("/reference")
async def reference(
    *,
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    key: Key | None = None,
    before: BeforeVersion = None,
    belief: BeliefName | None = None,
    which: WhichBeliefs = "current",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> HTMLResponse:
    """Render reference values, one value's versions if asked for, and the beliefs."""
    found = await reference_in(web, visitor, tape)
    versions = why = None
    if key is not None:
        versions = await versions_of(web, visitor, tape, key, before=before, limit=_VERSIONS)
    if belief is not None:
        why = await why_believed(web, visitor, tape, belief)
    listed = await beliefs_in(web, visitor, tape, which=which, offset=offset, limit=_BELIEFS)
    return render_page(
        request, "reference.html", visitor, tape=tape, found=found, key=key, versions=versions, why=why,
        beliefs=listed, which=which, offset=offset, older=max(0, offset - _BELIEFS),
    )  # fmt: skip
