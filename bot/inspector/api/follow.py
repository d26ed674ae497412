"""API route that waits for new entries of a tape (long polling)."""

from __future__ import annotations

from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request

from bot.core.errors import TapebotError
from bot.inspector.api import API
from bot.inspector.api.entries import EntriesModel, models
from bot.inspector.api.parameters import LARGEST_ID, TapeName
from bot.inspector.dependencies import Owner, WebContext, WebContextDep
from bot.inspector.reading import entries as reading

router = APIRouter(prefix=API, tags=["entries"])

LONGEST_WAIT = 25.0
"""Seconds that a request may wait."""

_WAITING = 24
"""Requests that may wait at once, so that they leave slots for other requests."""


@router.get("/follow")
async def follow(
    *,
    request: Request,
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
    tape: TapeName,
    after: Annotated[int, Query(ge=0, le=LARGEST_ID, description="The last id known.")],
    seconds: Annotated[
        float, Query(ge=0, le=LONGEST_WAIT, description="Wait so long.")
    ] = LONGEST_WAIT,
) -> EntriesModel:
    """Return the entries after an id, 500 at most; wait for them, and return none after a timeout.

    If too many requests wait already, this one returns at once: ask again after a few seconds.
    """
    waiting = _slots(request)
    if waiting.value == 0:
        return await _news(request, web, tape, after, 0)
    async with waiting:
        return await _news(request, web, tape, after, seconds)


def _slots(request: Request) -> anyio.Semaphore:
    state = request.app.state
    if not hasattr(state, "waiting"):
        state.waiting = anyio.Semaphore(_WAITING)
    slots = state.waiting
    assert isinstance(slots, anyio.Semaphore)
    return slots


async def _news(
    request: Request, web: WebContext, tape: str, after: int, seconds: float
) -> EntriesModel:
    news: list[reading.EntrySummary] = []
    failed: TapebotError | None = None
    async with anyio.create_task_group() as tasks:

        async def given_up() -> None:
            # The client is gone: stop waiting.
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(given_up)
        try:
            news = await reading.wait_for_entries(web.store, tape, after, seconds)
        except TapebotError as error:
            failed = error
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return EntriesModel(entries=models(news), version=await web.store.version(tape))
