"""Erased facts in the records of their scope's tape. Pure.

Rule 1: an erased fact keeps its number, its dates and the ids of its evidence, and ends.
Rule 2: a fact that stays keeps its text; what it quotes of an erased message goes.
Rule 3: folded, the records give the other facts as before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot.memory.facts.fact import fact_from
from bot.memory.forgetting.scrubbing import Scrubber, texts_of
from bot.memory.forgetting.wording import Wording
from bot.tape.entries import TapeEntry


@dataclass(frozen=True, slots=True)
class FactScrubber:
    """Scrubs entries ``memory.facts`` of one scope.

    Attributes:
        scrubber: Knows the words.
        facts: Numbers of facts that are erased.
        entries: Tapes and ids of entries that are erased.
    """

    scrubber: Scrubber
    facts: Collection[int]
    entries: Collection[tuple[str, int]]

    def entry(self, entry: TapeEntry) -> TapeEntry:
        """Return a record without what is erased."""
        data = dict(entry.data)
        wording = self.scrubber.sought(texts_of(entry)) or Wording()
        if isinstance(ops := data.get("ops"), list):
            data["ops"] = [self._operation(one, wording) for one in ops]
        if isinstance(state := data.get("state"), dict) and isinstance(state.get("facts"), list):
            known = [self._fact(one, wording) for one in state["facts"]]
            data["state"] = {**state, "facts": known}
        return (
            entry if data == entry.data else replace(entry, payload={**entry.payload, "data": data})
        )

    def _operation(self, operation: Any, wording: Wording) -> Any:
        if not isinstance(operation, dict):
            return self.scrubber.value(operation, wording)
        fresh = {**operation}
        for place in ("fact", "closed"):
            if place in operation:
                fresh[place] = self._fact(operation[place], wording)
        made = fact_from(operation.get("fact"))
        if made is not None and made.id in self.facts:
            fresh["text"] = ""
        elif made is None or operation.get("text") != made.text:
            fresh["text"] = self.scrubber.value(operation.get("text", ""), wording)
        for key in ("reason", "signals"):
            if key in operation:
                fresh[key] = self.scrubber.value(operation[key], wording)
        return fresh

    def _fact(self, record: Any, wording: Wording) -> Any:
        if not isinstance(record, dict):
            return record
        erased = self._is_erased(record)
        fresh = {**record}
        if erased:
            fresh |= {"text": "", "subject": ""}
            if record.get("status") in ("active", "pending"):
                fresh["status"] = "retired"
        if isinstance(evidence := record.get("evidence"), list):
            fresh["evidence"] = [self._evidence(one, wording, erased=erased) for one in evidence]
        return fresh

    def _evidence(self, record: Any, wording: Wording, *, erased: bool) -> Any:
        if not isinstance(record, Mapping):
            return record
        gone = erased or (record.get("tape"), record.get("entry")) in self.entries
        quote = record.get("quote", "")
        return {**record, "quote": "" if gone else self.scrubber.value(quote, wording)}

    def _is_erased(self, record: Any) -> bool:
        fact = fact_from(record)
        return fact is not None and fact.id in self.facts
