"""API routes of turns: list them, and show exactly what the model saw in one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from bot.agent.turn_history import PastTurn, past_turn
from bot.inspector.api import API
from bot.inspector.api.parameters import LARGEST_ID, TapeName
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.prompt_view import (
    PromptPart,
    PromptView,
    message_tokens,
    view_of,
)
from bot.inspector.reading.turns import FOUND_WITHIN, turn_page
from bot.llm.base import ChatMessage
from bot.tape.service import TapeService

router = APIRouter(prefix=API, tags=["turns"])

LIMIT = 50

Before = Annotated[int, Query(ge=1, le=LARGEST_ID, description="`older` of a page.")]
Limit = Annotated[int, Query(ge=1, le=200, description="Turns of a page at most.")]
TurnId = Annotated[str, Query(min_length=1, max_length=100, description="The turn's id.")]
Near = Annotated[
    int,
    Query(ge=1, le=LARGEST_ID, description="An entry of the turn: it is found sooner."),
]
Step = Annotated[int, Query(ge=1, le=10_000, description="A step; by default the last.")]


class CallModel(BaseModel):
    """A model call whose answer is on the tape."""

    model_config = ConfigDict(frozen=True)

    step: int = Field(description="Its number within the turn.")
    at: int = Field(description="The last entry that the model knew of.")
    status: str = Field(description="`tool_calls` or `answer`.")
    model: str = Field(description="Who answered; empty where the tape does not say.")
    prompt_tokens: int = Field(description="As the provider counted.")
    cached_tokens: int | None = Field(
        description="Of those, served from the provider's cache; null where it does not say."
    )
    completion_tokens: int
    cost: float | None = Field(description="US dollars; null where the price is unknown.")


class TurnModel(BaseModel):
    """A turn: from a person's message to the answer."""

    model_config = ConfigDict(frozen=True)

    id: str
    first: int = Field(description="Id of its first entry: the message that it answers.")
    last: int = Field(description="Id of its end, or of the newest that is known of it.")
    started: str = Field(description="ISO 8601.")
    ended: str | None = Field(description="ISO 8601; null while it is open.")
    ms: float | None = Field(
        description="Milliseconds since it began or was last taken up; null while it is open."
    )
    status: str = Field(description="How it ended: `ok`, `error`, `stopped`; or `open`.")
    steps: int = Field(description="Model calls that were answered.")
    tools: tuple[str, ...] = Field(description="Tools that were called, in order.")
    model: str = Field(description="Who answered last; empty where the tape does not say.")
    prompt_tokens: int | None = Field(description="Of all its calls; null while it is open.")
    cached_tokens: int | None
    completion_tokens: int | None
    cost: float | None = Field(description="US dollars; null where a price is unknown.")
    error: str | None = Field(description="What went wrong.")
    calls: tuple[CallModel, ...] = Field(description="What can be asked for as `step` of a view.")


class TurnsModel(BaseModel):
    """Turns, newest first."""

    model_config = ConfigDict(frozen=True)

    tape: str
    turns: tuple[TurnModel, ...]
    older: int | None = Field(description="Give it as `before` for those that follow.")


class PromptPartModel(BaseModel):
    """A part of a prompt."""

    model_config = ConfigDict(frozen=True)

    key: str = Field(
        description="`identity`, `file`, `skills`, `memory`, `records`, `handoff`, `tools`, "
        "`history`, `newest`, `steps` or `tail`."
    )
    title: str
    tokens: int = Field(description="About how many it has: an estimate.")
    messages: tuple[int, ...] = Field(description="Places of its messages in `messages`.")
    note: str


class MessageModel(BaseModel):
    """A message of the prompt."""

    model_config = ConfigDict(frozen=True)

    role: str
    content: str | list[dict[str, Any]] | None = Field(
        description="As it was sent; an image is `image:` and its SHA-256."
    )
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    entries: tuple[int, ...] = Field(description="What it was made of; empty where unknown.")
    tokens: int = Field(description="An estimate.")


class PromptViewModel(BaseModel):
    """The prompt of one model call."""

    model_config = ConfigDict(frozen=True)

    tape: str
    turn: TurnModel
    call: CallModel | None = Field(description="Which; null where none was answered.")
    builder: str | None = Field(description="Name of the context builder.")
    messages: tuple[MessageModel, ...] = Field(description="In order; empty where `why` is told.")
    parts: tuple[PromptPartModel, ...]
    tokens: int = Field(description="Of all parts: an estimate; the provider's own is in `call`.")
    cached_share: float | None = Field(
        description="Share of the prompt that the provider's cache served; null where it does not say."
    )
    tail: str = Field(description="What the last message ends with.")
    memory: tuple[int, int] | None = Field(description="First and last entry of the zone shown.")
    boundary: int | None = Field(description="The boundary that the view begins at.")
    erased: tuple[int, ...] = Field(description="Entries in view whose words were erased since.")
    notes: tuple[str, ...] = Field(description="What else differs from what the model saw.")
    why: str = Field(description="Why it cannot be shown; empty where it can.")


@router.get("/turns")
async def turns(
    *,
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
    tape: TapeName,
    before: Before | None = None,
    limit: Limit = LIMIT,
) -> TurnsModel:
    """List a conversation's turns, newest first. Commands are not turns."""
    found = await turn_page(TapeService(web.store, tape), before, limit)
    return TurnsModel(tape=tape, turns=tuple(map(turn_model, found.turns)), older=found.older)


@router.get("/view")
async def view(
    *,
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
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
    return _model(tape, past, await view_of(service, web.agent, past, step))


def turn_model(turn: PastTurn) -> TurnModel:
    """Convert a turn to its API model."""
    usage = turn.usage
    untold = bool(turn.calls) and not any(call.cache_reported for call in turn.calls)
    return TurnModel(
        id=turn.id,
        first=turn.first,
        last=turn.last,
        started=turn.started,
        ended=turn.ended,
        ms=turn.ms,
        status=turn.status,
        steps=turn.steps,
        tools=turn.tools,
        model=turn.model,
        prompt_tokens=usage.prompt_tokens if usage else None,
        cached_tokens=usage.cached_tokens if usage and not untold else None,
        completion_tokens=usage.completion_tokens if usage else None,
        cost=usage.cost if usage else None,
        error=turn.error,
        calls=tuple(
            CallModel(
                step=one.step,
                at=one.at,
                status=one.status,
                model=one.model,
                prompt_tokens=one.usage.prompt_tokens,
                cached_tokens=one.usage.cached_tokens if one.cache_reported else None,
                completion_tokens=one.usage.completion_tokens,
                cost=one.usage.cost,
            )
            for one in turn.calls
        ),
    )


def _model(tape: str, turn: PastTurn, found: PromptView) -> PromptViewModel:
    told = turn_model(turn)
    shown = found.seen
    calls = {(one.step, one.at): one for one in told.calls}
    return PromptViewModel(
        tape=tape,
        turn=told,
        call=calls[found.call.step, found.call.at] if found.call is not None else None,
        builder=shown.builder if shown else None,
        messages=_messages(found),
        parts=tuple(map(_part, found.parts)),
        tokens=found.tokens,
        cached_share=found.cached_share,
        tail=shown.tail if shown else "",
        memory=shown.memory if shown else None,
        boundary=(shown.boundary or None) if shown else None,
        erased=shown.erased if shown else (),
        notes=shown.notes if shown else (),
        why=found.why,
    )


def _part(part: PromptPart) -> PromptPartModel:
    return PromptPartModel(
        key=part.key,
        title=part.title,
        tokens=part.tokens,
        messages=part.messages,
        note=part.note,
    )


def _messages(found: PromptView) -> tuple[MessageModel, ...]:
    if found.seen is None:
        return ()
    made_of: list[tuple[int, ...]] = [(found.seen.prompt,) if found.seen.prompt else ()]
    made_of += [one.entries for one in found.seen.history]
    return tuple(
        _message(one, entries) for one, entries in zip(found.seen.messages(), made_of, strict=True)
    )


def _message(message: ChatMessage, entries: tuple[int, ...]) -> MessageModel:
    return MessageModel(
        role=message["role"],
        content=message.get("content"),
        tool_calls=message.get("tool_calls"),
        tool_call_id=message.get("tool_call_id"),
        entries=entries,
        tokens=message_tokens(message),
    )
