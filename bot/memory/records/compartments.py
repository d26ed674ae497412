"""Fold a tape's ``memory.bus`` entries into its compartments. Pure.

Rule 1: one ``memory.bus`` entry is one change: all of it applies, or none.
Rule 2: an entry holds each record as it is afterwards, so that the fold decides nothing.
Rule 3: a session's tape holds problems and working sets; a scope's tape holds references and
    patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from bot.memory.records.compartment_records import (
    MAX_WORKING_SET_HOURS,
    PATTERNS,
    PROBLEMS,
    REFERENCES,
    WORKING_SETS,
    Problem,
    SharedReference,
    SynthesizedPattern,
    WorkingSet,
    problem_from_json,
)
from bot.memory.records.record_json import parse_utc_time
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM

BUS_EVENT = "memory.bus"

_MOST_DIGITS = 15

_GENERAL = problem_from_json({"id": GENERAL_PROBLEM, "name": GENERAL_PROBLEM, "state": "active"})
"""The general problem, which every session has from the start."""


@dataclass(slots=True)
class Compartments:
    """The state of one tape's compartments.

    Attributes:
        problems: All problems by id, without their working sets.
        active_problem: Id of the problem that is worked on.
        requested_problem: Id of the problem to switch to after the current turn; empty for none.
        working_sets: Working sets by problem; some may have expired.
        last_used: When a turn last worked on the active problem.
        references: The current version of each shared value, by key.
        versions: By key, the id of the entry that records each version.
        patterns: Patterns by id, including retired ones.
        decayed_at: Time of the last decay.
        uses: When facts that had no room in the prompt were last looked up, ISO 8601 in UTC, by number.
        next_problem: Number of the next problem.
        next_pattern: Number of the next pattern.
    """

    problems: dict[str, Problem] = field(default_factory=dict)
    active_problem: str = GENERAL_PROBLEM
    requested_problem: str = ""
    working_sets: dict[str, WorkingSet] = field(default_factory=dict)
    last_used: datetime | None = None
    references: dict[str, SharedReference] = field(default_factory=dict)
    versions: dict[str, dict[int, int]] = field(default_factory=dict)
    patterns: dict[str, SynthesizedPattern] = field(default_factory=dict)
    decayed_at: datetime | None = None
    uses: dict[int, str] = field(default_factory=dict)
    next_problem: int = 1
    next_pattern: int = 1

    def apply(self, entry: TapeEntry) -> None:
        """Apply a ``memory.bus`` entry."""
        data, moment = entry.data, parse_utc_time(entry.meta.get("ts"))
        self._take(data, entry.id, moment)
        for gone in _texts(data.get("expired")):
            self.working_sets.pop(gone, None)
        if data.get("decayed") is True:
            self.decayed_at = moment
        if isinstance(wanted := data.get("wanted"), str):
            self.requested_problem = wanted if self._is_known(wanted) else ""
        if self._is_known(active := data.get("active")):
            self.active_problem, self.requested_problem, self.last_used = active, "", moment

    def problem(self, problem_id: str) -> Problem | None:
        """Return a problem with its last written working set; None if there is none."""
        found = self.problems.get(problem_id)
        if found is None and problem_id == GENERAL_PROBLEM:
            found = _GENERAL
        working = self.working_sets.get(problem_id)
        return found if found is None or working is None else replace(found, working_set=working)

    @property
    def has_private_problem(self) -> bool:
        """Whether a problem is private."""
        return any(problem.private for problem in self.problems.values())

    def is_private(self, problem_id: str) -> bool:
        """Return whether only private models may see what is said in a problem."""
        problem = self.problems.get(problem_id)
        return problem is not None and problem.private

    def expiry_of(self, working: WorkingSet) -> datetime:
        """Return when a working set expires, counting its last use."""
        if working.problem_id != self.active_problem or self.last_used is None:
            return working.expires_at
        return max(working.expires_at, self.last_used + timedelta(hours=working.ttl_hours))

    def working_set(self, problem_id: str, now: datetime) -> WorkingSet | None:
        """Return a problem's working set; None if it has none, or it expired."""
        found = self.working_sets.get(problem_id)
        if found is None or now >= self.expiry_of(found):
            return None
        return replace(found, expires_at=self.expiry_of(found))

    def state(self) -> dict[str, Any]:
        """Return the records as they are now, as in a change."""
        return {
            "problems": [one.as_json() for one in self.problems.values()],
            "working": [one.as_json() for one in self.working_sets.values()],
            "references": [one.as_json() for one in self.references.values()],
            "patterns": [one.as_json() for one in self.patterns.values()],
        }

    def _is_known(self, problem: object) -> TypeGuard[str]:
        """Say whether a problem exists."""
        return isinstance(problem, str) and (problem == GENERAL_PROBLEM or problem in self.problems)

    def _take(self, data: dict[str, Any], entry: int, written: datetime | None) -> None:
        """Store the records in a change."""
        uses = data.get("uses")
        for key, stamp in uses.items() if isinstance(uses, dict) else ():
            if _digits(key) and parse_utc_time(stamp) is not None:
                self.uses[_digits(key)] = stamp
        for problem in PROBLEMS.read_list(data.get("problems")):
            self.problems[problem.problem_id] = problem
            self._count([problem.problem_id])
        for working in WORKING_SETS.read_list(data.get("working")):
            # Limits the lifetime in records of imported tapes, too.
            day = timedelta(hours=MAX_WORKING_SET_HOURS)
            ends = min(working.expires_at, written + day) if written else working.expires_at
            self.working_sets[working.problem_id] = replace(working, expires_at=ends)
        for reference in REFERENCES.read_list(data.get("references")):
            known = reference if reference.entry else replace(reference, entry=entry)
            self.references[known.key] = known
            self.versions.setdefault(known.key, {})[known.version] = known.entry
        for pattern in PATTERNS.read_list(data.get("patterns")):
            self.patterns[pattern.id] = pattern
            self._count((), [pattern.id])

    def _count(self, problems: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        """Let the next numbers follow those of records."""
        self.next_problem = max([self.next_problem, *(_digits(one[1:]) + 1 for one in problems)])
        self.next_pattern = max([self.next_pattern, *(_digits(one[1:]) + 1 for one in patterns)])


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _digits(text: str) -> int:
    """Return the number that a text consists of; 0 if it is not one, or too long."""
    known = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if known else 0
