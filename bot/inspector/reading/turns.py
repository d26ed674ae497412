"""Page through a conversation's turns, and find the neighbours of one."""

from __future__ import annotations

from contextlib import aclosing

from pydantic import Field

from bot.agent.turn_history import PastTurn, ScanPosition, past_turns, turn_id_of
from bot.core.clock import format_time
from bot.inspector.reading import ReadModel
from bot.memory.records.turn_marks import turn_start
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.batches import read_batches
from bot.tape.service import TapeService

MAX_ENTRIES_PER_PAGE = 20_000
"""The most entries that are read for a page of turns."""

FOUND_WITHIN = 100_000
"""Entries that are searched for a turn by its id; links name an entry near it."""

_AHEAD = 2_000
"""Entries that are searched for the turns before and after one."""


class CallModel(ReadModel):
    """A model call whose answer is on the tape."""

    step: int = Field(description="Its number within the turn.")
    at: int = Field(description="The last entry that the model saw.")
    status: str = Field(description="`tool_calls` or `answer`.")
    model: str = Field(description="Model that answered; empty if the tape does not record it.")
    prompt_tokens: int = Field(description="As counted by the provider.")
    cached_tokens: int | None = Field(
        description="Of those, tokens from the provider's cache; null if not reported."
    )
    completion_tokens: int
    cost: float | None = Field(description="US dollars; null if the price is unknown.")


class TurnModel(ReadModel):
    """A turn: from a person's message to the answer."""

    id: str
    first: int = Field(description="Id of its first entry: the message that it answers.")
    last: int = Field(description="Id of its last entry, or of its newest known entry.")
    started: str = Field(description="ISO 8601.")
    ended: str | None = Field(description="ISO 8601; null while it is open.")
    ms: float | None = Field(
        description="Milliseconds since it began or was last resumed; null while it is open."
    )
    status: str = Field(description="How it ended: `ok`, `error`, `stopped`; or `open`.")
    steps: int = Field(description="Answered model calls.")
    tools: tuple[str, ...] = Field(description="Tools that were called, in order.")
    model: str = Field(
        description="Model of the last answer; empty if the tape does not record it."
    )
    prompt_tokens: int | None = Field(description="Of all its calls; null while it is open.")
    cached_tokens: int | None
    completion_tokens: int | None
    cost: float | None = Field(description="US dollars; null if a price is unknown.")
    error: str | None = Field(description="What went wrong.")
    calls: tuple[CallModel, ...] = Field(description="Possible values of `step` of a view.")


class WaitingCallModel(ReadModel):
    """A tool call that waits for a person's yes."""

    number: int = Field(description="For `/approve` and `/deny`.")
    entry: int = Field(description="Id of the entry that holds it.")
    tool: str
    arguments: str = Field(description="JSON.")
    foreign: tuple[str, ...] = Field(
        description="What the model had in view that is not the person's own words."
    )
    labels: tuple[str, ...] = Field(description="Where each argument comes from.")
    reasons: tuple[str, ...] = Field(
        description="Why it waits although the owner allowed the tool; empty if each call does."
    )
    expires: str = Field(description="When it counts as denied, ISO 8601.")


class TurnsModel(ReadModel):
    """Turns, newest first."""

    tape: str
    waiting: tuple[WaitingCallModel, ...] = Field(
        description="Tool calls that wait for a person's yes, oldest first."
    )
    turns: tuple[TurnModel, ...]
    older: int | None = Field(description="Pass it as `before` for the next page.")


async def turn_page(tape: TapeService, before: int | None, limit: int) -> TurnsModel:
    """Return the newest turns, or the newest that began before an entry.

    Raises:
        TapeNotFound: There is no such tape.
    """
    waiting = await waiting_calls(tape)
    end = await tape.version() + 1
    end = end if before is None else min(before, end)
    found: list[PastTurn] = []
    reach = ScanPosition()
    async with aclosing(past_turns(tape, end, scanned=MAX_ENTRIES_PER_PAGE, reach=reach)) as turns:
        async for turn in turns:
            found.append(turn)
            if len(found) > limit:
                break
    if len(found) > limit:
        return _page(tape, found[:limit], found[limit - 1].first, waiting)
    # The scan limit was reached, so older turns may exist. The next page begins with the turn of
    # which only the end was read here.
    whole = reach.unfinished_turn_entry + 1
    return _page(tape, found, (whole if 1 < whole < end else reach.at) or None, waiting)


def _page(
    tape: TapeService,
    turns: list[PastTurn],
    older: int | None,
    waiting: tuple[WaitingCallModel, ...],
) -> TurnsModel:
    return TurnsModel(
        tape=tape.name, turns=tuple(map(turn_model, turns)), older=older, waiting=waiting
    )


async def waiting_calls(tape: TapeService) -> tuple[WaitingCallModel, ...]:
    """Return the calls that wait for a yes."""
    fold = await load_fold(tape)
    return tuple(
        WaitingCallModel(
            number=call.number,
            entry=call.entry,
            tool=call.tool,
            arguments=call.arguments,
            foreign=tuple(f"{one}" for one in call.foreign),
            labels=tuple(label.line() for label in call.labels),
            reasons=tuple(f"{one}" for one in call.reasons),
            expires=format_time(call.expires),
        )
        for call in fold.pending_calls.waiting
    )


def turn_model(turn: PastTurn) -> TurnModel:
    """Return a turn as it is shown."""
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
        error=None if turn.error is None else f"{turn.error}",
        calls=tuple(
            CallModel(
                step=model_call.step,
                at=model_call.at,
                status=model_call.status,
                model=model_call.model,
                prompt_tokens=model_call.usage.prompt_tokens,
                cached_tokens=model_call.usage.cached_tokens if model_call.cache_reported else None,
                completion_tokens=model_call.usage.completion_tokens,
                cost=model_call.usage.cost,
            )
            for model_call in turn.calls
        ),
    )


TurnLink = tuple[str, int]
"""A turn's id, and the id of one of its entries."""


async def neighbours(tape: TapeService, turn: PastTurn) -> tuple[TurnLink | None, TurnLink | None]:
    """Return links to the turns before and after a turn, if they are near."""
    before = None
    async with aclosing(past_turns(tape, turn.first, scanned=_AHEAD)) as turns:
        async for past_turn in turns:
            before = past_turn.id, past_turn.last
            break
    last = min(await tape.version(), turn.last + _AHEAD)
    async with aclosing(read_batches(tape.store, tape.name, turn.last + 1, last)) as parts:
        async for entries in parts:
            for entry in entries:
                start = turn_start(entry)
                behind = None if start is None else turn_id_of(start)
                if behind not in (None, turn.id):
                    return before, (str(behind), entry.id)
    return before, None
