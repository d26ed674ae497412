"""The timeline page: scroll through a tape, search it, and show one entry."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Annotated, Any
from urllib.parse import urlencode

import anyio
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from bot.core.errors import TapeNotFound
from bot.inspector.api.entries import detail
from bot.inspector.api.parameters import EntryId, TapeName
from bot.inspector.dependencies import Owner, WebContext, WebContextDep
from bot.inspector.reading.categories import Category
from bot.inspector.reading.entries import first_id, read_range
from bot.inspector.reading.entry_search import EntryQuery, EntrySearchResult, search_entries
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)

LABELS: dict[Category, tuple[str, str]] = {
    "message": ("message", ""),
    "answer": ("answer", "ok"),
    "tool": ("tool", ""),
    "anchor": ("anchor", "info"),
    "zone": ("memory", "info"),
    "consolidation": ("consolidation", "ok"),
    "gate": ("decision", "warn"),
    "command": ("command", ""),
    "delivery": ("delivery", ""),
    "turn": ("turn", ""),
    "system": ("system", ""),
    "other": ("other", ""),
}
"""A category's label, and the kind of its badge."""

_SHOWN = 60
"""Rows in the page as served, before any script runs."""

_ENOUGH = 20
_LONGEST_LOOK = 1.0
"""Seconds that a page searches for entries that are not in the index."""


@router.get("/timeline")
async def timeline(
    *,
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    entry: EntryId | None = None,
    words: Annotated[str, Query(max_length=1_000)] = "",
    category: Annotated[list[Category] | None, Query(max_length=12)] = None,
    sender: Annotated[str, Query(max_length=300)] = "",
    problem: Annotated[str, Query(max_length=100)] = "",
    since: Annotated[str, Query(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")] = "",
    until: Annotated[str, Query(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")] = "",
    before: EntryId | None = None,
) -> HTMLResponse:
    """Render a tape's newest entries, those around one entry, or search results."""
    version = await web.store.version(tape)
    given: dict[str, Any] = {
        "words": words,
        "category": category or [],
        "sender": sender,
        "problem": problem,
        "since": since,
        "until": until,
    }
    values: dict[str, Any] = {
        "tape": tape,
        "title": await web.store.get_title(tape) or tape,
        "version": version,
        "labels": LABELS,
        "given": given,
        "searching": any(given.values()),
    }
    if values["searching"]:
        zone = web.agent.timezone
        asked = EntryQuery(
            words=words,
            categories=frozenset(category or ()),
            sender=sender,
            problem=problem,
            since=_midnight(since, zone),
            until=_midnight(until, zone, days=1),
            before=before,
        )
        found = await _look(web, tape, asked)
        back = {**given, "tape": tape, "before": found.next}
        older = f"/timeline?{urlencode(back, doseq=True)}" if found.next else ""
        return render_page(request, "timeline.html", visitor, **values, found=found, older=older)
    return render_page(
        request, "timeline.html", visitor, **values, **await _around(web, tape, entry, version)
    )


async def _around(web: WebContext, tape: str, entry: int | None, version: int) -> dict[str, Any]:
    """Return the page's first rows, and the entry that it shows in full."""
    first = await first_id(web.store, tape)
    middle = version if entry is None else min(max(entry, first), version)
    begin = max(first, min(middle - _SHOWN // 2, version - _SHOWN + 1))
    about = None
    if entry is not None:
        try:
            about = await detail(web, tape, entry)
        except TapeNotFound:
            about = None
    rows = await read_range(web.store, tape, begin, begin + _SHOWN - 1)
    return {"first": first, "rows": rows, "entry": entry, "about": about}


async def _look(web: WebContext, tape: str, asked: EntryQuery) -> EntrySearchResult:
    """Search further back while few entries are found, for a second at most."""
    found = await search_entries(web.store, tape, asked)
    until = anyio.current_time() + _LONGEST_LOOK
    entries = list(found.entries)
    while found.next and len(entries) < _ENOUGH and anyio.current_time() < until:
        found = await search_entries(web.store, tape, replace(asked, before=found.next))
        entries += found.entries
    return EntrySearchResult(entries, found.ranked, found.next)


def _midnight(day: str, zone: tzinfo, *, days: int = 0) -> datetime | None:
    """Return the start of a day in a zone, ``days`` later; None if it is no date."""
    try:
        begun = date.fromisoformat(day) + timedelta(days=days)
    except (ValueError, OverflowError):
        return None
    return datetime.combine(begun, time(), tzinfo=zone)
