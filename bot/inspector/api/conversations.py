"""API routes of conversations: list them, read and search their entries, and turns."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Query, Request

from bot.agent.turn_history import past_turn
from bot.core.errors import HttpError
from bot.core.http.limits import run_until_disconnect
from bot.core.i18n import _
from bot.inspector.dependencies import WebContextDep, require_owner
from bot.inspector.parameters import (
    API,
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
from bot.inspector.reading import entries as reading
from bot.inspector.reading.entry_search import EntryQuery, EntrySearchModel, search_entries
from bot.inspector.reading.prompt_view import PromptViewModel, prompt_view
from bot.inspector.reading.schedules import SchedulesModel, read_schedules
from bot.inspector.reading.sessions import (
    DirectoryDep,
    MemoryModel,
    SessionModel,
    SessionsModel,
    is_conversation,
    memories,
)
from bot.inspector.reading.turns import FOUND_WITHIN, TurnsModel, turn_page
from bot.tape.codec import MAX_JSON_INTEGER
from bot.tape.service import TapeService

router = APIRouter(prefix=API, dependencies=[Depends(require_owner)])

LONGEST_WAIT = 25.0
"""Seconds that a request may wait."""

_WAITING = 24
"""Requests that may wait at once, so that they leave slots for other requests."""


@router.get("/sessions", tags=["sessions"])
async def sessions(
    directory_dep: DirectoryDep,
    words: SessionWords = "",
    channel: Channel = "",
    cursor: SessionCursor = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> SessionsModel:
    """List conversations, the most recently used first."""
    return await directory_dep.newest(words=words, channel=channel, cursor=cursor, limit=limit)


@router.get("/session", tags=["sessions"])
async def session(directory_dep: DirectoryDep, tape: TapeName) -> SessionModel:
    """Return the state of one conversation."""
    session_model = await directory_dep.get(tape) if is_conversation(tape) else None
    if session_model is None:
        raise HttpError(404, "not_found", _("there is no conversation {tape}", tape=repr(tape)))
    return session_model


@router.get("/memories", tags=["sessions"])
async def whose(web: WebContextDep) -> list[MemoryModel]:
    """List the memory tapes beside conversations: those of people, and the one everybody reads."""
    return await memories(await web.store.list_tapes(), web.scopes)


@router.get("/entries", tags=["entries"])
async def entries(
    web: WebContextDep, tape: TapeName, first: EntryId, last: EntryId
) -> reading.EntriesModel:
    """Return the entries of an id range, both ends included: 500 ids at most."""
    if not first <= last < first + reading.MOST:
        # for programs
        raise HttpError(422, "invalid_request", f"last: give first to first + {reading.MOST - 1}")
    entry_models = await reading.read_range(web.store, tape, first, last)
    return reading.EntriesModel(entries=tuple(entry_models), version=await web.store.version(tape))


@router.get("/entry", tags=["entries"])
async def entry(
    web: WebContextDep,
    tape: TapeName,
    id: EntryId,  # noqa: A002 (as entries call it)
) -> reading.EntryDetail:
    """Return one entry in full, with its evidence and the facts that cite it."""
    return await reading.entry_detail(web, tape, id)


@router.get("/entries/found", tags=["entries"])
async def found(
    web: WebContextDep, tape: TapeName, entry_query: Annotated[EntryQuery, Depends()]
) -> EntrySearchModel:
    """Search entries by words, category, kind, person, problem and time.

    A search for words alone, or in messages, answers, tools and anchors, uses the index, best match
    first. Any other search reads the tape back, a portion per request: a response may be empty and
    have a `next`.
    """
    return await search_entries(web.store, tape, entry_query)


@router.get("/entries/anchors", tags=["entries"])
async def anchors(
    web: WebContextDep, tape: TapeName, limit: Annotated[int, Query(ge=1, le=2_000)] = 500
) -> reading.ChaptersModel:
    """Return anchors, oldest first, and the ids of the tape's first and last entries."""
    return await reading.list_chapters(web.store, tape, limit)


@router.get("/follow", tags=["entries"])
async def follow(
    request: Request,
    web: WebContextDep,
    tape: TapeName,
    after: Annotated[int, Query(ge=0, le=MAX_JSON_INTEGER, description="The last known id.")],
    seconds: Annotated[
        float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait.")
    ] = LONGEST_WAIT,
) -> reading.EntriesModel:
    """Return the entries after an id, 500 at most; wait for them, and return none after a timeout.

    If too many requests wait already, this one returns at once: ask again after a few seconds.
    """
    waiting = _slots(request)
    if waiting.value == 0:
        news = await reading.wait_for_entries(web.store, tape, after, 0)
    else:
        async with waiting:
            wait = partial(reading.wait_for_entries, web.store, tape, after, seconds)
            news = await run_until_disconnect(request.receive, wait) or []
    return reading.EntriesModel(entries=tuple(news), version=await web.store.version(tape))


def _slots(request: Request) -> anyio.Semaphore:
    state = request.app.state
    if not hasattr(state, "waiting"):
        state.waiting = anyio.Semaphore(_WAITING)
    slots = state.waiting
    assert isinstance(slots, anyio.Semaphore)
    return slots


@router.get("/turns", tags=["turns"])
async def turns(
    web: WebContextDep,
    tape: TapeName,
    before: Before | None = None,
    limit: Annotated[
        int, Query(ge=1, le=200, description="Maximum number of turns per page.")
    ] = 50,
) -> TurnsModel:
    """List a conversation's turns, newest first. Commands are not turns."""
    return await turn_page(TapeService(web.store, tape), before, limit)


@router.get("/schedules", tags=["schedules"])
async def schedules(web: WebContextDep, tape: TapeName) -> SchedulesModel:
    """Return a conversation's reminders and tasks, and its newest occurrences."""
    return await read_schedules(web, tape)


@router.get("/view", tags=["turns"])
async def view(
    web: WebContextDep,
    tape: TapeName,
    turn: TurnId,
    step: Step | None = None,
    near: Near | None = None,
) -> PromptViewModel:
    """Return exactly the prompt of a model call, rebuilt from the tape.

    The response names what cannot be rebuilt: words erased since, a context builder that no longer
    exists, a call without an answer.
    """
    service = TapeService(web.store, tape)
    past = await past_turn(service, turn, near, scanned=FOUND_WITHIN)
    return await prompt_view(service, web.agent, past, step)
