"""The page of a conversation's problems and their working sets."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from bot.inspector.api.parameters import TapeName
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.problems import problems_in, working_sets_in
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)


@router.get("/problems")
async def problems(
    request: Request, web: WebContextDep, visitor: Owner, tape: TapeName
) -> HTMLResponse:
    """Render a conversation's problems, with the working sets of those not completed."""
    found = await problems_in(web, visitor, tape)
    living = [one for one in found.problems if one.state != "completed"]
    ended = [one for one in found.problems if one.state == "completed"]
    sets = await working_sets_in(web, visitor, tape, [one.id for one in living])
    return render_page(
        request,
        "problems.html",
        visitor,
        tape=tape,
        found=found,
        living=living,
        ended=ended,
        sets=sets,
    )
