"""Read summaries of what lies before the view: the newest history entries of phase and problem."""

from __future__ import annotations

from contextlib import aclosing

from bot.llm.base import estimate_tokens
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import SESSION_NEW, SESSION_START
from bot.tape.search import problem_of
from bot.tape.service import TapeService

MOST_SUMMARIES = 5
MAX_SUMMARY_TOKENS = 1_500

_SCANNED = 5_000
"""Number of entries before the last consolidation in which summaries are searched."""

_BEGIN = frozenset({SESSION_START, SESSION_NEW})


class SummaryReader:
    """Finds the history entries that a prompt shows.

    They stay the same until the next consolidation or boundary, even after a restart, so that the
    prompt keeps its cached prefix. History before memory was cleared is not shown.

    Args:
        tape: The session's tape.
        fold: The session's state.
    """

    def __init__(self, tape: TapeService, fold: SessionFold) -> None:
        self._tape = tape
        self._fold = fold
        self._key = (-1, -1, "")
        self._found: tuple[str, ...] = ()

    async def read(self) -> tuple[str, ...]:
        """Return the summaries, oldest first."""
        marks = (self._fold.boundary, self._fold.last_consolidation)
        last = max((entry.id for entry in marks if entry), default=0)
        key = (last, self._fold.zone.cleared, self._fold.problem)
        if key != self._key:
            self._found = await self._find(*key)
            self._key = key
        return self._found

    async def _find(self, last: int, cleared: int, problem: str) -> tuple[str, ...]:
        found: list[str] = []
        room = MAX_SUMMARY_TOKENS
        async with aclosing(self._tape.read_back(last + 1)) as entries:
            async for entry in entries:
                began = entry.kind == "anchor" and entry.name in _BEGIN
                if began or entry.id <= max(cleared, last - _SCANNED):
                    break
                told = entry.kind == "event" and entry.name == HISTORY_EVENT
                if not told or problem_of(entry) != problem:
                    continue
                text = str(entry.data.get("entry", "")).strip()
                room -= estimate_tokens(text)
                if room < 0 or len(found) == MOST_SUMMARIES:
                    break
                found.append(text)
        return tuple(reversed(found))
