"""Remove erased text from the fact and memory bus records on a scope's tape. Pure.

Rule 1: an erased fact keeps its number, its dates and the ids of its evidence, and ends.
Rule 2: a fact that stays keeps its text, but loses its quotes of erased messages.
Rule 3: folding the scrubbed records gives the other facts unchanged.
Rule 4: each record is scrubbed by its own content alone; so an entry agrees with the snapshots
    after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.core.reasons import recorded_words
from bot.memory.erasure.bus_scrubber import BusScrubber
from bot.memory.erasure.message_redaction import MessageRedactor
from bot.memory.erasure.scrubber import Scrubber
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.fact import fact_from_json
from bot.memory.records.tombstones import ERASED_META_KEY
from bot.tape.entries import TapeEntry

_NO_WORDS = TextMatcher()


@dataclass(frozen=True, slots=True)
class RecordScrubber:
    """Scrub the entries of one scope's chain: ``memory.facts``, ``memory.paused``, ``memory.bus``.

    Attributes:
        scrubber: Finds and replaces the erased text.
        facts: Numbers of erased facts.
        entries: Tapes and ids of erased entries.
        bus: Scrubber of the compartments; by default built from the three fields above.
        redactions: Entries that lose only some sentences, with the text that is left.
        redactor: Redacts quotations of these entries.
    """

    scrubber: Scrubber
    facts: Collection[int]
    entries: Collection[tuple[str, int]]
    bus: BusScrubber | None = None
    redactions: Mapping[tuple[str, int], str] = field(default_factory=dict)
    redactor: MessageRedactor | None = None
    _bus: BusScrubber = field(init=False)

    def __post_init__(self) -> None:
        """Build the default scrubber of the compartments."""
        bus = self.bus or BusScrubber(self.scrubber, self.facts, self.entries)
        object.__setattr__(self, "_bus", bus)

    def scrub_entry(self, entry: TapeEntry) -> TapeEntry:
        """Return an entry without erased text; the entry itself if nothing changes."""
        data, meta = dict(entry.data), dict(entry.meta)
        if entry.name == BUS_EVENT:
            data = self._bus.scrub_change(data)
            if _says_nothing(data) and not _says_nothing(entry.data):
                meta[ERASED_META_KEY] = True
        if isinstance(ops := data.get("ops"), list):
            data["ops"] = [self._operation(op) for op in ops]
        if isinstance(state := data.get("state"), dict):
            data["state"] = self._state(state)
        if data == entry.data and meta == entry.meta:
            return entry
        return replace(entry, payload={**entry.payload, "data": data}, meta=meta)

    def _state(self, state: dict[str, Any]) -> dict[str, Any]:
        fresh = {**state}
        if isinstance(facts := state.get("facts"), list):
            fresh["facts"] = [self._fact(fact) for fact in facts]
        if isinstance(held := state.get("compartments"), dict):
            fresh["compartments"] = self._bus.scrub_state(held)
        return fresh

    def _operation(self, operation: Any) -> Any:
        if not isinstance(operation, dict):
            wording = self.scrubber.scrub_texts([operation]) if isinstance(operation, str) else None
            return operation if wording is None else self.scrubber.scrub_value(operation, wording)
        fresh = {**operation}
        for place in ("fact", "closed"):
            if place in operation:
                fresh[place] = self._fact(operation[place])
        went_by = operation.get("signals")
        judged = went_by.get("judge") if isinstance(went_by, dict) else None
        recorded = (operation.get("text"), operation.get("reason"), judged)
        told = [word for record in recorded for word in recorded_words(record)]
        wording = self.scrubber.scrub_texts(told) or _NO_WORDS
        fact = fact_from_json(operation.get("fact"))
        if fact is not None and fact.id in self.facts:
            fresh["text"] = ""
        elif fact is None or operation.get("text") != fact.gloss:
            fresh["text"] = self.scrubber.scrub_value(operation.get("text", ""), wording)
        if "reason" in operation:
            fresh["reason"] = self.scrubber.scrub_reason(operation["reason"], wording)
        if "signals" in operation:
            fresh["signals"] = self.scrubber.scrub_value(went_by, wording)
        if judged is not None:
            fresh["signals"]["judge"] = self.scrubber.scrub_reason(judged, wording)
        return fresh

    def _fact(self, record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        fact = fact_from_json(record)
        erased = fact is not None and fact.id in self.facts
        fresh, wording = {**record}, _NO_WORDS
        if erased:
            fresh |= {"text": "", "subject": ""}
            if record.get("status") in ("active", "pending"):
                fresh["status"] = "retired"
        elif fact is not None:
            told = [fact.gloss, fact.subject, *(other.quote for other in fact.evidence)]
            told += [other.context for other in fact.evidence]
            wording = self.scrubber.scrub_texts(told) or _NO_WORDS
            if wording.matches(fact.subject):
                fresh["subject"] = ""
        if isinstance(evidence := record.get("evidence"), list):
            fresh["evidence"] = [self._evidence(one, wording, erased=erased) for one in evidence]
        return fresh

    def _evidence(self, record: Any, wording: TextMatcher, *, erased: bool) -> Any:
        if not isinstance(record, Mapping):
            return record
        place = (str(record.get("tape")), record.get("entry", 0))
        gone = erased or place in self.entries
        quote, fresh = record.get("quote", ""), {**record}
        if "context" in record:
            before = (place[0], record.get("context_entry", 0))
            lost = gone or before in self.entries or before in self.redactions
            fresh["context"] = "" if lost else self.scrubber.scrub_value(record["context"], wording)
        left = self.redactions.get(place)
        if not gone and self.redactor is not None and left is not None:
            return {**fresh, "quote": self.redactor.redact_quote(str(quote), left)}
        return {**fresh, "quote": "" if gone else self.scrubber.scrub_value(quote, wording)}


def _says_nothing(data: dict[str, Any]) -> bool:
    """Return whether a change holds only shared values, all of them erased."""
    values = data.get("references")
    if not isinstance(values, list) or not values:
        return False
    alone = not any(data.get(name) for name in ("problems", "working", "patterns"))
    return alone and all(
        isinstance(value, dict) and value.get("erased") is True for value in values
    )
