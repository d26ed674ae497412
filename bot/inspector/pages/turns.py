"""Pages of turns: the list, and the prompt of one."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from bot.agent.turn_history import past_turn
from bot.inspector.api.parameters import TapeName
from bot.inspector.api.turns import Before, Near, Step, TurnId, turn_model
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.prompt_view import (
    images_of,
    message_at,
    message_tokens,
    text_of,
    view_of,
)
from bot.inspector.reading.turns import FOUND_WITHIN, neighbours, turn_page
from bot.inspector.rendering import render_page
from bot.tape.service import TapeService

router = APIRouter(include_in_schema=False)

_EACH = 50
STATUSES = {
    "ok": ("answered", "ok"),
    "error": ("failed", "bad"),
    "open": ("not ended", "info"),
    "stopped": ("stopped", "warn"),
}


@router.get("/turns")
async def turns(
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    before: Before | None = None,
) -> HTMLResponse:
    """Render a conversation's turns."""
    found = await turn_page(TapeService(web.store, tape), before, _EACH)
    older = f"/turns?{urlencode({'tape': tape, 'before': found.older})}" if found.older else ""
    return render_page(
        request,
        "turns.html",
        visitor,
        tape=tape,
        turns=[turn_model(one) for one in found.turns],
        statuses=STATUSES,
        first=f"/turns?{urlencode({'tape': tape})}" if before is not None else "",
        older=older,
    )


@router.get("/turn")
async def turn(
    *,
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    turn: TurnId,
    step: Step | None = None,
    near: Near | None = None,
) -> HTMLResponse:
    """Render what the model saw in a turn."""
    service = TapeService(web.store, tape)
    past = await past_turn(service, turn, near, scanned=FOUND_WITHIN)
    view = await view_of(service, web.agent, past, step)
    before, behind = await neighbours(service, past)
    return render_page(
        request,
        "turn.html",
        visitor,
        tape=tape,
        turn=turn_model(past),
        view=view,
        before=before,
        behind=behind,
        statuses=STATUSES,
        message_at=message_at,
        text_of=text_of,
        images_of=images_of,
        message_tokens=message_tokens,
    )
