"""Read a session's memory from its tapes, and render it as Markdown files.

Rule 1: a record is a section under its name; people's text is unchanged, without markup.
Rule 2: erased and expired records are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from bot.core.errors import TapeNotFound
from bot.core.i18n import _, pgettext
from bot.core.patterns import LazyPattern
from bot.core.reasons import reason_text
from bot.memory.records import transcript
from bot.memory.records.attachments import one_line
from bot.memory.records.compartment_records import (
    Problem,
    SharedReference,
    SynthesizedPattern,
)
from bot.memory.records.episodes import entry_of
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.problem_notes import NOTE_KINDS, note_lines
from bot.memory.records.record_json import parse_utc_time
from bot.memory.records.tombstones import is_erased
from bot.memory.records.turn_marks import turn_start
from bot.memory.session.bus.working_set import translate_summary
from bot.memory.session.scope.scope_memory import load_facts
from bot.memory.session.state.fact_markdown import group_by_subject
from bot.memory.session.state.session_fold import SCOPE_EVENT
from bot.memory.session.state.zone_snapshot import MemorySnapshot, ZoneFold
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

NOTICE = (
    "<!-- tapebot writes this file from its tapes. It never reads this file, and overwrites your "
    "changes. -->"
)
"""The first line of generated files that are kept up to date."""

OTHER = "Other"
"""The heading of facts without a subject."""

_EXCERPT = 200
_NEVER = datetime.fromtimestamp(0, UTC)
_TIME = "%Y-%m-%d %H:%M"
_DATED = LazyPattern(r"\[\d{4}-\d\d-\d\d")
_BLANKS = LazyPattern(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """A session's memory: the facts of its home scope, its zone, the fold of its own tape, and counts."""

    session: str
    title: str | None
    home: str
    facts: FactFold
    zone: MemorySnapshot
    own: FactFold
    history: int
    messages: int
    timezone: tzinfo
    now: datetime


async def read_session_memory(
    store: TapeStore, session: str, timezone: tzinfo = UTC, now: datetime = _NEVER
) -> SessionMemory:
    """Read a session's memory from its whole tape in batches, without a running bot; write nothing."""
    zone, own, home, history, messages = ZoneFold(), FactFold(), session, 0, 0
    async with aclosing(read_batches(store, session)) as parts:
        async for entries in parts:
            for entry in entries:
                zone.apply(entry)
                own.apply(entry)
                messages += entry.kind == "message"
                history += bool(history_md(entry, UTC))
                if turn_start(entry) is not None and (at := parse_utc_time(entry.meta.get("ts"))):
                    # A working set stays valid while its problem is worked on.
                    own.compartments.last_used = at
                if entry.kind == "event" and entry.name == SCOPE_EVENT:
                    home = str(entry.data.get("home") or session)
    facts = own
    if home != session:
        try:
            facts = await load_facts(TapeService(store, home))
        except TapeNotFound:
            facts = FactFold()
    title = await store.get_title(session)
    counts = (history, messages)
    return SessionMemory(session, title, home, facts, zone.snapshot, own, *counts, timezone, now)


def memory_md(memory: SessionMemory) -> str:
    """Render ``MEMORY.md``: active facts, a line each, by subject."""
    sections: dict[str, list[str]] = {}
    for subject, some in group_by_subject(memory.facts.active()).items():
        words = _line(subject).lstrip("# ")
        lines = sections.setdefault(words[:1].upper() + words[1:] or OTHER, [])
        lines += [f"- {_line(fact.text)}" for fact in some]
    ordered = sorted(sections, key=lambda heading: heading == OTHER)
    parts = [f"# {heading}\n\n" + "\n".join(sections[heading]) for heading in ordered]
    # The zone's long-term memory counts only without facts, such as in a fork.
    if not memory.facts.last_change and memory.zone.long_term.strip():
        parts.append(memory.zone.long_term.strip())
    return "\n\n".join(parts) + "\n" if parts else ""


def history_md(entry: TapeEntry, timezone: tzinfo) -> str:
    """Render an entry as a paragraph of ``HISTORY.md``; empty for entries that are no history."""
    if entry.kind != "event" or entry.name != HISTORY_EVENT:
        return ""
    # A blank line would end the paragraph.
    text = _BLANKS.sub("\n", str(entry.data.get("entry") or "").strip())
    if not text:
        return ""
    if _DATED.match(text) is None:
        since = transcript.format_timestamp(
            entry.data.get("from") or entry.meta.get("ts"), timezone
        )
        text = f"[{since}] {text}"
    return f"{text}\n\n"


def problems_md(memory: SessionMemory) -> str:
    """Render ``problems.md``: each problem with its state, summary and notes."""
    compartments = memory.own.compartments
    names = dict.fromkeys([GENERAL_PROBLEM, *compartments.problems])
    problems = filter(None, map(compartments.problem, names))
    return "\n\n".join(_problem_md(problem, memory) for problem in problems) + "\n"


def _problem_md(problem: Problem, memory: SessionMemory) -> str:
    compartments, zone = memory.own.compartments, memory.timezone
    active = problem.problem_id == compartments.active_problem
    is_general = problem.problem_id == GENERAL_PROBLEM
    state = "active" if active else "paused" if problem.state == "active" else problem.state
    named = {"state": _problem_state(state), "number": problem.priority}
    told = [_("{state}, priority {number}", **named)]
    if not is_general:
        made, used = problem.created_at.astimezone(zone), problem.last_active.astimezone(zone)
        told.append(_("made {time}", time=f"{made:{_TIME}}"))
        told.append(_("last worked on {time}", time=f"{used:{_TIME}}"))
    name = problem.name if is_general else f"{_line(problem.name)} ({problem.problem_id})"
    parts = [f"# {name}", ", ".join(told)]
    if problem.summary:
        parts.append(translate_summary(problem.summary))
    working = compartments.working_set(problem.problem_id, memory.now)
    if working is not None and not working.empty:
        until = f"{working.expires_at.astimezone(zone):{_TIME}}"
        parts.append(f"## {_('Working set, until {time}', time=until)}")
        notes = [(kind, text) for kind in NOTE_KINDS for text in note_lines(working, kind)]
        parts.append("\n".join(f"- {kind}: {_line(text)}" for kind, text in notes))
    return "\n\n".join(parts)


def _problem_state(state: str) -> str:
    return {
        "active": pgettext("problem", "active"),
        "paused": pgettext("problem", "paused"),
        "background": pgettext("problem", "in the background"),
        "completed": pgettext("problem", "done"),
    }[state]


def reference_md(versions: Iterable[tuple[SharedReference, str]]) -> str:
    """Render a section of ``references.md``: a value with its older versions, and their sources."""
    (current, cited), *older = versions
    lines = [f"# {_line(current.key)}", "", _value(current), "", cited]
    lines += ["", *(f"- {_value(one)} {source}" for one, source in older)] if older else []
    return "\n".join(lines) + "\n\n"


def _value(reference: SharedReference) -> str:
    return _("(removed)") if reference.value is None else _told(reference.value)


async def belief_md(belief: SynthesizedPattern, memory: SessionMemory, store: TapeStore) -> str:
    """Render a section of ``beliefs.md``: a belief with its confidence and evidence."""
    kind = {
        "conclusion": pgettext("belief", "conclusion"),
        "heuristic": pgettext("belief", "heuristic"),
        "policy": pgettext("belief", "policy"),
        "summary": pgettext("belief", "summary"),
        "fact": pgettext("belief", "fact"),
    }[belief.pattern_type]
    status = {
        "active": pgettext("belief", "believed"),
        "stale": pgettext("belief", "no longer used"),
        "retired": pgettext("belief", "ended"),
    }[belief.status]
    number = f"{belief.confidence_at(memory.now):.2f}"
    named = {"kind": kind, "status": status, "number": number}
    head = _("{kind}, {status}, confidence {number}", **named)
    more = [f"{key}: {_told(held)}" for key, held in belief.content.items() if key != "text"]
    parts = [f"# {belief.id}: {head}", "\n".join([_told(belief.text), *more])]
    parts += [f"({_line(reason_text(belief.reason))})"] if belief.reason else []
    rests = [f"- {await _ground(ground, memory, store)}" for ground in belief.evidence_ids]
    return "\n\n".join([*parts, "\n".join([_("Evidence:"), *rests])]) + "\n\n"


async def _ground(ground: str, memory: SessionMemory, store: TapeStore) -> str:
    """Return what a belief rests on: a fact, another belief, or an entry of a tape."""
    patterns = memory.facts.compartments.patterns
    if ground.isascii() and ground.isdecimal():
        fact = memory.facts.get(int(ground))
        text = _line(fact.text) if fact is not None else _("(gone)")
        return _("fact {number}: {text}", number=ground, text=text)
    if ground in patterns:
        return f"{ground}: {_line(patterns[ground].text) or _('(gone)')}"
    if (found := await entry_of(store, ground)) is None:
        return ground
    entry = found[1]
    if is_erased(entry):
        return _("{evidence}: (erased)", evidence=ground)
    words = one_line(
        transcript.message_content(entry) or str(entry.data.get("arguments") or ""), _EXCERPT
    )
    told = f": {words}" if words else ""
    return f"{ground} ({transcript.shown_entry_time(entry, memory.timezone)}, {transcript.speaker_label(entry)}){told}"


def _told(value: Any) -> str:
    """Return a value as text on one line."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "; ".join(map(_line, value))
    return _line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _line(text: str) -> str:
    return " ".join(text.split())
