"""Render facts, history, problems, references and beliefs as Markdown files. Pure.

Rule 1: a record is a section under its name; people's text is unchanged, without markup.
Rule 2: erased and expired records are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any

from bot.core.i18n import _, pgettext
from bot.core.patterns import LazyPattern
from bot.core.reasons import reason_text
from bot.memory.records.attachments import one_line
from bot.memory.records.compartment_records import (
    Problem,
    SharedReference,
    SynthesizedPattern,
    WorkingSet,
)
from bot.memory.records.compartments import Compartments
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import (
    format_timestamp,
    message_content,
    shown_entry_time,
    speaker_label,
)
from bot.memory.session.bus.working_set import translate_summary
from bot.memory.session.state.fact_markdown import group_by_subject
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM

_EXCERPT = 200
_TIME = "%Y-%m-%d %H:%M"


def problems_md(compartments: Compartments, now: datetime, timezone: tzinfo) -> str:
    """Render ``problems.md``: each problem with its state, summary and working set."""
    names = dict.fromkeys([GENERAL_PROBLEM, *compartments.problems])
    problems = [problem for problem in map(compartments.problem, names) if problem is not None]
    parts = [_problem(problem, compartments, now, timezone) for problem in problems]
    return "\n\n".join(parts) + "\n"


def _problem(problem: Problem, compartments: Compartments, now: datetime, timezone: tzinfo) -> str:
    active = problem.problem_id == compartments.active_problem
    state = "active" if active else "paused" if problem.state == "active" else problem.state
    head = (
        problem.name
        if problem.problem_id == GENERAL_PROBLEM
        else f"{_line(problem.name)} ({problem.problem_id})"
    )
    told = [_("{state}, priority {number}", state=_problem_state(state), number=problem.priority)]
    if problem.problem_id in compartments.problems:
        made, used = problem.created_at, problem.last_active
        told += [
            _("made {time}", time=f"{made.astimezone(timezone):{_TIME}}"),
            _("last worked on {time}", time=f"{used.astimezone(timezone):{_TIME}}"),
        ]
    parts = [f"# {head}", ", ".join(told)]
    if problem.summary:
        parts.append(translate_summary(problem.summary))
    working = compartments.working_set(problem.problem_id, now)
    if working is not None and not working.empty:
        until = working.expires_at.astimezone(timezone)
        heading = _("Working set, until {time}", time=f"{until:{_TIME}}")
        parts += [f"## {heading}", "\n".join(_items(working))]
    return "\n\n".join(parts)


def _problem_state(state: str) -> str:
    return {
        "active": pgettext("problem", "active"),
        "paused": pgettext("problem", "paused"),
        "background": pgettext("problem", "in the background"),
        "completed": pgettext("problem", "done"),
    }[state]


def _items(working: WorkingSet) -> Iterator[str]:
    for kind, some in working.constraints.items():
        yield from (f"- {_line(kind).replace('_', ' ')}: {_told(one)}" for one in some)
    for assumed in working.assumptions:
        sure = assumed.get("confidence")
        told = _("assumed: {text}", text=_told(assumed.get("a")))
        yield f"- {told}{f' ({sure})' if sure is not None else ''}"
    for open_question in working.open_questions:
        told = _("open: {text}", text=_told(open_question))
        yield f"- {told}"
    for local_decision in working.local_decisions:
        why = local_decision.get("why")
        decided = _told(local_decision.get("d"))
        told = (
            _("decided: {text}, because {why}", text=decided, why=_told(why))
            if why
            else _("decided: {text}", text=decided)
        )
        yield f"- {told}"
    for name, draft in working.partial_artifacts.items():
        told = _("draft {name}: {text}", name=_line(name), text=_told(draft))
        yield f"- {told}"


def reference_md(versions: Iterable[tuple[SharedReference, str]]) -> str:
    """Render a section of ``references.md``."""
    listed = list(versions)
    [current, cited], older = listed[0], listed[1:]
    lines = [f"# {_line(current.key)}", "", _value(current), "", cited]
    lines += (
        ["", *(f"- {_value(reference)} {citation}" for reference, citation in older)]
        if older
        else []
    )
    return "\n".join(lines) + "\n\n"


def _value(reference: SharedReference) -> str:
    return _("(removed)") if reference.value is None else _told(reference.value)


def belief_md(
    belief: SynthesizedPattern,
    facts: FactFold,
    entries: Mapping[str, tuple[str, TapeEntry] | None],
    now: datetime,
    timezone: tzinfo,
) -> str:
    """Render a section of ``beliefs.md``."""
    more = [f"{key}: {_told(held)}" for key, held in belief.content.items() if key != "text"]
    sure = f"{belief.confidence_at(now):.2f}"
    head = _(
        "{kind}, {status}, confidence {number}",
        kind=_belief_kind(belief.pattern_type),
        status=_belief_state(belief.status),
        number=sure,
    )
    parts = [f"# {belief.id}: {head}", "\n".join([_told(belief.text), *more])]
    parts += [f"({_line(reason_text(belief.reason))})"] if belief.reason else []
    rests = [f"- {_ground(ground, facts, entries, timezone)}" for ground in belief.evidence_ids]
    return "\n\n".join([*parts, "\n".join([_("Evidence:"), *rests])]) + "\n\n"


def _belief_kind(kind: str) -> str:
    return {
        "conclusion": pgettext("belief", "conclusion"),
        "heuristic": pgettext("belief", "heuristic"),
        "policy": pgettext("belief", "policy"),
        "summary": pgettext("belief", "summary"),
        "fact": pgettext("belief", "fact"),
    }[kind]


def _belief_state(status: str) -> str:
    return {
        "active": pgettext("belief", "believed"),
        "stale": pgettext("belief", "no longer used"),
        "retired": pgettext("belief", "ended"),
    }[status]


def _ground(
    ground: str,
    facts: FactFold,
    entries: Mapping[str, tuple[str, TapeEntry] | None],
    timezone: tzinfo,
) -> str:
    gone = _("(gone)")
    if ground.isascii() and ground.isdecimal():
        fact = facts.get(int(ground))
        text = _line(fact.text) if fact is not None else gone
        return _("fact {number}: {text}", number=ground, text=text)
    if ground in facts.compartments.patterns:
        return f"{ground}: {_line(facts.compartments.patterns[ground].text) or gone}"
    found = entries.get(ground)
    if found is None:
        return ground
    entry = found[1]
    if is_erased(entry):
        return _("{evidence}: (erased)", evidence=ground)
    words = one_line(message_content(entry) or str(entry.data.get("arguments") or ""), _EXCERPT)
    told = f": {words}" if words else ""
    return f"{ground} ({shown_entry_time(entry, timezone)}, {speaker_label(entry)}){told}"


def _told(value: Any) -> str:
    """Return a value as text on one line."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "; ".join(map(_line, value))
    return _line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _line(text: str) -> str:
    return " ".join(text.split())


NOTICE = (
    "<!-- tapebot writes this file from its tapes. It never reads this file, and overwrites your "
    "changes. -->"
)
"""The first line of generated files that are kept up to date."""

OTHER = "Other"
"""The heading of facts without a subject."""

_DATED = LazyPattern(r"\[\d{4}-\d\d-\d\d")
_BLANKS = LazyPattern(r"\n\s*\n")


def memory_md(facts: Iterable[Fact], before_facts: str = "") -> str:
    """Render ``MEMORY.md``."""
    sections: dict[str, list[str]] = {}
    for subject, some in group_by_subject(facts).items():
        lines = sections.setdefault(_heading(subject), [])
        lines += [f"- {' '.join(fact.text.split())}" for fact in some]
    ordered = sorted(sections, key=lambda heading: heading == OTHER)
    parts = [f"# {heading}\n\n" + "\n".join(sections[heading]) for heading in ordered]
    if before_facts.strip():
        parts.append(before_facts.strip())
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
        text = (
            f"[{format_timestamp(entry.data.get('from') or entry.meta.get('ts'), timezone)}] {text}"
        )
    return f"{text}\n\n"


def _heading(subject: str) -> str:
    words = " ".join(subject.split()).lstrip("# ")
    return words[:1].upper() + words[1:] if words else OTHER
