"""Replace an entry that holds erased words. Pure.

Rule 1: a message, answer, call, result, step or command with erased words goes as a whole.
Rule 2: of other events and of anchors the texts with these words go; ids, links and numbers stay, so
    every fold works as before.
Rule 3: a person's own message is no repetition: of one that stays, only what it quotes may go.
Rule 4: the memory zone and its notes lose single lines, as each line is an entry of its own.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from bot.memory.erasure.persons_entries import is_persons_entry
from bot.memory.erasure.record_eraser import lines_without, without_words
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.conversation_entries import (
    CONVERSATION_KINDS,
    LOOP_STEP,
    PROBLEM_ANCHOR_PREFIX,
    TURN_END,
    TURN_START,
    switched_problem,
)
from bot.memory.records.event_names import COMMAND, FILE_EVENTS, HISTORY_EVENT, REPLY
from bot.memory.records.schedules import SCHEDULE_EVENTS
from bot.memory.records.tombstones import ERASED_TEXT, kept_meta, tombstone
from bot.memory.session.state.session_fold import (
    CONSOLIDATION_FAILED_EVENT,
    SCOPE_EVENT,
)
from bot.memory.session.state.turn_fold import DELIVERY, TURN_RESUME
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
    REFERENCE_EVENT,
    SHARED_EVENT,
)
from bot.memory.session.state.zone_versions import MEMORY_UNDONE_EVENT
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.store import HEADER_EVENT

_ZONE = frozenset({LONG_TERM_EVENT, DAILY_EVENT, SHARED_EVENT, REFERENCE_EVENT})
_WHOLE = frozenset({REPLY, COMMAND, LOOP_STEP, "task.run"})
_KNOWN = (
    frozenset({TURN_START, TURN_END, TURN_RESUME, DELIVERY, HISTORY_EVENT, MEMORY_UNDONE_EVENT})
    | {SCOPE_EVENT, CONSOLIDATION_FAILED_EVENT, HEADER_EVENT}
    | _WHOLE
    | _ZONE
    | SCHEDULE_EVENTS
)
"""Events whose ids and links have known keys; in all other events every text may go."""

_LINKS = frozenset(
    {"turn", "inbound", "joined", "reply_to", "builder", "bounds", "prefix", "status", "model"}
    | {"platform_ids", "replaces", "session", "home", "previous", "parent", "date"}
    | {"schedule", "kind", "rule", "zone", "next", "instant", "author", "created"}
    | {"updated_at", "range", "from", "to", "usage", "spent", "name", "files", "via"}
)
_PROGRAMS = frozenset({"role", "calls", "call_id", "name", "status", "origin"})
"""Keys in the payload of messages, calls and results with the program's own words."""

_ANCHOR_LINKS = frozenset({"owner", "parent", "reason", "source"})
_OWN_ANCHORS = ("session/", "auto_handoff/", "memory/")


@dataclass(frozen=True, slots=True)
class EntryEraser:
    """Replace the entries of one tape that hold erased words."""

    matcher: TextMatcher
    facts: Collection[int] = ()

    def clear(self, entry: TapeEntry) -> TapeEntry:
        """Return an entry without erased words; the entry itself if nothing changes."""
        if entry.kind == "event" and entry.name in FILE_EVENTS:
            # A file goes as a whole, or stays as it is.
            return entry
        if entry.kind == "event" and entry.name in _ZONE:
            return self._zone(entry)
        if not self.matcher.holds(entry_texts(entry)):
            return entry
        said = entry.kind == "message" and is_persons_entry(entry)
        if said:
            return replace(entry, meta=self._meta(entry, {"attachments"}))
        if entry.kind in CONVERSATION_KINDS or entry.kind == "system" or entry.name in _WHOLE:
            return tombstone(entry)
        payload = {
            **entry.payload,
            **(self._anchor if entry.kind == "anchor" else self._event)(entry),
        }
        return replace(entry, payload=payload, meta=self._meta(entry, ()))

    def _meta(self, entry: TapeEntry, fixed: Collection[str]) -> dict[str, Any]:
        fixed = {*kept_meta(entry.meta), *fixed}
        meta = {key: value for key, value in entry.meta.items() if key in fixed}
        for key in entry.meta.keys() - fixed:
            value = entry.meta[key]
            if key == "tags" and isinstance(value, list):
                meta[key] = [one for one in value if not self.matcher.touches(str(one))]
            elif key != "layer" or not self.matcher.touches(str(value)):
                meta[key] = without_words(value, self.matcher, ())
        return meta

    def _zone(self, entry: TapeEntry) -> TapeEntry:
        data, content = {**entry.data}, entry.data.get("content")
        if not isinstance(content, str):
            return entry
        numbers, lines = data.get("facts"), content.splitlines()
        if isinstance(numbers, list) and len(numbers) == len(lines):
            left = [
                (line, number)
                for line, number in zip(lines, numbers, strict=True)
                if number[0] not in self.facts and not self.matcher.holds([line])
            ]
            data["facts"] = [number for _, number in left]
            data["content"] = "\n".join(line for line, _ in left)
        else:
            left_lines = lines_without(content, self.matcher)
            data["content"] = left_lines or (ERASED_TEXT if entry.name == DAILY_EVENT else "")
        if data == entry.data:
            return entry
        return replace(entry, payload={**entry.payload, "data": data})

    def _anchor(self, entry: TapeEntry) -> dict[str, Any]:
        name, state, problem = entry.name or "", entry.data, switched_problem(entry)
        if problem is not None and name == f"{PROBLEM_ANCHOR_PREFIX}{problem}":
            fresh = without_words(state, self.matcher, _ANCHOR_LINKS | {"problem", "name"})
            if problem != GENERAL_PROBLEM and self.matcher.touches(str(state.get("name"))):
                fresh["name"] = f"{ERASED_TEXT} {problem}"
            return {"state": fresh}
        own = name.startswith(_OWN_ANCHORS)
        if not own and self.matcher.touches(name):
            before, slash, _ = name.rpartition("/")
            kept = before and not self.matcher.touches(before)
            name = (
                f"{before if kept else ERASED_TEXT}{slash}{ERASED_TEXT}" if slash else ERASED_TEXT
            )
        fixed = _ANCHOR_LINKS if own else frozenset[str]()
        return {"name": name, "state": self._cleared(state, fixed, keys=not own)}

    def _event(self, entry: TapeEntry) -> dict[str, Any]:
        data = entry.data
        if entry.name == HEADER_EVENT:
            # Of a header, only the title may change.
            return {"data": self._cleared(data, data.keys() - {"title"})}
        known = entry.name in _KNOWN
        fixed = _LINKS if known else frozenset[str]()
        return {"data": self._cleared(data, fixed, keys=not known)}

    def _cleared(
        self, data: dict[str, Any], fixed: Collection[str], *, keys: bool = False
    ) -> dict[str, Any]:
        """Clear an entry's data; ``keys`` says whether inner keys may be a person's words."""
        return {
            key: one if key in fixed else without_words(one, self.matcher, (), keys=keys)
            for key, one in data.items()
        }


def entry_texts(entry: TapeEntry) -> list[str]:
    """Return the texts of an entry that an erasure may clear, without the program's own words."""
    found: list[str] = []
    if entry.kind in ("anchor", "event"):
        known = entry.kind == "event" and entry.name in _KNOWN
        links = _LINKS if known else frozenset[str]()
        links = links - {"name", "files"} if entry.name in (COMMAND, REPLY) else links
        found += [entry.name or ""] if entry.kind == "anchor" else []
        for key, value in entry.data.items():
            if key not in links:
                _gather(value, found, keys=not known)
    else:
        for key, value in entry.payload.items():
            if key not in _PROGRAMS:
                _gather(value, found)
        for call in entry.calls:
            _gather(_arguments(call), found)
            _gather(call.get("extra"), found)
    fixed = kept_meta(entry.meta)
    _gather([value for key, value in entry.meta.items() if key not in fixed], found)
    return found


def _arguments(call: dict[str, Any]) -> Any:
    try:
        return json.loads(str(call.get("arguments")))
    except (ValueError, RecursionError):
        return str(call.get("arguments"))


def _gather(value: Any, found: list[str], *, keys: bool = False) -> None:
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, list):
        for one in value:
            _gather(one, found, keys=keys)
    elif isinstance(value, dict):
        found += map(str, value) if keys else ()
        for one in value.values():
            _gather(one, found, keys=keys)
