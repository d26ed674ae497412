"""Read and write the tape entries of an erasure: the request, the confirmation shown, the result.

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
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bot.core.errors import MemoryRefused, TapeNotFound
from bot.core.i18n import _
from bot.memory.erasure.closure import FORGET_REQUESTED_EVENT, FORGOTTEN_EVENT
from bot.memory.erasure.erasure_candidates import ErasurePreview
from bot.memory.erasure.erasure_items import (
    ErasureItem,
    count_messages,
    list_items,
    picked_content,
)
from bot.memory.erasure.erasure_messages import ErasureResult
from bot.memory.erasure.erasure_query import ErasureQuery, parse_query
from bot.memory.records.event_names import COMMAND
from bot.memory.records.transcript import recorded_at
from bot.memory.session.long_term_memory import LongTermMemory
from bot.tape.entries import TapeEntry, event
from bot.tape.service import TapeService

FORGET_TOOL_NAME = "memory_forget"
FORGET_SUBCOMMAND = "forget"
_VALID = timedelta(days=1)
_LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """A request whose confirmation was shown to the person.

    Attributes:
        request: The entry that made the request.
        askers: Platform ids of the people who asked.
        facts: Numbers of the listed facts.
        messages: Number of messages that would be erased.
        items: The listed items.
    """

    request: TapeEntry
    askers: frozenset[str]
    facts: frozenset[int]
    messages: int
    items: tuple[ErasureItem, ...] = ()

    @property
    def query(self) -> ErasureQuery:
        """The query of the request; if its text is already erased, of the fact numbers alone."""
        query = query_in_entry(self.request)
        return replace(query if query is not None else ErasureQuery(), confirmed_facts=self.facts)

    def narrowed(self, picked: Collection[int]) -> tuple[PendingErasure, ErasureQuery]:
        """Return the request and its query for the picked items alone.

        Raises:
            MemoryRefused: No number is picked, or one belongs to no item.
        """
        if not picked or not set(picked) <= set(range(1, len(self.items) + 1)):
            raise MemoryRefused(
                _("the numbers of what was shown are 1 to {last}", last=len(self.items))
                if self.items
                else _("the numbers of what was shown are not known, so ask for it again")
            )
        content = picked_content(self.items, picked)
        messages = count_messages(self.items, self.messages, picked)
        query = replace(
            self.query,
            facts=frozenset(),
            confirmed_facts=content.facts,
            entries=content.entries,
            picked=content,
        )
        return replace(self, facts=content.facts, messages=messages), query


def request_event(preview: ErasurePreview, request: int, askers: Collection[str]) -> TapeEntry:
    """Build the event that records what the confirmation listed."""
    data = {
        "request": request,
        "askers": sorted(askers),
        "facts": [fact.id for fact in preview.facts],
        "messages": preview.message_count,
        "pieces": [item.as_json() for item in list_items(preview)],
    }
    return event(FORGET_REQUESTED_EVENT, data)


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


async def find_pending_erasure(tape: TapeService, request: int, now: datetime) -> PendingErasure:
    """Return the request with this id, and what its confirmation listed.

    Raises:
        MemoryRefused: There is no such request, it is more than a day old, or the same person has
            made another one since.
    """
    entries = await tape.read_entries(request, request) if request else []
    entry, newer = await _shown(tape, request)
    if not entries or entry is None:
        raise MemoryRefused(_("there is no such request to forget something; make a new one"))
    moment = recorded_at(entry)
    if moment is not None and now - moment > _VALID:
        raise MemoryRefused(_("that request is more than a day old; make a new one"))
    pending_erasure = _asked(entries[0], entry)
    if not pending_erasure.askers.isdisjoint(newer):
        raise MemoryRefused(_("there is a newer request; only the newest one counts"))
    return pending_erasure


async def find_erasure_result(memory: LongTermMemory, request: int) -> ErasureResult | None:
    """Return the result of a request; None if it was not carried out, or too many entries ago."""
    looked = 0
    try:
        async with aclosing(memory.home.tape.read_back()) as entries:
            async for entry in entries:
                looked += 1
                asked = entry.data.get("request") if entry.name == FORGOTTEN_EVENT else None
                if asked == [memory.tape.name, request]:
                    return _recorded(entry.data)
                if looked == _LOOKED_AT:
                    break
    except TapeNotFound:
        # A scope without entries has no tape.
        return None
    return None


def result_event(memory: LongTermMemory, request: int, erased: ErasureResult) -> TapeEntry:
    """Build the event that records that a request was carried out."""
    data = {
        "facts": list(erased.facts),
        "messages": erased.messages,
        "held": list(erased.affected_records),
        "entries": erased.entry_count,
        **({"files": erased.files} if erased.files else {}),
        "request": [memory.tape.name, request],
    }
    return event(FORGOTTEN_EVENT, data)


async def _shown(tape: TapeService, request: int) -> tuple[TapeEntry | None, set[str]]:
    """Return a request's newest confirmation, and the people who were shown another one since."""
    newer: set[str] = set()
    looked = 0
    async with aclosing(tape.read_back()) as entries:
        async for entry in entries:
            looked += 1
            if entry.name == FORGET_REQUESTED_EVENT and entry.kind == "event":
                if entry.data.get("request") == request:
                    return entry, newer
                newer |= _askers(entry)
            if looked == _LOOKED_AT or entry.id <= request:
                break
    return None, newer


def _asked(request: TapeEntry, entry: TapeEntry) -> PendingErasure:
    data = entry.data
    facts = frozenset(_numbers(data.get("facts")))
    listed = data.get("pieces")
    pieces = map(ErasureItem.from_json, listed if isinstance(listed, list) else ())
    return PendingErasure(
        request,
        frozenset(_askers(entry)),
        facts,
        _number(data.get("messages")),
        tuple(item for item in pieces if item is not None),
    )


def _askers(entry: TapeEntry) -> set[str]:
    listed = entry.data.get("askers")
    return {one for one in listed if isinstance(one, str)} if isinstance(listed, list) else set()


def _recorded(data: dict[str, Any]) -> ErasureResult:
    messages, places = _number(data.get("messages")), _number(data.get("entries"))
    values, beliefs, notes = (*_numbers(data.get("held")), 0, 0, 0)[:3]
    return ErasureResult(
        tuple(_numbers(data.get("facts"))),
        messages,
        places,
        affected_records=(values, beliefs, notes),
        files=_number(data.get("files")),
    )


def _numbers(value: object) -> list[int]:
    return [one for one in value if type(one) is int] if isinstance(value, list) else []


def _number(value: object) -> int:
    return value if type(value) is int else 0
