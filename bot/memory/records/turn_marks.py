"""Read and write where turns start and end: in events, or in the ``meta`` of messages. Pure.

Rule 1: a turn that one message alone starts has no ``turn.start``: the message has ``start`` in its ``meta``.
Rule 2: an answer that one model call gave, with nothing to add, has no ``turn.end``: the answer has ``end``.
Rule 3: ``end`` leaves out what follows from the answer: that the turn is answered, by one step; the entry that the
    call saw, if it is the one before; a cost that is not known; cached tokens that the provider does not report.
Rule 4: both shapes say the same: ``unfold`` returns the events that a message stands for, with the message's id.
Rule 5: where there is no more to tell, ``start`` is a list of the turn and its bounds, and ``end`` of ``_PLAIN_END``;
    usage is a list of ``_USAGE``. Else, and in older entries, they are objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.memory.records.conversation_entries import TURN_END, TURN_START
from bot.tape.entries import TapeEntry

START_META = "start"
"""Key of the turn that a message starts, in the message's ``meta``."""
END_META = "end"
"""Key of the turn that an answer ends, in the answer's ``meta``."""

_IN_START = frozenset({"turn", "inbound", "bounds", "prefix", "builder", "preset"})
_IN_END = frozenset({"inbound", "usage", "ms", "model", "at"})
_PLAIN_END = ("inbound", "usage", "ms", "model")
_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost")
_FOLLOWS = {"status": "ok", "answered": True, "steps": 1}


def unfold(entry: TapeEntry) -> tuple[TapeEntry, ...]:
    """Return the entry, and behind it the start or end of a turn that its ``meta`` holds."""
    if entry.kind != "message":
        return (entry,)
    mark = _start_in(entry) or _end_in(entry)
    return (entry,) if mark is None else (entry, mark)


def turn_start(entry: TapeEntry) -> TapeEntry | None:
    """Return the ``turn.start`` that an entry is or holds; None if there is none."""
    if entry.kind == "event" and entry.name == TURN_START:
        return entry
    return _start_in(entry) if entry.kind == "message" else None


def turn_end(entry: TapeEntry) -> TapeEntry | None:
    """Return the ``turn.end`` that an entry is or holds; None if there is none."""
    if entry.kind == "event" and entry.name == TURN_END:
        return entry
    return _end_in(entry) if entry.kind == "message" else None


def fold_start(entries: Sequence[TapeEntry], start: TapeEntry) -> list[TapeEntry]:
    """Return entries and the start of the turn behind them: in one entry if that says as much."""
    data = start.data
    if len(entries) != 1 or not data.keys() <= _IN_START:
        return [*entries, start]
    [said] = entries
    if said.kind != "message" or data.get("inbound") != [said.meta.get("inbound")]:
        return [said, start]
    # The prompt is the newest on the tape, which has its hash.
    told = {key: value for key, value in data.items() if key not in ("inbound", "prefix")}
    alone = told.keys() == {"turn", "bounds"}
    return [said.with_meta(**{START_META: [told["turn"], *told["bounds"]] if alone else told})]


def fold_end(entries: Sequence[TapeEntry], end: TapeEntry, number: int) -> list[TapeEntry]:
    """Return entries and the end of the turn behind them, in one entry if that says as much."""
    if len(entries) != 1 or entries[0].kind != "message":
        return [*entries, end]
    [said] = entries
    told = {key: value for key, value in end.data.items() if key in _IN_END}
    usage = {**end.data["usage"]}
    if not end.data.get("cache_told", True):
        usage.pop("cached_tokens", None)
    amounts = [usage.get(name) for name in _USAGE]
    while amounts and amounts[-1] is None:
        amounts.pop()
    told["usage"] = amounts
    if told.get("at") == number - 1:
        del told["at"]
    plain = told.keys() == set(_PLAIN_END)
    mark = [told[name] for name in _PLAIN_END] if plain else told
    folded = said.with_meta(**{END_META: mark})
    same = _end_in(replace(folded, id=number))
    return [folded] if same is not None and same.data == end.data else [said, end]


def _start_in(message: TapeEntry) -> TapeEntry | None:
    told = message.meta.get(START_META)
    if isinstance(told, list) and told:
        told = {"turn": told[0], "bounds": told[1:]}
    if not isinstance(told, dict) or message.payload.get("role") == "assistant":
        return None
    return _mark(message, TURN_START, {**told, "inbound": [message.meta.get("inbound")]})


def _end_in(answer: TapeEntry) -> TapeEntry | None:
    told = answer.meta.get(END_META)
    if isinstance(told, list):
        told = dict(zip(_PLAIN_END, told, strict=False))
    if not isinstance(told, dict) or answer.payload.get("role") != "assistant":
        return None
    usage, inbound = _usage(told.get("usage")), told.get("inbound")
    if not isinstance(usage, dict) or not isinstance(inbound, list) or not inbound:
        return None
    data: dict[str, Any] = {"at": answer.id - 1, **told, **_FOLLOWS}
    data |= {"turn": answer.meta.get("turn"), "reply_to": inbound[-1]}
    data["usage"] = {"cached_tokens": 0, "cost": None, **usage, "calls": 1}
    data["prompt_tokens"] = usage.get("prompt_tokens")
    if "cached_tokens" not in usage:
        data["cache_told"] = False
    return _mark(answer, TURN_END, data)


def _usage(told: object) -> object:
    """Return the usage that an end tells, as an object."""
    if not isinstance(told, list):
        return told
    return {name: amount for name, amount in zip(_USAGE, told, strict=False) if amount is not None}


def _mark(message: TapeEntry, name: str, data: dict[str, Any]) -> TapeEntry:
    moment = {"ts": message.meta["ts"]} if "ts" in message.meta else {}
    return TapeEntry(message.id, "event", {"name": name, "data": data}, moment)
