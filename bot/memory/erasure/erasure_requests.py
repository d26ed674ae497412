"""Read and write the tape entries of an erasure: the request, what was shown for it, the result.

Rule 1: a request is a command or a tool call; a person confirms it by the id of that entry.
Rule 2: an event without text records what the confirmation listed; only a person's newest request
    counts.
Rule 3: an event records that a request was carried out; only the newest entries are searched for
    it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from bot.core.errors import MemoryRefused, TapeNotFound
from bot.core.i18n import _
from bot.memory.erasure.closure import FORGET_REQUESTED_EVENT, FORGOTTEN_EVENT, Closure
from bot.memory.erasure.erasure_messages import ErasureResult, list_items
from bot.memory.erasure.erasure_query import ErasureItem, ErasureQuery, parse_query
from bot.memory.records.event_names import COMMAND
from bot.memory.records.transcript import recorded_at
from bot.memory.session.long_term_memory import LongTermMemory
from bot.tape.entries import TapeEntry, event
from bot.tape.service import TapeService

FORGET_TOOL_NAME = "memory_forget"
FORGET_SUBCOMMAND = "forget"
_VALID = timedelta(days=1)
_LOOKED_AT = 5_000


class RequestGone(MemoryRefused):
    """A request does not wait any more for an answer, or there is none."""


@dataclass(frozen=True)
class PendingErasure:
    """What a confirmation listed: ids and counts, and the platform ids of the people who asked."""

    request: int
    askers: frozenset[str] = frozenset()
    facts: frozenset[int] = frozenset()
    messages: int = 0
    items: tuple[ErasureItem, ...] = ()

    def confirmed(
        self, request: TapeEntry, picked: Collection[int]
    ) -> tuple[PendingErasure, ErasureQuery]:
        """Return what a person confirms, of all or of the picked items, and its query.

        Raises:
            MemoryRefused: A picked number belongs to no item.
        """
        # The text may be erased already; the facts are known all the same.
        query = query_in_entry(request) or ErasureQuery()
        if not picked:
            return self, replace(query, facts=query.facts | self.facts)
        if not set(picked) <= set(range(1, len(self.items) + 1)):
            raise MemoryRefused(
                _("the numbers of what was shown are 1 to {last}", last=len(self.items))
            )
        query = query.only(self.items, picked)
        rest = self.messages - sum(item.kind == "message" for item in self.items)
        more = any(self.items[one - 1].kind == "messages" for one in picked)
        messages = len(query.entries) + (rest if more else 0)
        return replace(self, facts=query.facts, messages=messages), query


_PENDING, _RESULT = TypeAdapter(PendingErasure), TypeAdapter(ErasureResult)


def request_event(found: Closure, request: int, askers: Collection[str]) -> TapeEntry:
    """Build the event that records what the confirmation listed."""
    facts = frozenset(fact.id for fact in found.home_facts())
    items = tuple(list_items(found))
    shown = PendingErasure(request, frozenset(askers), facts, len(found.counted()), items)
    return event(FORGET_REQUESTED_EVENT, _PENDING.dump_python(shown, mode="json"))


def query_in_entry(request: TapeEntry) -> ErasureQuery | None:
    """Return the query in a command or tool call; None if the entry does not ask to forget."""
    if request.name == COMMAND:
        form, _sep, rest = str(request.data.get("arguments", "")).partition(" ")
        return parse_query(rest) if form.lower() == FORGET_SUBCOMMAND else None
    for call in request.calls:
        if str(call.get("name")).replace(".", "_") == FORGET_TOOL_NAME:
            try:
                told = json.loads(str(call.get("arguments")))
            except ValueError:
                return None
            return parse_query(str(told.get("what", ""))) if isinstance(told, dict) else None
    return None


async def find_pending_erasure(
    tape: TapeService, request: int, now: datetime
) -> tuple[TapeEntry, PendingErasure]:
    """Return the request with this id, and what its confirmation listed.

    Raises:
        RequestGone: There is no such request, it is more than a day old, or the same person has
            made another one since.
    """
    entries = await tape.read_entries(request, request) if request else []
    newer: set[str] = set()
    looked = 0
    async with aclosing(tape.read_back()) as back:
        async for entry in back:
            looked += 1
            shown = _parsed(entry)
            if shown is not None and shown.request == request and entries:
                moment = recorded_at(entry)
                if moment is not None and now - moment > _VALID:
                    raise RequestGone(_("that request is more than a day old; make a new one"))
                if not shown.askers.isdisjoint(newer):
                    raise RequestGone(_("there is a newer request; only the newest one counts"))
                return entries[0], shown
            newer |= shown.askers if shown is not None else set()
            if looked == _LOOKED_AT or entry.id <= request:
                break
    raise RequestGone(_("there is no such request to forget something; make a new one"))


async def find_erasure_result(memory: LongTermMemory, request: int) -> ErasureResult | None:
    """Return the result of a request; None if it was not carried out, or too many entries ago."""
    looked = 0
    try:
        async with aclosing(memory.home.tape.read_back()) as entries:
            async for entry in entries:
                looked += 1
                asked = entry.data.get("request") if entry.name == FORGOTTEN_EVENT else None
                if asked == [memory.tape.name, request]:
                    return _RESULT.validate_python(entry.data.get("result"))
                if looked == _LOOKED_AT:
                    break
    except (TapeNotFound, ValidationError):
        # A scope without entries has no tape.
        return None
    return None


def result_event(memory: LongTermMemory, request: int, erased: ErasureResult) -> TapeEntry:
    """Build the event that records that a request was carried out."""
    result = _RESULT.dump_python(erased, mode="json")
    return event(FORGOTTEN_EVENT, {"request": [memory.tape.name, request], "result": result})


def _parsed(entry: TapeEntry) -> PendingErasure | None:
    if entry.kind != "event" or entry.name != FORGET_REQUESTED_EVENT:
        return None
    try:
        return _PENDING.validate_python(entry.data)
    except ValidationError:
        return None
