"""Working sets: notes for one problem that no other problem reads, with an expiry.

Rule 1: every read and write names its problem.
Rule 2: an unused working set expires after its lifetime; its summary stays.
Rule 3: a summary lists constraints, decisions and questions in short, and only the names of drafts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bot.core.clock import Clock, format_time
from bot.core.errors import MemoryRefused
from bot.core.i18n import N_, _
from bot.memory.records.compartment_records import (
    MAX_WORKING_SET_HOURS,
    WORKING_FIELDS,
    Problem,
    WorkingSet,
)
from bot.memory.records.compartment_text import render_context_packet
from bot.memory.records.episodes import episode_entry
from bot.memory.records.record_json import parse_utc_time
from bot.memory.session.scope.scope_memory import Change, ScopeMemory
from bot.tape.entries import TapeEntry

MAX_LIFETIME_HOURS = MAX_WORKING_SET_HOURS
MAX_WORKING_SET_BYTES = 16_000
"""Size limit of one working set, in bytes of JSON."""

_MOST_ITEMS = 50
MAX_PACKET_CHARS = 4_000
"""Size limit of a context packet, in characters."""

_LONGEST_SUMMARY = 1_500
_SHOWN = 200
_PARTS = {"assumptions": "a", "local_decisions": "d"}
"""Key of the text in the items of each list field."""

_WAITING = frozenset({"until", "fact"})
"""Keys of an assumption that expires, or waits for a person."""

_SUMMARY_LINES = {
    "must": N_("must: {text}"),
    "must not": N_("must not: {text}"),
    "decided": N_("decided: {text}"),
    "assumed": N_("assumed: {text}"),
    "open": N_("open: {text}"),
    "drafts": N_("drafts: {text}"),
}
"""The lines of a summary by their labels, which a tape keeps in English."""

WorkingSetEdit = Callable[[WorkingSet], dict[str, Any]]
"""Returns the fields that change, given a working set."""


class WorkingSetStore:
    """Read and change the working sets of one session.

    Args:
        own: The session's own scope, whose tape holds them.
        clock: The current time, for expiry.
        hours: Default lifetime of an unused working set, in hours; at most 24.
    """

    def __init__(self, own: ScopeMemory, clock: Clock, hours: float = 2.0) -> None:
        self._own = own
        self._clock = clock
        self._hours = min(hours, MAX_LIFETIME_HOURS)
        self._packets: dict[str, tuple[WorkingSet, str]] = {}

    async def create(self, problem_id: str, ttl_hours: float | None = None) -> WorkingSet:
        """Return a problem's working set; a new one lives ``ttl_hours`` without use, at most 24.

        Raises:
            MemoryRefused: There is no such problem, or the lifetime is not positive.
        """
        if ttl_hours is not None and not ttl_hours > 0:  # Also refuses NaN.
            raise MemoryRefused(_("a working set lives for more than 0 hours, at most 24"))
        return await self.change(problem_id, lambda _: {}, ttl_hours=ttl_hours)

    async def get(self, problem_id: str) -> WorkingSet | None:
        """Return a problem's working set; None if it has none, or it expired."""
        found = self._own.compartments.working_set(problem_id, self._clock.now())
        known = self._packets.get(problem_id)
        return found if found is None or known is None else replace(found, context_packet=known[1])

    async def compile(
        self, problem_id: str, *, pending: Container[int] = (), most: int = MAX_PACKET_CHARS
    ) -> str:
        """Return a problem's context packet in at most ``most`` characters; empty if it has no notes.

        Assumptions about facts that are no longer ``pending`` are settled, and left out.

        Raises:
            MemoryRefused: Its recorded working set belongs to another problem.
        """
        await self.isolate(problem_id)
        now, compartments = self._clock.now(), self._own.compartments
        problem, working = compartments.problem(problem_id), await self.get(problem_id)
        if problem is None or working is None or working.empty:
            return ""
        held = [
            {name: value for name, value in one.items() if name not in _WAITING}
            for one in working.assumptions
            if _is_open(one, pending, now)
        ]
        # Cached, because each step of a turn asks for it.
        working = replace(
            working, assumptions=held, expires_at=working.created_at, context_packet=""
        )
        known = self._packets.get(problem_id)
        if known is None or known[0] != working:
            known = (working, render_context_packet(working, problem.name, most))
            self._packets[problem_id] = known
        return known[1]

    async def update(self, problem_id: str, *, cause: str = "", **fields: Any) -> None:
        """Replace fields of a problem's working set; see ``change``."""
        await self.change(problem_id, lambda _: fields, cause=cause)

    async def add(self, problem_id: str, name: str, item: Any, *, cause: str = "") -> None:
        """Add an item to a list of a problem's working set, or entries to an object; see ``change``."""

        def more(working: WorkingSet) -> dict[str, Any]:
            old = getattr(working, name, None)
            if isinstance(old, dict):
                return {name: {**old, **item}}
            if isinstance(old, list):
                return {name: old if item in old else [*old, item]}
            return {name: item}

        await self.change(problem_id, more, cause=cause)

    async def change(
        self,
        problem_id: str,
        edit: WorkingSetEdit,
        *,
        cause: str = "",
        ttl_hours: float | None = None,
    ) -> WorkingSet:
        """Change a problem's working set, creating one if needed; a cause takes effect once.

        Args:
            problem_id: The problem.
            edit: Returns the new fields; it may be called more than once.
            cause: Key of the cause.
            ttl_hours: Lifetime of a new one without use.

        Raises:
            MemoryRefused: There is no such problem, or a field is unknown, malformed or too large;
                nothing was changed.
        """

        def make(_version: int) -> Change[WorkingSet]:
            compartments, now = self._own.compartments, self._clock.now()
            if compartments.problem(problem_id) is None:
                raise MemoryRefused(_("there is no problem {problem_id}", problem_id=problem_id))
            known = compartments.working_set(problem_id, now)
            working = known or self._fresh(problem_id, now, ttl_hours)
            fields = edit(working)
            if known and all(fields[one] == getattr(known, one, None) for one in fields):
                return Change(known)
            check_fields(fields)
            expires = now + timedelta(hours=working.ttl_hours)
            working = replace(working, **fields, expires_at=max(expires, working.expires_at))
            check_size(working)
            return Change(working, {"working": [working.as_json()]})

        # An expired working set must leave its summary before it is replaced.
        await self.expire_stale()
        done = await self._own.change(make, cause, problem=problem_id)
        known = self._own.compartments.working_set(problem_id, self._clock.now())
        return done or known or await self.change(problem_id, edit, ttl_hours=ttl_hours)

    async def expire_stale(self) -> int:
        """End expired working sets, exporting their summaries; return how many ended."""

        def make(_version: int) -> Change[int]:
            stale, problems, entries = self._stale(), list[Any](), list[TapeEntry]()
            for one in stale:
                problem = self._own.compartments.problem(one.problem_id)
                summary = summarize_working_set(one)
                if problem is not None and summary:
                    known = append_summary(summary, problem.summary)
                    problems.append(replace(problem, summary=known).as_json())
                    entries.append(summary_episode(one.problem_id, summary, "expired"))
            data: dict[str, Any] = {"expired": [one.problem_id for one in stale]}
            data |= {"problems": problems} if problems else {}
            return Change(len(stale), data if stale else None, entries)

        return await self._own.change(make) or 0 if self._stale() else 0

    def _stale(self) -> list[WorkingSet]:
        compartments, now = self._own.compartments, self._clock.now()
        sets = compartments.working_sets.values()
        return [one for one in sets if now >= compartments.expiry_of(one)]

    async def export_summary(self, problem_id: str) -> str:
        """Return the summary of a problem's working sets, past and present; empty if none."""
        problem = self._own.compartments.problem(problem_id)
        return problem_summary(problem) if problem is not None else ""

    async def isolate(self, problem_id: str) -> None:
        """Check that a problem's working set is its own.

        Raises:
            MemoryRefused: It is recorded under another problem's name.
        """
        found = self._own.compartments.working_sets.get(problem_id)
        if found is not None and found.problem_id != problem_id:
            raise MemoryRefused(
                _(
                    "the working set of {problem_id} is that of {other}: it is not shown",
                    problem_id=problem_id,
                    other=found.problem_id,
                )
            )

    def _fresh(self, problem_id: str, now: datetime, ttl_hours: float | None) -> WorkingSet:
        hours = min(self._hours if ttl_hours is None else ttl_hours, MAX_LIFETIME_HOURS)
        expires = now + timedelta(hours=hours)
        return WorkingSet(problem_id, self._own.name, now, expires, ttl_hours=hours)


def expiring_assumption(
    text: str, confidence: float, until: datetime, **more: Any
) -> dict[str, Any]:
    """Return an assumption that holds until a time, such as a contested write."""
    return {"a": text, "confidence": confidence, "until": format_time(until), **more}


def _is_open(assumption: dict[str, Any], pending: Container[int], now: datetime) -> bool:
    """Say whether an assumption is in time, and its fact, if any, still pending."""
    fact, until = assumption.get("fact"), parse_utc_time(assumption.get("until"))
    return (fact is None or fact in pending) and (until is None or now < until)


def check_fields(fields: dict[str, Any]) -> None:
    """Check that fields are valid for a working set.

    Raises:
        MemoryRefused: A field is unknown, malformed, or too long.
    """
    for name, value in fields.items():
        if name not in WORKING_FIELDS:
            known = ", ".join(WORKING_FIELDS)
            raise MemoryRefused(
                _("a working set has no {field}; it has {fields}", field=repr(name), fields=known)
            )
        shape = dict if name in ("constraints", "partial_artifacts") else list
        if not isinstance(value, shape):
            raise MemoryRefused(
                _("{field} of a working set must be a {kind}", field=name, kind=shape.__name__)
            )
        if len(value) > _MOST_ITEMS:
            raise MemoryRefused(
                _(
                    "{field} of a working set would pass {limit}: drop some first",
                    field=name,
                    limit=_MOST_ITEMS,
                )
            )
        _check_items(name, value)


def _check_items(name: str, value: Any) -> None:
    """Check that items have the parts that are read."""
    part = _PARTS.get(name)
    if part is not None and any(
        not isinstance(one, dict) or not isinstance(one.get(part), str) for one in value
    ):
        raise MemoryRefused(
            _("each of {field} must have a text {part}", field=name, part=repr(part))
        )
    if name == "open_questions" and not _are_texts(value):
        raise MemoryRefused(_("open_questions must be texts"))
    if name == "constraints" and any(not _are_texts(one) for one in value.values()):
        raise MemoryRefused(_("constraints must be lists by name: must, must_not"))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def check_size(working: WorkingSet) -> None:
    """Check that a working set is not too large.

    Raises:
        MemoryRefused: It is too large, or something in it is not JSON.
    """
    try:
        size = len(json.dumps(working.as_json(), ensure_ascii=False).encode("utf-8", "replace"))
    except (TypeError, ValueError, RecursionError) as error:
        raise MemoryRefused(_("a working set holds JSON only ({error})", error=error)) from error
    if size > MAX_WORKING_SET_BYTES:
        raise MemoryRefused(
            _(
                "the working set of {problem_id} would pass {limit} bytes: shorten its drafts",
                problem_id=working.problem_id,
                limit=MAX_WORKING_SET_BYTES,
            )
        )


def summarize_working_set(working: WorkingSet | None) -> str:
    """Return a summary of a working set, one line per field of ``_SUMMARY_LINES``; empty if it holds nothing."""
    if working is None or working.empty:
        return ""
    must, must_not = (working.constraints.get(name) for name in ("must", "must_not"))
    decided = [_reasoned(one) for one in _readable(working, "local_decisions")]
    lines = [
        ("must", must),
        ("must not", must_not),  # for the tape
        ("decided", decided),
        # Contested assumptions expire, or wait for a person.
        (
            "assumed",
            [one["a"] for one in _readable(working, "assumptions") if not one.keys() & _WAITING],
        ),
        ("open", working.open_questions),
        ("drafts", list(working.partial_artifacts)),
    ]
    return "\n".join(f"{name}: {'; '.join(_shortened(found))}" for name, found in lines if found)


def problem_summary(problem: Problem) -> str:
    """Return the summary of a problem's live working set, followed by those that ended."""
    return append_summary(summarize_working_set(problem.working_set), problem.summary)


def translate_summary(summary: str) -> str:
    """Return a recorded summary with its labels in the current language."""
    return "\n".join(map(_translated_line, summary.split("\n")))


def append_summary(new: str, old: str) -> str:
    """Put a new summary before an old one, without repeated lines and within the size limit."""
    repeated = frozenset(new.splitlines())
    kept = [line for line in old.splitlines() if line not in repeated]
    return "\n".join([*([new] if new else []), *kept])[:_LONGEST_SUMMARY]


def summary_episode(problem_id: str, summary: str, why: str) -> TapeEntry:
    """Return the episode that keeps a working set's summary."""
    content = {"text": summary, "why": why}
    return episode_entry("summary", content, problem=problem_id, tags=["export"])


def _translated_line(line: str) -> str:
    label, _colon, items = line.partition(": ")
    message = _SUMMARY_LINES.get(label)
    return line if message is None else _(message, text=items)


def _readable(working: WorkingSet, name: str) -> list[dict[str, Any]]:
    """Return the items that have their text; an imported tape may hold others."""
    return [one for one in getattr(working, name) if _PARTS[name] in one]


def _reasoned(decision: dict[str, Any]) -> str:
    why = decision.get("why")
    return f"{decision.get('d')} ({why})" if why else str(decision.get("d"))


def _shortened(texts: list[Any]) -> list[str]:
    found = [" ".join(str(text).split()) for text in texts]
    return [one if len(one) <= _SHOWN else f"{one[:_SHOWN].rstrip()}…" for one in found]
