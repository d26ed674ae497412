"""Working sets: what one problem needs right now, and nobody else reads.

Rule 1: every write names its problem, and nothing is read but by naming it.
Rule 2: a working set ends when it was not used for its hours; what it came to stays, as a summary.
Rule 3: a summary tells constraints, decisions and questions in short, and of drafts only their names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bot.core.clock import Clock, format_time
from bot.core.errors import MemoryRefused
from bot.memory.bus.compartment_records import (
    MAX_WORKING_SET_HOURS,
    WORKING_FIELDS,
    Problem,
    WorkingSet,
    parse_utc_time,
)
from bot.memory.bus.compression import render_context_packet
from bot.memory.bus.entries import episode_entry
from bot.memory.facts.fact_fold import bus_entry
from bot.memory.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry

MAX_LIFETIME_HOURS = MAX_WORKING_SET_HOURS
MAX_WORKING_SET_BYTES = 16_000
"""Of one working set, as JSON."""

_MOST_ITEMS = 50
MAX_PACKET_CHARS = 4_000
"""Characters of a context packet."""

_LONGEST_SUMMARY = 1_500
_SHOWN = 200
_PARTS = {"assumptions": "a", "local_decisions": "d"}
"""The text in each of a list's items."""

WorkingSetEdit = Callable[[WorkingSet], dict[str, Any]]
"""Given a working set, returns the fields that change."""


class WorkingSetStore:
    """The working sets of one session.

    Args:
        own: The session's own scope, on whose tape they are.
        clock: Tells what has expired.
        hours: How long a working set lives unused, unless it says otherwise; at most 24.
    """

    def __init__(self, own: ScopeMemory, clock: Clock, hours: float = 2.0) -> None:
        self._own = own
        self._clock = clock
        self._hours = min(hours, MAX_LIFETIME_HOURS)
        self._packets: dict[str, tuple[WorkingSet, str]] = {}

    async def create(self, problem_id: str, ttl_hours: float | None = None) -> WorkingSet:
        """Return a problem's working set, made empty where it has none.

        Args:
            problem_id: The problem.
            ttl_hours: How long a new one lives unused, at most 24; by default as all others.

        Raises:
            MemoryRefused: There is no such problem, or it would not live at all.
        """
        if ttl_hours is not None and not ttl_hours > 0:  # also what is no number at all
            raise MemoryRefused("a working set lives for more than 0 hours, at most 24")
        return await self._edit(problem_id, lambda _: {}, ttl_hours=ttl_hours)

    async def get(self, problem_id: str) -> WorkingSet | None:
        """Return a problem's working set; None where it has none, or it has expired."""
        found = self._own.compartments.working_set(problem_id, self._clock.now())
        if found is None or problem_id not in self._packets:
            return found
        return replace(found, context_packet=self._packets[problem_id][1])

    async def compile(
        self, problem_id: str, *, pending: Container[int] = (), most: int = MAX_PACKET_CHARS
    ) -> str:
        """Return what the model is told of a problem: its context packet; empty where there is nothing.

        Args:
            problem_id: The problem; no other's working set is read for it.
            pending: Facts that wait for a person: assumptions of others were decided on.
            most: Characters; what does not fit is left out, and that is said.

        Raises:
            MemoryRefused: What is recorded of it is another problem's.
        """
        await self.isolate(problem_id)
        problem = self._own.compartments.problem(problem_id)
        now = self._clock.now()
        working = self._own.compartments.working_set(problem_id, now)
        if problem is None or working is None or working.empty:
            return ""
        held = [_shown(one) for one in working.assumptions if _open(one, pending, now)]
        # Compiled anew only where it changed: it is asked for at each step of a turn.
        working = replace(working, assumptions=held, expires_at=working.created_at)
        known = self._packets.get(problem_id)
        if known is None or known[0] != working:
            known = (working, render_context_packet(working, problem.name, most=most))
            self._packets[problem_id] = known
        return known[1]

    async def update(self, problem_id: str, *, cause: str = "", **fields: Any) -> None:
        """Replace fields of a problem's working set, made where it has none.

        Args:
            problem_id: The problem.
            cause: What made it happen; the same cause does so once.
            fields: New values by the names of ``WORKING_FIELDS``.

        Raises:
            MemoryRefused: A field is unknown, or too much; nothing was changed.
        """
        await self._edit(problem_id, lambda _: fields, cause=cause)

    async def add(self, problem_id: str, name: str, item: Any, *, cause: str = "") -> None:
        """Add to one field of a problem's working set; see ``update`` for errors.

        Args:
            problem_id: The problem.
            name: One of ``WORKING_FIELDS``.
            item: Of lists, one more, unless it is there; of fields by name, those that change.
            cause: What made it happen; the same cause does so once.
        """

        def more(working: WorkingSet) -> dict[str, Any]:
            old = getattr(working, name, None)
            if isinstance(old, dict):
                return {name: {**old, **item}}
            if isinstance(old, list):
                return {name: old if item in old else [*old, item]}
            return {name: item}

        await self._edit(problem_id, more, cause=cause)

    async def change(self, problem_id: str, edit: WorkingSetEdit, *, cause: str = "") -> WorkingSet:
        """Change fields of a problem's working set by what they are; see ``update`` for errors.

        Args:
            problem_id: The problem.
            edit: Says what they become; it may be asked more than once.
            cause: What made it happen; the same cause does so once.
        """
        return await self._edit(problem_id, edit, cause=cause)

    async def expire_stale(self) -> int:
        """End what was not used for its hours, its summary exported; return how many ended."""

        def compose(_: int) -> tuple[list[TapeEntry], int]:
            held, stale = self._own.compartments, self._stale()
            if not stale:
                return [], 0
            data: dict[str, Any] = {"expired": [one.problem_id for one in stale]}
            entries = []
            for one in stale:
                problem, summary = held.problem(one.problem_id), summarize_working_set(one)
                if problem is not None and summary:
                    known = replace(problem, summary=append_summary(summary, problem.summary))
                    data.setdefault("problems", []).append(known.as_json())
                    entries.append(summary_episode(one.problem_id, summary, "expired"))
            return [bus_entry(self._own.fold, data), *entries], len(stale)

        return await self._own.append_change(compose) if self._stale() else 0

    def _stale(self) -> list[WorkingSet]:
        held, now = self._own.compartments, self._clock.now()
        return [one for one in held.working_sets.values() if now >= held.expiry_of(one)]

    async def export_summary(self, problem_id: str) -> str:
        """Return what a problem's working set comes to, or last came to; empty where there is nothing."""
        problem = self._own.compartments.problem(problem_id)
        return problem_summary(problem) if problem is not None else ""

    async def isolate(self, problem_id: str) -> None:
        """See that a problem's working set is its own.

        Raises:
            MemoryRefused: It is recorded under another problem's name.
        """
        found = self._own.compartments.working_sets.get(problem_id)
        if found is not None and found.problem_id != problem_id:
            raise MemoryRefused(
                f"the working set of {problem_id} is that of {found.problem_id}: it is not shown"
            )

    async def _edit(
        self,
        problem_id: str,
        edit: WorkingSetEdit,
        *,
        cause: str = "",
        ttl_hours: float | None = None,
    ) -> WorkingSet:
        def compose(_: int) -> tuple[list[TapeEntry], WorkingSet]:
            held, now = self._own.compartments, self._clock.now()
            if held.problem(problem_id) is None:
                raise MemoryRefused(f"there is no problem {problem_id}")
            known = held.working_set(problem_id, now)
            if known is not None and cause and cause in self._own.fold.decided_keys:
                return [], known
            working = known or self._fresh(problem_id, now, ttl_hours)
            fields = edit(working)
            if known is not None and all(
                fields[one] == getattr(known, one, None) for one in fields
            ):
                return [], known
            check_fields(fields)
            expires = now + timedelta(hours=working.ttl_hours)
            working = replace(working, **fields, expires_at=max(expires, working.expires_at))
            check_size(working)
            data: dict[str, Any] = {"working": [working.as_json()]}
            data |= {"key": cause} if cause else {}
            return [bus_entry(self._own.fold, data, problem=problem_id)], working

        # What a new one takes the place of must not go without its summary.
        await self.expire_stale()
        return await self._own.append_change(compose)

    def _fresh(self, problem_id: str, now: datetime, ttl_hours: float | None) -> WorkingSet:
        hours = min(self._hours if ttl_hours is None else ttl_hours, MAX_LIFETIME_HOURS)
        expires = now + timedelta(hours=hours)
        return WorkingSet(problem_id, self._own.name, now, expires, ttl_hours=hours)


def expiring_assumption(
    text: str, confidence: float, until: datetime, **more: Any
) -> dict[str, Any]:
    """Return an assumption that holds until a time, such as what is contested."""
    return {"a": text, "confidence": confidence, "until": format_time(until), **more}


def _open(assumption: object, pending: Container[int], now: datetime) -> bool:
    """Say whether an assumption stands: for its time, and of a pending fact until a person decides."""
    if not isinstance(assumption, dict):
        return True
    fact, until = assumption.get("fact"), parse_utc_time(assumption.get("until"))
    return (fact is None or fact in pending) and (until is None or now < until)


def _waits(assumption: dict[str, Any]) -> bool:
    return bool(assumption.keys() & {"fact", "until"})


def _shown(assumption: Any) -> Any:
    """Return an assumption as a model is shown it: without until when, and the number of its fact."""
    if not isinstance(assumption, dict):
        return assumption
    return {name: value for name, value in assumption.items() if name not in ("until", "fact")}


def check_fields(fields: dict[str, Any]) -> None:
    """See that fields are some of a working set's.

    Raises:
        MemoryRefused: One is unknown, or of another shape, or too long.
    """
    for name, value in fields.items():
        if name not in WORKING_FIELDS:
            known = ", ".join(WORKING_FIELDS)
            raise MemoryRefused(f"a working set has no {name!r}; it has {known}")
        shape = dict if name in ("constraints", "partial_artifacts") else list
        if not isinstance(value, shape):
            raise MemoryRefused(f"{name} of a working set must be a {shape.__name__}")
        if len(value) > _MOST_ITEMS:
            raise MemoryRefused(
                f"{name} of a working set would pass {_MOST_ITEMS}: drop some first"
            )
        _check_items(name, value)


def _check_items(name: str, value: Any) -> None:
    """See that what is read by its parts has them."""
    part = _PARTS.get(name)
    if part is not None and any(
        not isinstance(one, dict) or not isinstance(one.get(part), str) for one in value
    ):
        raise MemoryRefused(f"each of {name} must have a text {part!r}")
    if name == "open_questions" and any(not isinstance(one, str) for one in value):
        raise MemoryRefused("open_questions must be texts")
    if name == "constraints" and any(not isinstance(one, list) for one in value.values()):
        raise MemoryRefused("constraints must be lists by name: must, must_not")


def check_size(working: WorkingSet) -> None:
    """See that a working set is not too large.

    Raises:
        MemoryRefused: It is, or something in it is not JSON.
    """
    try:
        size = len(json.dumps(working.as_json(), ensure_ascii=False).encode("utf-8", "replace"))
    except (TypeError, ValueError, RecursionError) as error:
        raise MemoryRefused(f"a working set holds JSON only ({error})") from error
    if size > MAX_WORKING_SET_BYTES:
        raise MemoryRefused(
            f"the working set of {working.problem_id} would pass {MAX_WORKING_SET_BYTES} bytes: shorten its drafts"
        )


def summarize_working_set(working: WorkingSet | None) -> str:
    """Return what a working set comes to, in one line a field; empty where it holds nothing."""
    if working is None or working.empty:
        return ""
    must, must_not = (working.constraints.get(name) for name in ("must", "must_not"))
    decided = [_reasoned(one) for one in _readable(working, "local_decisions")]
    lines = [
        ("must", must),
        ("must not", must_not),
        ("decided", decided),
        # What is contested holds for its time alone, or waits for a person.
        ("assumed", [one["a"] for one in _readable(working, "assumptions") if not _waits(one)]),
        ("open", working.open_questions),
        ("drafts", list(working.partial_artifacts)),
    ]
    return "\n".join(f"{name}: {'; '.join(_shortened(found))}" for name, found in lines if found)


def problem_summary(problem: Problem) -> str:
    """Return what a problem's working sets come to: the one that lives, and before it those that ended."""
    return append_summary(summarize_working_set(problem.working_set), problem.summary)


def append_summary(new: str, old: str) -> str:
    """Return a summary with what it takes the place of behind it, as far as there is room."""
    repeated = frozenset(new.splitlines())
    kept = [line for line in old.splitlines() if line not in repeated]
    return "\n".join([*([new] if new else []), *kept])[:_LONGEST_SUMMARY]


def summary_episode(problem_id: str, summary: str, why: str) -> TapeEntry:
    """Return the episode that keeps what a working set came to."""
    content = {"text": summary, "why": why}
    return episode_entry("summary", content, problem=problem_id, tags=["export"])


def _readable(working: WorkingSet, name: str) -> list[dict[str, Any]]:
    """Return those items that have their text: a tape that was imported may hold others."""
    return [one for one in getattr(working, name) if isinstance(one, dict) and _PARTS[name] in one]


def _reasoned(decision: dict[str, Any]) -> str:
    why = decision.get("why")
    return f"{decision.get('d')} ({why})" if why else str(decision.get("d"))


def _shortened(texts: list[Any]) -> list[str]:
    found = [" ".join(str(one).split()) for one in texts]
    return [one if len(one) <= _SHOWN else f"{one[:_SHOWN].rstrip()}…" for one in found]
