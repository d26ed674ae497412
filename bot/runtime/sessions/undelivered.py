"""Answers that a platform refused for good: their people are told once they can be reached again.

The small tape ``workspace:undelivered`` has no words: it names the answer, where it was to go, for whom, and why not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from bot.bus import DeliveryReport
from bot.core.reasons import reason_json
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.entries import TapeEntry, event
from bot.tape.store import TapeStore

_REFUSED = "delivery.refused"
_TOLD = "delivery.told"
_MOST_KEPT = 1_000

_TOLD_ID_PREFIX = "told-"


def told_id(answer: str, after: str) -> str:
    """Return the id of the word about an answer that is said after another one, each time anew."""
    return f"{_TOLD_ID_PREFIX}{answer}.{after}"


class UndeliveredFold:
    """What people were not told yet, by answer."""

    def __init__(self) -> None:
        self.waiting: dict[str, dict[str, Any]] = {}

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        answer = str(entry.data.get("answer"))
        if entry.name == _REFUSED:
            self.waiting[answer] = {**entry.data, "ts": entry.meta.get("ts")}
            if len(self.waiting) > _MOST_KEPT:
                del self.waiting[next(iter(self.waiting))]
        elif entry.name == _TOLD:
            self.waiting.pop(answer, None)


class Undelivered:
    """Keeps what was refused until its person was told.

    Args:
        store: The store of all tapes.
    """

    def __init__(self, store: TapeStore) -> None:
        self._tape = WorkspaceTape(store, "workspace:undelivered", UndeliveredFold())
        self._telling: set[str] = set()

    async def note(self, report: DeliveryReport, person: str) -> None:
        """Keep that an answer did not reach a person."""
        data: dict[str, object] = {"answer": report.answer, "session": report.session}
        data["person"] = person
        data["error"] = reason_json(report.error or "")
        await self._tape.change(lambda: ([event(_REFUSED, data)], None))

    async def settle(self, report: DeliveryReport) -> bool:
        """Note that an answer arrived at last, or the word about it; return whether any other waits."""
        answer = report.answer
        if answer.startswith(_TOLD_ID_PREFIX):
            answer = answer.removeprefix(_TOLD_ID_PREFIX).partition(".")[0]
        await self._tape.refresh()
        if report.delivered and answer in self._tape.fold.waiting:
            await self._tape.change(lambda: ([event(_TOLD, {"answer": answer})], None))
        self._telling.discard(answer)
        return bool(self._tape.fold.waiting)

    def take(self, people: Collection[str]) -> list[dict[str, Any]]:
        """Return what did not reach these identities, except what they are just being told."""
        found = [
            one
            for answer, one in self._tape.fold.waiting.items()
            if one["person"] in people and answer not in self._telling
        ]
        self._telling.update(str(one["answer"]) for one in found)
        return found
