"""API routes of sessions: list conversations and other memory tapes, and show one's state."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from bot.core.errors import HttpError
from bot.inspector.api import API
from bot.inspector.api.parameters import TapeName
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.sessions import (
    SessionDirectory,
    SessionSummary,
    is_conversation,
    memories,
    session_directory,
)

router = APIRouter(prefix=API, tags=["sessions"])

DirectoryDep = Annotated[SessionDirectory, Depends(session_directory)]
"""Route parameter: the directory of conversations."""

Words = Annotated[str, Query(max_length=200, description="Words of its key, title or people.")]
Channel = Annotated[str, Query(max_length=32, description="Only those of this channel.")]
SessionCursor = Annotated[str, Query(max_length=2_000, description="`next` of the answer before.")]


class SessionModel(BaseModel):
    """A summary of a conversation."""

    model_config = ConfigDict(frozen=True)

    tape: str = Field(description="The conversation's key.")
    channel: str = Field(description="Where it takes place.")
    title: str = Field(description="As people named it; empty where nobody did.")
    people: tuple[str, ...] = Field(description="Who spoke last, the newest first; at most four.")
    last_turn: str | None = Field(description="When a turn last began, ISO 8601.")
    entries: int = Field(description="Id of the last entry: how many it has ever had.")
    waiting: int = Field(description="Messages that are not consolidated yet.")
    turns: int = Field(description="Turns that ended, commands not counted.")
    prompt_tokens: int = Field(description="Tokens of all requests to the model.")
    cached_tokens: int = Field(description="How many of them came from the provider's cache.")
    completion_tokens: int = Field(description="Tokens of the model's answers.")
    cost: float | None = Field(description="US dollars; null where a price is unknown.")
    problem: str = Field(description="Id of the problem that is worked on.")
    problem_name: str = Field(description="What people call it; empty for `general`.")
    home: str = Field(description="The tape that what is learned here belongs to.")
    state: Literal["answering", "undelivered", "unconsolidated", "damaged", "idle"] = Field(
        description="A turn runs; an answer has no receipt; the last consolidation failed; the tape "
        "cannot be read; none of these."
    )


class SessionsModel(BaseModel):
    """Conversations, the most recently used first."""

    model_config = ConfigDict(frozen=True)

    sessions: tuple[SessionModel, ...]
    total: int = Field(description="How many there are of those asked for.")
    unread: int = Field(
        description="How many were not read yet since the start, and stand last until they are; every "
        "request reads some."
    )
    next: str | None = Field(description="Give it as `cursor` for those that follow.")
    channels: tuple[str, ...] = Field(description="Of all conversations.")


class MemoryModel(BaseModel):
    """The tape of a person's memory, or of the memory that everybody reads."""

    model_config = ConfigDict(frozen=True)

    tape: str = Field(description="Its key: give it as `tape`.")
    identities: tuple[str, ...] = Field(description="Whose; none for what everybody reads.")


@router.get("/sessions")
async def sessions(
    *,
    found: DirectoryDep,
    visitor: Owner,  # noqa: ARG001
    words: Words = "",
    channel: Channel = "",
    cursor: SessionCursor = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> SessionsModel:
    """List conversations, the most recently used first."""
    listing = await found.newest(words=words, channel=channel, after=place_of(cursor), limit=limit)
    return SessionsModel(
        sessions=tuple(map(session_model, listing.sessions)),
        total=listing.total,
        unread=listing.unread,
        next=cursor_of(listing.next),
        channels=listing.channels,
    )


@router.get("/session")
async def session(found: DirectoryDep, visitor: Owner, tape: TapeName) -> SessionModel:  # noqa: ARG001
    """Return the state of one conversation."""
    one = await found.get(tape) if is_conversation(tape) else None
    if one is None:
        raise HttpError(404, "not_found", f"there is no conversation {tape!r}")
    return session_model(one)


@router.get("/memories")
async def whose(web: WebContextDep, visitor: Owner) -> list[MemoryModel]:  # noqa: ARG001
    """List the memory tapes beside conversations: those of people, and the one everybody reads."""
    there = await memories(await web.store.list_tapes(), web.scopes)
    return [MemoryModel(tape=tape, identities=identities) for tape, identities in there]


def session_model(one: SessionSummary) -> SessionModel:
    """Convert a session summary to its API model."""
    return SessionModel(
        tape=one.tape,
        channel=one.channel,
        title=one.title,
        people=one.people,
        last_turn=one.last_turn or None,
        entries=one.version,
        waiting=one.waiting,
        turns=one.turns,
        prompt_tokens=one.usage.prompt_tokens,
        cached_tokens=one.usage.cached_tokens,
        completion_tokens=one.usage.completion_tokens,
        cost=one.usage.cost,
        problem=one.problem,
        problem_name=one.problem_name,
        home=one.home,
        state=one.state,  # type: ignore[arg-type]
    )


def cursor_of(place: tuple[str, str] | None) -> str | None:
    """Encode a position in the list as a cursor; None stays None."""
    if place is None:
        return None
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def place_of(cursor: str) -> tuple[str, str] | None:
    """Decode a cursor to its position in the list; None for the beginning.

    Raises:
        HttpError: 422 if it is no cursor.
    """
    if not cursor:
        return None
    try:
        used, tape = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise HttpError(422, "invalid_request", "cursor: give `next` of an answer") from error
    if not (isinstance(used, str) and isinstance(tape, str)):
        raise HttpError(422, "invalid_request", "cursor: give `next` of an answer")
    return used, tape
