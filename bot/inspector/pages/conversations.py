"""Pages of conversations: the chat, the list, the timeline of a tape, and its turns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Annotated, Any
from urllib.parse import urlencode

import anyio
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from bot.agent.turn_history import past_turn
from bot.core.errors import TapeNotFound
from bot.inspector.dependencies import Member, Owner, WebContext, WebContextDep
from bot.inspector.labels import categories
from bot.inspector.parameters import (
    Before,
    Channel,
    EntryId,
    Near,
    SessionCursor,
    SessionWords,
    Step,
    TapeName,
    TurnId,
)
from bot.inspector.reading.categories import Category
from bot.inspector.reading.entries import entry_detail, first_id, read_range
from bot.inspector.reading.entry_search import EntryQuery, EntrySearchModel, search_entries
from bot.inspector.reading.prompt_view import images_of, prompt_view, text_of
from bot.inspector.reading.schedules import read_schedules
from bot.inspector.reading.sessions import DirectoryDep, memories
from bot.inspector.reading.turns import FOUND_WITHIN, neighbours, turn_page
from bot.inspector.rendering import render_page
from bot.tape.service import TapeService

router = APIRouter(include_in_schema=False)

_SHOWN = 60
"""Rows in the page as served, before any script runs."""

_ENOUGH = 20
_LONGEST_LOOK = 1.0
"""Seconds that a page searches for entries that are not in the index."""

_TURNS = 50


@router.get("/", response_class=HTMLResponse)
async def chat(request: Request, visitor: Member) -> HTMLResponse:
    """Render the user's own conversation with the bot."""
    return render_page(request, "chat.html", visitor, session=visitor.address.session)


@router.get("/sessions")
async def sessions(
    *,
    request: Request,
    web: WebContextDep,
    directory_dep: DirectoryDep,
    visitor: Owner,
    words: SessionWords = "",
    channel: Channel = "",
    cursor: SessionCursor = "",
    people: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> HTMLResponse:
    """Render the conversations, most recently used first, and the memory tapes."""
    tapes = await web.store.list_tapes()
    listing = await directory_dep.newest(words=words, channel=channel, cursor=cursor, tapes=tapes)
    asked = {key: value for key, value in (("words", words), ("channel", channel)) if value}
    memory = await memories(tapes, web.scopes)
    return render_page(
        request,
        "sessions.html",
        visitor,
        listing=listing,
        words=words,
        channel=channel,
        first=f"/sessions?{urlencode(asked)}" if cursor else "",
        older=f"/sessions?{urlencode({**asked, 'cursor': listing.next})}" if listing.next else "",
        memories=memory[people : people + 50],
        people=people,
        more_people=people + 50 if len(memory) > people + 50 else 0,
        memory_total=len(memory),
    )


@dataclass(frozen=True, slots=True)
class TimelineFilter:
    """What the form of the timeline asks for."""

    words: Annotated[str, Query(max_length=1_000)] = ""
    category: Annotated[list[Category] | None, Query(max_length=13)] = None
    sender: Annotated[str, Query(max_length=300)] = ""
    problem: Annotated[str, Query(max_length=100)] = ""
    since: Annotated[str, Query(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")] = ""
    until: Annotated[str, Query(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")] = ""

    def query(self, zone: tzinfo, before: int | None) -> EntryQuery:
        """Return the search, with the days of a time zone."""
        values: dict[str, Any] = asdict(self)
        values["since"] = _midnight(self.since, zone)
        values["until"] = _midnight(self.until, zone, days=1)
        return EntryQuery(**values, before=before)


@router.get("/timeline")
async def timeline(
    *,
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    given: Annotated[TimelineFilter, Depends()],
    entry: EntryId | None = None,
    before: EntryId | None = None,
) -> HTMLResponse:
    """Render a tape's newest entries, those around one entry, or search results."""
    version = await web.store.version(tape)
    searching = any(asdict(given).values())
    if searching:
        shown = await _found(web, tape, given, before)
    else:
        shown = await _around(web, tape, entry, version)
    return render_page(
        request,
        "timeline.html",
        visitor,
        tape=tape,
        title=await web.store.get_title(tape) or tape,
        version=version,
        categories=categories(),
        given=given,
        searching=searching,
        **shown,
    )


async def _found(
    web: WebContext, tape: str, given: TimelineFilter, before: int | None
) -> dict[str, Any]:
    """Return what the page shows of a search."""
    search_model = await _look(web, tape, given.query(web.agent.timezone, before))
    asked = {
        **asdict(given),
        "category": given.category or [],
        "tape": tape,
        "before": search_model.next,
    }
    older = f"/timeline?{urlencode(asked, doseq=True)}" if search_model.next else ""
    return {"found": search_model, "older": older}


async def _around(web: WebContext, tape: str, entry: int | None, version: int) -> dict[str, Any]:
    """Return the page's first rows, and the entry that it shows in full."""
    first = await first_id(web.store, tape)
    middle = version if entry is None else min(max(entry, first), version)
    begin = max(first, min(middle - _SHOWN // 2, version - _SHOWN + 1))
    about = None
    if entry is not None:
        try:
            about = await entry_detail(web, tape, entry)
        except TapeNotFound:
            about = None
    rows = await read_range(web.store, tape, begin, begin + _SHOWN - 1)
    return {"first": first, "rows": rows, "entry": entry, "about": about}


async def _look(web: WebContext, tape: str, entry_query: EntryQuery) -> EntrySearchModel:
    """Search further back while few entries are found, for a second at most."""
    search_model = await search_entries(web.store, tape, entry_query)
    until = anyio.current_time() + _LONGEST_LOOK
    entries = list(search_model.entries)
    while search_model.next and len(entries) < _ENOUGH and anyio.current_time() < until:
        search_model = await search_entries(
            web.store, tape, replace(entry_query, before=search_model.next)
        )
        entries += search_model.entries
    return search_model.model_copy(update={"entries": tuple(entries)})


def _midnight(day: str, zone: tzinfo, *, days: int = 0) -> datetime | None:
    """Return the start of a day in a zone, ``days`` later; None if it is no date."""
    try:
        begun = date.fromisoformat(day) + timedelta(days=days)
    except (ValueError, OverflowError):
        return None
    return datetime.combine(begun, time(), tzinfo=zone)


@router.get("/turns")
async def turns(
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    before: Before | None = None,
) -> HTMLResponse:
    """Render a conversation's turns."""
    turns_model = await turn_page(TapeService(web.store, tape), before, _TURNS)
    older = (
        f"/turns?{urlencode({'tape': tape, 'before': turns_model.older})}"
        if turns_model.older
        else ""
    )
    return render_page(
        request,
        "turns.html",
        visitor,
        tape=tape,
        turns=turns_model.turns,
        waiting=turns_model.waiting,
        first=f"/turns?{urlencode({'tape': tape})}" if before is not None else "",
        older=older,
    )


@router.get("/schedules")
async def schedules(
    request: Request, web: WebContextDep, visitor: Owner, tape: TapeName
) -> HTMLResponse:
    """Render a conversation's reminders and tasks, and what was due."""
    model = await read_schedules(web, tape)
    return render_page(request, "schedules.html", visitor, tape=tape, model=model)


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
    view = await prompt_view(service, web.agent, past, step)
    before, behind = await neighbours(service, past)
    return render_page(
        request,
        "turn.html",
        visitor,
        tape=tape,
        turn=view.turn,
        view=view,
        before=before,
        behind=behind,
        text_of=text_of,
        images_of=images_of,
    )
