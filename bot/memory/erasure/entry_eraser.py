"""Replace an entry that holds erased words by one without them. Pure.

Rule 1: a message, answer, call, result, step or command with erased words goes as a whole; of other
    events and of anchors their texts with these words go. Ids, links and numbers stay for the folds.
Rule 2: a person's own message is no repetition: of one that stays, only what it quotes may go.
Rule 3: the memory zone and its notes lose single lines, as each line is an entry of its own.
Rule 4: a record keeps its number or id, its dates, versions and causes. Of a fact that is erased no
    text is left, and it ends. One that stays loses the quotes with erased words. A belief without
    remaining evidence, or with erased words, goes; of shared values and notes what has them.
Rule 5: each record is cleared by its own content alone. Snapshots go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bot.memory.erasure.persons_entries import EntryLocation, is_persons_entry
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.gate.reference_values import texts_in_value
from bot.memory.records.compartment_records import WORKING_FIELDS
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.conversation_entries import CONVERSATION_KINDS, LOOP_STEP
from bot.memory.records.episodes import parse_episode_id
from bot.memory.records.event_names import COMMAND, FILE_EVENTS, REPLY
from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import CHANGE_EVENTS
from bot.memory.records.tombstones import ERASED_META_KEY, ERASED_TEXT, kept_meta, tombstone
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
    REFERENCE_EVENT,
    SHARED_EVENT,
)
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.store import HEADER_EVENT

_ZONE = frozenset({LONG_TERM_EVENT, DAILY_EVENT, SHARED_EVENT, REFERENCE_EVENT})
_WHOLE = frozenset({REPLY, COMMAND, LOOP_STEP, "task.run"})
_OWN_EVENTS = (
    *("turn.", "loop.", "task.", "reply", "command", "delivery", "memory.", "session."),
    *("consolidation.", "schedule.", "timezone.", "quiet."),
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

_ANCHOR_LINKS = frozenset({"owner", "parent", "reason", "source", "problem"})
_OWN_ANCHORS = ("session/", "auto_handoff/", "memory/", "problem/")

_CODE = "code"
"""Key in reasons, whose value is no text."""

_RECORD_LINKS = frozenset(
    {"key", "expired", "decayed", "uses", "active", "wanted", "by", "signals"}
    | {"requested", "restores"}
)
_STRUCTURE = frozenset({"text", "if", "then", "a", "d", "why", "confidence", "fact"})
"""Keys of a belief's content and of a working set's items that are no text."""

RecordKey = tuple[str, Literal["value", "belief", "notes"], str]
"""Tape, kind of record, and the record's key or id on that tape."""

RECORDS: dict[str, tuple[Literal["value", "belief", "notes"], str, tuple[str, ...]]] = {
    "references": ("value", "key", ("key", "value")),
    "patterns": ("belief", "id", ("content",)),
    "problems": ("notes", "id", ("name", "summary")),
    "working": ("notes", "problem", WORKING_FIELDS),
}
"""Of each field of a change that has records: their kind, the field with their id, those with text."""


@dataclass(frozen=True, slots=True)
class EntryEraser:
    """Replaces the entries of one tape that hold what is erased.

    Attributes:
        matcher: The words.
        facts: Numbers of the tape's facts that are erased.
        entries: The entries that are erased as a whole, on all tapes.
        beliefs: Ids of the tape's beliefs that are erased.
        records: What the memory bus's records lose, if these are other words.
        quotes: Where a fact that stays has lost a quote: fact, tape and entry. It grows.
    """

    matcher: TextMatcher
    facts: Collection[int] = ()
    entries: Collection[EntryLocation] = ()
    beliefs: Collection[str] = ()
    records: TextMatcher | None = None
    quotes: set[tuple[int, str, int]] = field(default_factory=set)

    def clear(self, entry: TapeEntry) -> TapeEntry:
        """Return an entry without what is erased; the entry itself if nothing changes."""
        name = entry.name if entry.kind == "event" else None
        if name in FILE_EVENTS:
            # A file goes as a whole, or stays as it is.
            return entry
        if name in CHANGE_EVENTS:
            return self._memory_change(entry)
        if name in _ZONE:
            return self._zone(entry)
        if not self.matcher.holds(entry_texts(entry)):
            return entry
        if entry.kind == "message" and is_persons_entry(entry):
            meta, files = _map_texts(entry, self._mark).meta, entry.meta.get("attachments")
            return replace(entry, meta=meta | ({"attachments": files} if files else {}))
        if entry.kind in (*CONVERSATION_KINDS, "system") or name in _WHOLE:
            return tombstone(entry)
        return _map_texts(entry, self._mark)

    def _mark(self, text: str) -> str:
        return ERASED_TEXT if text and self.matcher.touches(text) else text

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
            empty = ERASED_TEXT if entry.name == DAILY_EVENT else ""
            data["content"] = self._lines(content) or empty
        return _with_data(entry, data)

    def _lines(self, text: str) -> str:
        """Return a text without the lines that have erased words; empty if only several together do."""
        left = "\n".join(line for line in text.splitlines() if not self.matcher.holds([line]))
        if self.matcher.holds([left]):
            return ""
        return left if left != "\n".join(text.splitlines()) else text

    # Records: facts, and those of the memory bus.

    def _memory_change(self, entry: TapeEntry) -> TapeEntry:
        data = entry.data
        if entry.name != BUS_EVENT:
            ops = data.get("ops")
            fresh = [self._operation(op) for op in ops] if isinstance(ops, list) else ops
            return _with_data(entry, {**data, **({"ops": fresh} if "ops" in data else {})})
        bus = self._of_bus()
        words = {
            key: bus.without_words(value)
            for key, value in data.items()
            if key not in _RECORD_LINKS and key not in RECORDS
        }
        fresh = _with_data(entry, {**data, **words, **bus.cleared(data)})
        return fresh.with_meta(**{ERASED_META_KEY: True}) if _says_nothing(fresh.data) else fresh

    def _operation(self, operation: Any) -> Any:
        if not isinstance(operation, dict):
            return operation
        fresh, gone = {**operation}, self._is_asked_for(operation.get("fact"))
        for name, value in operation.items():
            if name in ("fact", "closed") and isinstance(value, dict):
                fresh[name] = self._fact(value)
            elif name in ("text", "reason", "signals"):
                fresh[name] = self.without_words(value, wholly=gone)
        return fresh | ({"text": ""} if gone else {})

    def _fact(self, record: dict[str, Any]) -> dict[str, Any]:
        # A malformed fact is not believed, but has words.
        gone, fresh = self._is_asked_for(record), {**record}
        for name in ("text", "subject"):
            if gone or self.holds(record.get(name)):
                fresh[name] = ""
        if gone and record.get("status") in ("active", "pending"):
            fresh["status"] = "retired"
        if isinstance(evidence := record.get("evidence"), list):
            number = -1 if gone else _number(record, "id")
            fresh["evidence"] = [self._evidence(one, number) for one in evidence]
        return fresh

    def _is_asked_for(self, record: Any) -> bool:
        return _number(record, "id") in self.facts

    def _evidence(self, record: Any, fact: int) -> Any:
        """Clear a piece of evidence of a fact with this number; of a fact that goes (-1), wholly."""
        if not isinstance(record, dict):
            return record
        tape, gone = str(record.get("tape")), fact == -1
        place = (fact, tape, _number(record, "entry"))
        if not gone and self.holds(record.get("quote")):
            self.quotes.add(place)
        lost = {"quote"} if gone or place in self.quotes else set()
        context = (tape, _number(record, "context_entry"))
        if gone or context in self.entries or self.holds(record.get("context")):
            lost.add("context")
        return {key: "" if key in lost else one for key, one in record.items()}

    def loses(self, fact: Fact) -> bool:
        """Return whether a fact's text has erased words, or no quote without them is left of it."""
        quotes = [one.quote for one in fact.evidence if one.quote]
        unquoted = bool(quotes) and all(self.matcher.holds([one]) for one in quotes)
        return self.matcher.holds([fact.gloss, fact.subject]) or (fact.quoted and unquoted)

    def _of_bus(self) -> EntryEraser:
        return self if self.records is None else replace(self, matcher=self.records, records=None)

    def cleared(self, data: dict[str, Any]) -> dict[str, list[Any]]:
        """Return the records of a change of the compartments without erased words."""
        clears = (self._value, self._belief, self._problem, self._notes)
        return {
            place: [clear(one) if isinstance(one, dict) else one for one in data[place]]
            for place, clear in zip(RECORDS, clears, strict=True)
            if isinstance(data.get(place), list)
        }

    def affected(
        self, tape: str, data: dict[str, Any]
    ) -> Iterator[tuple[RecordKey, dict[str, Any]]]:
        """Yield each record of a tape's change that loses text, with its content."""
        for place, fresh in self._of_bus().cleared(data).items():
            kind, name, words = RECORDS[place]
            for old, new in zip(data[place], fresh, strict=True):
                if isinstance(old, dict) and any(old.get(one) != new.get(one) for one in words):
                    yield (tape, kind, str(old.get(name))), old

    def _problem(self, record: dict[str, Any]) -> dict[str, Any]:
        fresh = {**record}
        if self.holds(record.get("name")) and record.get("id") != GENERAL_PROBLEM:
            fresh["name"] = f"{ERASED_TEXT} {record.get('id')}"
        if isinstance(summary := record.get("summary"), str):
            fresh["summary"] = self._lines(summary)
        return fresh

    def _notes(self, record: dict[str, Any]) -> dict[str, Any]:
        return {k: self._left(one) if k in WORKING_FIELDS else one for k, one in record.items()}

    def _left(self, value: Any) -> Any:
        """Return a value without the items, fields and texts that have erased words."""
        if isinstance(value, list):
            return [item for item in value if not self.holds(item)]
        if isinstance(value, dict):
            return {key: self._left(one) for key, one in value.items() if not self.holds(key)}
        return "" if self.holds(value) else value

    def _value(self, record: dict[str, Any]) -> dict[str, Any]:
        """Clear a version of a shared value, which loses single items and fields if that is enough."""
        key, value, source = (record.get(name) for name in ("key", "value", "source"))
        fresh, left = {"source": source}, self._left(value)
        if self.holds(key):
            # Equal for all versions, even if a kill interrupted the erasure between two of them.
            fresh["key"], left = f"{ERASED_TEXT} {record.get('created')}", None
        elif left in ("", [], {}) or self.matcher.holds([str(key), *texts_in_value(left)]):
            left = None
        episode = parse_episode_id(source) if isinstance(source, str) else None
        if episode is None:
            fresh["source"] = self.without_words(source)
        elif episode in self.entries and left is not None:
            fresh["stale"] = True
        gone = {"erased": True} if left is None and value is not None else {}
        return _changed(record, **fresh, value=left, **gone)

    def _belief(self, record: dict[str, Any]) -> dict[str, Any]:
        """Clear a belief: it loses erased evidence, and goes if that was all, or with its words."""
        evidence = record.get("evidence")
        rests_on = evidence if isinstance(evidence, list) else []
        left = [one for one in rests_on if not self._is_gone(one)]
        baseless = bool(rests_on) and not left
        if baseless or record.get("id") in self.beliefs or self.holds(record.get("content")):
            gone = {"content": {"text": ""}, "status": "retired", "reason": ""}
            return _changed(record, evidence=left, **gone)
        reason = self.without_words(record.get("reason"))
        return _changed(record, evidence=left if rests_on else evidence, reason=reason)

    def _is_gone(self, evidence: Any) -> bool:
        told = str(evidence)
        number = int(told) if told.isascii() and told.isdecimal() else 0
        return (
            number in self.facts or told in self.beliefs or parse_episode_id(told) in self.entries
        )

    def with_baseless(self, beliefs: Collection[dict[str, Any]]) -> EntryEraser:
        """Return the eraser that knows which of a tape's beliefs go: by their text, or as no evidence remains."""
        gone: frozenset[str] = frozenset()
        while True:
            bus = replace(self._of_bus(), beliefs=gone)
            cleared = bus.cleared({"patterns": beliefs}).get("patterns", ())
            found = {str(one["id"]) for one in cleared if not any(one["content"].values())}
            if found <= gone:
                return replace(self, beliefs=gone)
            gone |= found

    def holds(self, value: Any) -> bool:
        """Return whether a record's value has all the words, or repeats what is erased."""
        return value is not None and self.matcher.holds(_texts(value))

    def without_words(self, value: Any, *, wholly: bool = False) -> Any:
        """Return a value with a mark in place of each text with erased words, or of each text."""
        if wholly:
            return _mapped(value, lambda text: text and ERASED_TEXT, _CODE)
        holds = not self.matcher.is_empty and self.matcher.holds(texts_in_value(value))
        return _mapped(value, self._mark, _CODE) if holds else value


def entry_texts(entry: TapeEntry) -> list[str]:
    """Return the texts of an entry that an erasure may clear, without the program's own words."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    _map_texts(entry, note)
    return found


def _map_texts(entry: TapeEntry, change: Callable[[str], str]) -> TapeEntry:
    """Return an entry with each text changed that an erasure may clear."""
    payload, kept = dict(entry.payload), kept_meta(entry.meta)
    if entry.kind == "anchor":
        own = str(entry.name).startswith(_OWN_ANCHORS)
        payload["state"] = _fields(entry.data, change, _ANCHOR_LINKS if own else (), keys=not own)
        payload["name"] = entry.name if own else change(entry.name or "")
    elif entry.name == HEADER_EVENT:
        # Of a header, only the title may change.
        payload["data"] = _fields(entry.data, change, entry.data.keys() - {"title"})
    elif entry.kind == "event":
        known = str(entry.name).startswith(_OWN_EVENTS)
        links = _LINKS - {"name", "files"} if entry.name in (COMMAND, REPLY) else _LINKS
        payload["data"] = _fields(entry.data, change, links if known else (), keys=not known)
    else:
        payload = _fields(payload, change, _PROGRAMS)
        for call in entry.calls:
            # Such an entry goes as a whole.
            _mapped([_arguments(call), call.get("extra")], change)
    return replace(entry, payload=payload, meta=_fields(entry.meta, change, kept))


def _fields(
    data: dict[str, Any],
    change: Callable[[str], str],
    fixed: Collection[str],
    *,
    keys: bool = False,
) -> dict[str, Any]:
    """Return an object with the texts of its fields changed, but for some; and the names of inner fields."""
    return {
        key: one if key in fixed else _mapped(one, change, keys=keys) for key, one in data.items()
    }


def _mapped(
    value: Any, change: Callable[[str], str], fixed: str = "", *, keys: bool = False
) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(one, change, fixed, keys=keys) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        change(key) if keys else key: one
        if key == fixed
        else _mapped(one, change, fixed, keys=keys)
        for key, one in value.items()
    }


def _arguments(call: dict[str, Any]) -> Any:
    try:
        return json.loads(str(call.get("arguments")))
    except (ValueError, RecursionError):
        return str(call.get("arguments"))


def _with_data(entry: TapeEntry, data: dict[str, Any]) -> TapeEntry:
    """Return an event with other data; the entry itself if the data are the same."""
    if data == entry.data:
        return entry
    return replace(entry, payload={**entry.payload, "data": data})


def _says_nothing(data: dict[str, Any]) -> bool:
    """Return whether a change holds only shared values, all of them erased."""
    values = data.get("references")
    alone = not any(data.get(name) for name in RECORDS if name != "references")
    found = values if isinstance(values, list) and alone else []
    return bool(found) and all(isinstance(one, dict) and one.get("erased") for one in found)


def _changed(record: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a record with other values in some fields; without them those that it has not anyway."""
    return {**record, **{key: one for key, one in fields.items() if one != record.get(key)}}


def _number(record: Any, name: str) -> int:
    number = record.get(name) if isinstance(record, dict) else 0
    return number if type(number) is int else 0


def _texts(item: Any) -> Iterator[str]:
    """Yield all texts of an item, without its structural keys."""
    if not isinstance(item, dict):
        yield from texts_in_value(item)
        return
    for key, value in item.items():
        if key not in _STRUCTURE:
            yield key
        if key not in ("confidence", "fact"):
            yield from texts_in_value(value)
