"""Clear facts and the memory bus's records of erased words. Pure.

Rule 1: a record keeps its number or id, its dates, versions and causes; of a fact that is erased no
    text is left, and it ends.
Rule 2: a fact that stays loses the quotes with erased words; a belief without remaining evidence, or
    with erased words, goes; of shared values and notes goes what holds erased words.
Rule 3: each record is cleared by its own content alone, so an entry agrees with the snapshots after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bot.core.i18n import ngettext
from bot.memory.erasure.erasure_query import EntryLocation
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.gate.reference_values import texts_in_value
from bot.memory.records.compartment_records import WORKING_FIELDS
from bot.memory.records.compartments import BUS_EVENT, Compartments
from bot.memory.records.episodes import parse_episode_id
from bot.memory.records.fact import Fact
from bot.memory.records.tombstones import ERASED_META_KEY, ERASED_TEXT
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM

_RECORDS = ("problems", "working", "references", "patterns")
_LINKS = frozenset(
    {"key", "expired", "decayed", "uses", "active", "wanted", "by", "signals"}
    | {"requested", "restores"}
)
_STRUCTURE = frozenset({"text", "if", "then", "a", "d", "why", "confidence", "fact"})
"""Keys of a belief's content and of a working set's items that are no text."""

AffectedRecordKey = tuple[str, Literal["value", "belief", "notes"], str]
"""Tape, kind of record, and the record's key or id on that tape."""

_KINDS: tuple[tuple[str, Literal["value", "belief", "notes"], str, tuple[str, ...]], ...] = (
    ("references", "value", "key", ("key", "value")),
    ("patterns", "belief", "id", ("content",)),
    ("problems", "notes", "id", ("name", "summary")),
    ("working", "notes", "problem", ()),
)
"""Field of the compartments, kind, field with the id, fields with text (empty: all fields)."""


@dataclass(frozen=True, slots=True)
class RecordEraser:
    """Clear the entries of one tape that change memory: ``memory.facts``, ``memory.paused``, ``memory.bus``."""

    matcher: TextMatcher
    facts: Collection[int] = ()
    entries: Collection[EntryLocation] = ()
    beliefs: Collection[str] = ()
    bus: bool = True
    quotes: set[tuple[int, str, int]] = field(default_factory=set)

    def clear(self, entry: TapeEntry) -> TapeEntry:
        """Return an entry without erased words; the entry itself if nothing changes."""
        data, meta = dict(entry.data), dict(entry.meta)
        if entry.name == BUS_EVENT and self.bus:
            data = self._change(data)
            if _says_nothing(data) and not _says_nothing(entry.data):
                meta[ERASED_META_KEY] = True
        if isinstance(ops := data.get("ops"), list):
            data["ops"] = [self._operation(op) if isinstance(op, dict) else op for op in ops]
        if data == entry.data and meta == entry.meta:
            return entry
        return replace(entry, payload={**entry.payload, "data": data}, meta=meta)

    def _operation(self, operation: dict[str, Any]) -> dict[str, Any]:
        fresh = {**operation}
        for place in ("fact", "closed"):
            if isinstance(record := operation.get(place), dict):
                fresh[place] = self._fact(record)
        fact = operation.get("fact")
        gone = isinstance(fact, dict) and self._is_asked_for(fact)
        for name in ("text", "reason", "signals"):
            if name in operation:
                fresh[name] = self._words(operation[name], wholly=gone)
        if gone:
            fresh["text"] = ""
        return fresh

    def _fact(self, record: dict[str, Any]) -> dict[str, Any]:
        # A malformed fact is not believed, but has words.
        gone, fresh = self._is_asked_for(record), {**record}
        for name in ("text", "subject"):
            if gone or self._holds(record.get(name)):
                fresh[name] = ""
        if gone and record.get("status") in ("active", "pending"):
            fresh["status"] = "retired"
        if isinstance(evidence := record.get("evidence"), list):
            number = _number(record, "id")
            fresh["evidence"] = [self._evidence(one, number, gone=gone) for one in evidence]
        return fresh

    def _is_asked_for(self, record: dict[str, Any]) -> bool:
        return _number(record, "id") in self.facts

    def _evidence(self, record: Any, fact: int, *, gone: bool) -> Any:
        if not isinstance(record, dict):
            return record
        tape, fresh = str(record.get("tape")), {**record}
        lost = gone or (tape, _number(record, "context_entry")) in self.entries
        place = (fact, tape, _number(record, "entry"))
        if not gone and (place in self.quotes or self._holds(record.get("quote"))):
            self.quotes.add(place)
            fresh["quote"] = ""
        fresh |= {"quote": ""} if gone else {}
        if "context" in record and (lost or self._holds(record["context"])):
            fresh["context"] = ""
        return fresh

    def loses(self, fact: Fact) -> bool:
        """Return whether a fact's text has erased words, or no quote without them is left of it."""
        if self.matcher.holds([fact.gloss, fact.subject]):
            return True
        quotes = [one.quote for one in fact.evidence if one.quote]
        return fact.quoted and bool(quotes) and all(self.matcher.holds([one]) for one in quotes)

    def _change(self, data: dict[str, Any]) -> dict[str, Any]:
        other = {key: value for key, value in data.items() if key not in (*_LINKS, *_RECORDS)}
        return {**data, **self.records(data), **self._words(other)}

    def records(self, data: dict[str, Any]) -> dict[str, list[Any]]:
        """Return the records of a change or a whole state of the compartments without erased words."""
        clears = (self._problem, self._working_set, self._value, self.belief)
        return {
            name: [clear(one) if isinstance(one, dict) else one for one in data[name]]
            for name, clear in zip(_RECORDS, clears, strict=True)
            if isinstance(data.get(name), list)
        }

    def _problem(self, record: dict[str, Any]) -> dict[str, Any]:
        fresh = {**record}
        if self._holds(record.get("name")) and record.get("id") != GENERAL_PROBLEM:
            fresh["name"] = f"{ERASED_TEXT} {record.get('id')}"
        if isinstance(summary := record.get("summary"), str):
            fresh["summary"] = lines_without(summary, self.matcher)
        return fresh

    def _working_set(self, record: dict[str, Any]) -> dict[str, Any]:
        fresh = {**record}
        for name in WORKING_FIELDS:
            held = record.get(name)
            if isinstance(held, list):
                fresh[name] = self._items(held)
            elif isinstance(held, dict):
                # Constraints by kind, or drafts by name.
                fresh[name] = {
                    key: self._items(one)
                    if isinstance(one, list)
                    else ("" if self._holds(one) else one)
                    for key, one in held.items()
                    if not self._holds(key)
                }
        return fresh

    def _value(self, record: dict[str, Any]) -> dict[str, Any]:
        """Clear a version of a shared value; a list of texts loses its matching items only."""
        key, value, source = (record.get(name) for name in ("key", "value", "source"))
        fresh = {**record}
        if self._holds(key):
            # Equal for all versions, even if a kill interrupted the erasure between two of them.
            fresh |= {"key": f"{ERASED_TEXT} {record.get('created')}", "value": None}
        elif value is not None and self.matcher.holds([str(key), *texts_in_value(value)]):
            plain = isinstance(value, list) and all(isinstance(one, str) for one in value)
            left = [one for one in value if not self.matcher.touches(one)] if plain else []
            fresh["value"] = left or None
        if fresh["value"] is None and value is not None:
            fresh["erased"] = True
        if isinstance(source, str) and source:
            if parse_episode_id(source) is None:
                fresh["source"] = self._words(source)
            elif parse_episode_id(source) in self.entries and fresh["value"] is not None:
                fresh["stale"] = True
        return fresh

    def belief(self, record: dict[str, Any]) -> dict[str, Any]:
        """Clear a belief: it loses erased evidence, and goes if that was all, or with its words."""
        evidence = record.get("evidence")
        rests_on = evidence if isinstance(evidence, list) else []
        left = [one for one in rests_on if not self._is_gone(one)]
        fresh = {**record, "evidence": left}
        baseless = bool(rests_on) and not left
        if baseless or record.get("id") in self.beliefs or self._holds(record.get("content")):
            return {**fresh, "content": {"text": ""}, "status": "retired", "reason": ""}
        return fresh | ({"reason": self._words(fresh["reason"])} if "reason" in fresh else {})

    def _versions(self, versions: dict[str, Any], held: dict[str, Any]) -> dict[str, Any]:
        """Return the map of versions to entries, under the keys of the cleared records."""
        records = [one for one in held.get("references") or () if isinstance(one, dict)]
        known = {one.get("key"): self._value(one).get("key") for one in records}
        fresh: dict[str, dict[int, int]] = {}
        for key, pairs in versions.items():
            merged = fresh.setdefault(str(known.get(key, key)), {})
            for version, at in pairs:
                merged[version] = max(at, merged.get(version, 0))
        return {key: list(map(list, found.items())) for key, found in fresh.items()}

    def _items(self, items: list[Any]) -> list[Any]:
        return [item for item in items if not self._holds(item)]

    def _holds(self, value: Any) -> bool:
        return value is not None and self.matcher.holds(_texts(value))

    def _words(self, value: Any, *, wholly: bool = False) -> Any:
        texts = () if wholly or self.matcher.is_empty else texts_in_value(value)
        if not wholly and not self.matcher.holds(texts):
            return value
        return without_words(value, None if wholly else self.matcher, frozenset({"code"}))

    def _is_gone(self, evidence: Any) -> bool:
        if not isinstance(evidence, str):
            return False
        if evidence.isascii() and evidence.isdecimal():
            return int(evidence) in self.facts
        return evidence in self.beliefs or parse_episode_id(evidence) in self.entries


def without_words(
    value: Any, matcher: TextMatcher | None, fixed: Collection[str], *, keys: bool = False
) -> Any:
    """Return a JSON value with a mark in place of each text with erased words."""
    if isinstance(value, str):
        return ERASED_TEXT if value and (matcher is None or matcher.touches(value)) else value
    if isinstance(value, list):
        return [without_words(one, matcher, fixed, keys=keys) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        ERASED_TEXT if keys and matcher is not None and matcher.touches(str(key)) else key: one
        if key in fixed
        else without_words(one, matcher, fixed, keys=keys)
        for key, one in value.items()
    }


def lines_without(text: str, matcher: TextMatcher) -> str:
    """Return a text without the lines that have erased words; empty if only several together do."""
    left = "\n".join(line for line in text.splitlines() if not matcher.holds([line]))
    return "" if matcher.holds([left]) else left if left != "\n".join(text.splitlines()) else text


def find_baseless_beliefs(compartments: Compartments, eraser: RecordEraser) -> frozenset[str]:
    """Return the ids of a tape's beliefs to erase, by their text or as no evidence of them remains."""
    gone: frozenset[str] = frozenset()
    while True:
        clearing = replace(eraser, beliefs=gone)
        patterns = [pattern.as_json() for pattern in compartments.patterns.values()]
        found = {one["id"] for one in patterns if not any(clearing.belief(one)["content"].values())}
        if found <= gone:
            return gone
        gone |= found


def find_affected_records(
    tape: str, data: dict[str, Any], eraser: RecordEraser
) -> Iterator[tuple[AffectedRecordKey, dict[str, Any]]]:
    """Yield each record of a tape's change or state that loses text, with its present content."""
    fresh = eraser.records(data)
    for place, kind, name, words in _KINDS:
        for old, new in zip(data.get(place) or (), fresh.get(place, ()), strict=False):
            if isinstance(old, dict) and any(old.get(one) != new.get(one) for one in words or old):
                yield (tape, kind, str(old.get(name))), old


def count_records(records: Collection[AffectedRecordKey]) -> tuple[int, int, int]:
    """Return the numbers of shared values, beliefs, and problems with notes."""
    kinds = [kind for _, kind, _ in records]
    return kinds.count("value"), kinds.count("belief"), kinds.count("notes")


def record_phrases(counts: tuple[int, int, int]) -> list[str]:
    """Return one phrase for each kind of record that is not counted as none."""
    values, beliefs, notes = counts
    phrases = (
        (values, ngettext("a shared value", "{n} shared values", values)),
        (beliefs, ngettext("a belief", "{n} beliefs", beliefs)),
        (notes, ngettext("a problem's notes", "the notes of {n} problems", notes)),
    )
    return [text for number, text in phrases if number]


def _says_nothing(data: dict[str, Any]) -> bool:
    """Return whether a change holds only shared values, all of them erased."""
    values = data.get("references")
    if not isinstance(values, list) or not values:
        return False
    alone = not any(data.get(name) for name in ("problems", "working", "patterns"))
    return alone and all(isinstance(one, dict) and one.get("erased") is True for one in values)


def _number(record: dict[str, Any], name: str) -> int:
    number = record.get(name)
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
