"""The chat page; its messages go over the web channel's WebSocket."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from bot.inspector.dependencies import Member
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)


@router.get("/", response_class=HTMLResponse)
async def chat(request: Request, visitor: Member) -> HTMLResponse:
    """Render the user's own conversation with the bot."""
    return render_page(request, "chat.html", visitor, session=visitor.address.session)
