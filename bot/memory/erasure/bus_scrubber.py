"""Remove erased text from the memory bus's records. Pure.

Rule 1: a record keeps its id, dates, versions and causes; only its fields with erased text are
    cleared.
Rule 2: each record is scrubbed by its own content alone, not by its entry's: so the changes on a
    tape still agree with the snapshots after them.
Rule 3: a belief without remaining evidence is erased like a fact; a shared value whose source is
    erased is marked as stale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from bot.memory.erasure.scrubber import Scrubber
from bot.memory.erasure.text_matcher import normalize_for_match, pad_words
from bot.memory.gate.reference_values import texts_in_value
from bot.memory.records.compartment_records import WORKING_FIELDS
from bot.memory.records.compartments import Compartments
from bot.memory.records.episodes import parse_episode_id
from bot.memory.records.tombstones import ERASED_TEXT
from bot.tape.search import GENERAL_PROBLEM

_RECORDS = ("problems", "working", "references", "patterns")
_LINKS = frozenset(
    {"key", "previous", "state", "expired", "decayed", "uses", "active", "wanted", "by", "signals"}
    | {"requested", "restores"}
)
_FORM = frozenset({"text", "if", "then", "a", "d", "why"})
"""Keys in a belief's content and in a working set's items that are structure, not text."""

_NO_WORDS = frozenset({"confidence", "fact"})


@dataclass(frozen=True, slots=True)
class BusScrubber:
    """Remove erased text from the compartments of one tape.

    Attributes:
        scrubber: Finds and replaces the erased text.
        facts: Numbers of the tape's erased facts.
        entries: Tapes and ids of erased entries.
        patterns: Ids of the tape's erased beliefs.
        texts: Texts of the erased facts, normalized and padded; an item equal to one of them is
            removed.
    """

    scrubber: Scrubber
    facts: Collection[int] = ()
    entries: Collection[tuple[str, int]] = ()
    patterns: Collection[str] = ()
    texts: Collection[str] = ()

    def scrub_change(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return a change's data without erased text; leave its ``state`` as it is."""
        fresh = {**data, **self.scrub_records(data)}
        for key, value in data.items():
            if key in _LINKS or key in _RECORDS:
                continue
            if key == "decision" and isinstance(value, dict):
                fresh[key] = {**value, "reason": self.scrubber.scrub_reason(value.get("reason"))}
            elif (wording := self.scrubber.scrub_texts(list(texts_in_value(value)))) is not None:
                fresh[key] = self.scrubber.scrub_value(value, wording)
        return fresh

    def scrub_state(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return a whole state of the compartments without erased text."""
        fresh = {**state, **self.scrub_records(state)}
        if isinstance(versions := state.get("versions"), dict):
            fresh["versions"] = self._versions(versions, state)
        if fresh.get("references") != state.get("references"):
            # Scrubbed keys may have become equal: the newest must come last, since the last counts.
            fresh["references"].sort(key=lambda one: one.get("entry", 0))
        return fresh

    def scrub_records(self, data: dict[str, Any]) -> dict[str, list[Any]]:
        """Return the records of a change or a whole state without erased text."""
        scrubs = (
            self.scrub_problem,
            self.scrub_working_set,
            self.scrub_reference,
            self.scrub_belief,
        )
        return {
            name: [scrub(one) if isinstance(one, dict) else one for one in data[name]]
            for name, scrub in zip(_RECORDS, scrubs, strict=True)
            if isinstance(data.get(name), list)
        }

    def scrub_problem(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a problem without erased text; an erased name is replaced by a mark and the id."""
        name, summary = record.get("name"), record.get("summary")
        wording = self.scrubber.scrub_texts([str(name or ""), str(summary or "")])
        if wording is None:
            return record
        fresh = {**record}
        if isinstance(name, str) and wording.matches(name) and record.get("id") != GENERAL_PROBLEM:
            fresh["name"] = f"{ERASED_TEXT} {record.get('id')}"
        if summary:
            fresh["summary"] = self.scrubber.scrub_value(summary, wording)
        return fresh

    def scrub_working_set(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a working set without the items that hold erased text; drafts become empty."""
        fresh = {**record}
        for field in WORKING_FIELDS:
            held = record.get(field)
            if isinstance(held, list):
                fresh[field] = self._items(held)
            elif isinstance(held, dict) and field == "constraints":
                fresh[field] = {
                    kind: self._items(some) if isinstance(some, list) else some
                    for kind, some in held.items()
                    if isinstance(some, list) or not self._goes(some)
                }
            elif isinstance(held, dict):
                fresh[field] = {
                    name: "" if self._goes({name: draft}) else draft
                    for name, draft in held.items()
                    if not self._goes(name)
                }
        return fresh

    def scrub_reference(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a shared value's version without erased text.

        A matching key or value clears the value; a list of strings loses its matching items only.
        """
        key, value, source = (record.get(name) for name in ("key", "value", "source"))
        fresh = {**record}
        if isinstance(key, str) and self.scrubber.scrub_texts([key]) is not None:
            fresh |= {"key": _nameless(record), "value": None, "erased": True}
        elif value is not None:
            fresh["value"] = self._value(str(key), value)
            if fresh["value"] is None:
                fresh["erased"] = True
        if isinstance(source, str) and source:
            place = parse_episode_id(source)
            if place is None:
                fresh["source"] = self._text(source)
            elif place in self.entries and fresh["value"] is not None:
                fresh["stale"] = True
        return fresh

    def scrub_belief(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a belief without erased evidence; clear it if it matches or has none left."""
        evidence = record.get("evidence")
        rests_on = evidence if isinstance(evidence, list) else []
        left = [one for one in rests_on if not self._is_gone(one)]
        fresh = {**record, "evidence": left}
        baseless = bool(rests_on) and not left
        if baseless or record.get("id") in self.patterns or self._goes(record.get("content")):
            return {**fresh, "content": {"text": ""}, "status": "retired", "reason": ""}
        if "reason" in record:
            fresh["reason"] = self.scrubber.scrub_reason(record["reason"])
        return fresh

    def _versions(self, versions: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        """Return the map of versions to entries, under the keys of the scrubbed records."""
        known = {
            one["key"]: self.scrub_reference(one)["key"]
            for one in state.get("references") or ()
            if isinstance(one, dict) and isinstance(one.get("key"), str)
        }
        fresh: dict[str, dict[int, int]] = {}
        for key, pairs in versions.items():
            merged = fresh.setdefault(known.get(key, key), {})
            for version, at in pairs:
                merged[version] = max(at, merged.get(version, 0))
        return {key: list(map(list, found.items())) for key, found in fresh.items()}

    def _value(self, key: str, value: Any) -> Any:
        wording = self.scrubber.scrub_texts([key, *texts_in_value(value)])
        if wording is None:
            return value
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            left = [one for one in value if not wording.matches(one)]
            if left and self.scrubber.scrub_texts([key, *left]) is None:
                return left
        return None

    def _items(self, items: list[Any]) -> list[Any]:
        return [item for item in items if not self._goes(item)]

    def _goes(self, item: Any) -> bool:
        texts = list(_told(item))
        if self.scrubber.scrub_texts(texts) is not None:
            return True
        return bool(self.texts) and any(
            pad_words(normalize_for_match(text)) in self.texts for text in texts
        )

    def _text(self, text: Any) -> Any:
        wording = self.scrubber.scrub_texts([text]) if isinstance(text, str) else None
        return text if wording is None else self.scrubber.scrub_value(text, wording)

    def _is_gone(self, evidence: Any) -> bool:
        if not isinstance(evidence, str):
            return False
        if evidence.isascii() and evidence.isdecimal():
            return int(evidence) in self.facts
        return evidence in self.patterns or parse_episode_id(evidence) in self.entries


def find_baseless_beliefs(compartments: Compartments, scrubber: BusScrubber) -> frozenset[str]:
    """Return the ids of all beliefs to erase, by their text or because no evidence of them remains.

    Args:
        compartments: The present compartments of a tape.
        scrubber: The scrubber of that tape; its ``patterns`` are ignored.
    """
    gone: frozenset[str] = frozenset()
    while True:
        bus_scrubber = replace(scrubber, patterns=gone)
        found = frozenset(
            pattern.id
            for pattern in compartments.patterns.values()
            if not bus_scrubber.scrub_belief(pattern.as_json())["content"].get("text")
        )
        if found <= gone:
            return gone
        gone |= found


def _nameless(record: dict[str, Any]) -> str:
    # Equal for all versions of a key, even if a kill interrupted the erasure between two of them.
    return f"{ERASED_TEXT} {record.get('created')}"


def _told(item: Any) -> Iterator[str]:
    """Yield all texts of an item, without its structural keys."""
    if not isinstance(item, dict):
        yield from texts_in_value(item)
        return
    for key, value in item.items():
        if key not in _FORM and key not in _NO_WORDS:
            yield key
        if key not in _NO_WORDS:
            yield from texts_in_value(value)
