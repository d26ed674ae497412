"""The page that lists conversations and memory tapes: an owner's start page."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from bot.inspector.api.sessions import (
    Channel,
    DirectoryDep,
    SessionCursor,
    Words,
    cursor_of,
    place_of,
)
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.sessions import memories
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)

STATES = {
    "answering": ("answering", "info"),
    "undelivered": ("answer not delivered", "warn"),
    "unconsolidated": ("consolidation failed", "bad"),
    "damaged": ("cannot be read", "bad"),
}
"""A state's label, and the kind of its badge."""


@router.get("/sessions")
async def sessions(
    *,
    request: Request,
    web: WebContextDep,
    found: DirectoryDep,
    visitor: Owner,
    words: Words = "",
    channel: Channel = "",
    cursor: SessionCursor = "",
    people: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> HTMLResponse:
    """Render the conversations, most recently used first, and the memory tapes."""
    tapes = await web.store.list_tapes()
    listing = await found.newest(words=words, channel=channel, after=place_of(cursor), tapes=tapes)
    asked = {key: value for key, value in (("words", words), ("channel", channel)) if value}
    following = cursor_of(listing.next)
    memory = await memories(tapes, web.scopes)
    return render_page(
        request,
        "sessions.html",
        visitor,
        listing=listing,
        states=STATES,
        words=words,
        channel=channel,
        first=f"/sessions?{urlencode(asked)}" if cursor else "",
        older=f"/sessions?{urlencode({**asked, 'cursor': following})}" if following else "",
        memories=memory[people : people + 50],
        people=people,
        more_people=people + 50 if len(memory) > people + 50 else 0,
        memory_total=len(memory),
    )
