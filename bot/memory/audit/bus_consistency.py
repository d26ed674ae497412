"""Check the memory bus's beliefs, shared values, problems and decisions. Pure.

Rule 1: an active belief has evidence, all of which exists and some of which still holds.
Rule 2: the source of a shared value exists; if it was erased, the value is marked as stale.
Rule 3: at most one problem is marked as active, the one at hand; the entries that a problem
    resumes belong to that problem alone.
Rule 4: each decision of the gate has a reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.i18n import N_, _
from bot.memory.audit.findings import AuditedScope, AuditFinding, redacted_text
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import parse_episode_id
from bot.memory.records.tombstones import is_erased
from bot.memory.session.bus.shared_reference import current_references
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.tape.search import GENERAL_PROBLEM, problem_of

_LISTED = 10


def groundless_beliefs(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield active beliefs whose evidence is missing or no longer holds."""
    for belief in scope.fold.compartments.patterns.values():
        if belief.status != "active" or not belief.text:
            continue
        if (why := _groundless(scope, belief)) is not None:
            why = f"{belief.id}: {why}: {redacted_text(belief.text)}"
            do = _(
                "{first}, then {second}",
                first=f"/memory why {belief.id}",
                second=f"/memory drop {belief.id}",
            )
            yield AuditFinding("unsupported", scope.name, (), why, do)


def _groundless(scope: AuditedScope, pattern: SynthesizedPattern) -> str | None:
    """Return why a belief is unsupported; None if it is supported."""
    if not pattern.evidence_ids:
        return _("it has no evidence")
    states = {evidence_id: _state(scope, evidence_id) for evidence_id in pattern.evidence_ids}
    missing = [one for one, state in states.items() if state == "missing"]
    if missing:
        return _("its evidence {ids} does not exist", ids=", ".join(missing[:_LISTED]))
    if "holds" not in states.values():
        return _("none of its evidence is still valid")
    return None


def _state(scope: AuditedScope, evidence: str) -> str:
    """Return the state of a piece of evidence: ``holds``, ``ended`` or ``missing``."""
    if evidence.isascii() and evidence.isdecimal():
        fact = scope.fold.facts.get(int(evidence))
        return "missing" if fact is None else "holds" if fact.status == "active" else "ended"
    place = parse_episode_id(evidence)
    if place is not None:
        entry = scope.evidence.get(place)
        return "missing" if entry is None else "ended" if is_erased(entry) else "holds"
    if evidence.startswith("h"):
        # A summary, which may be on any session's tape, is not looked up.
        return "holds"
    other = scope.fold.compartments.patterns.get(evidence)
    return "missing" if other is None else "holds" if other.status == "active" else "ended"


def sourceless_references(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield shared values whose source is missing or erased, and which are not marked as stale."""
    for reference in current_references(scope.fold.compartments):
        place = parse_episode_id(reference.source)
        if place is None or reference.stale:
            continue
        entry = scope.evidence.get(place)
        if entry is not None and not is_erased(entry):
            continue
        told = (
            N_("the source of shared value {key} v{version}, {source}, does not exist")
            if entry is None
            else N_("the source of shared value {key} v{version}, {source}, was erased")
        )
        key = redacted_text(reference.key)
        why = _(told, key=key, version=reference.version, source=reference.source)
        ends = "unshare" if scope.name == WORKSPACE_SCOPE else "remove"
        do = _("/reference set KEY VALUE again, or {command}", command=f"/reference {ends} KEY")
        yield AuditFinding("unsupported", scope.name, (), why, do)


def problem_errors(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield mismatches of the active problem, and problems that hold another problem's data."""
    compartments = scope.fold.compartments
    active = {
        problem.problem_id
        for problem in compartments.problems.values()
        if problem.state == "active"
    }
    known = (
        compartments.active_problem in compartments.problems
        or compartments.active_problem == GENERAL_PROBLEM
    )
    if not known or not active <= {compartments.active_problem}:
        named = ", ".join(sorted(active - {compartments.active_problem})) or _("none")
        why = _(
            "{problem} is in use, but {others} marked as active",
            problem=compartments.active_problem,
            others=named,
        )
        yield AuditFinding(
            "problems", scope.name, (), why, f"/problem switch {compartments.active_problem}"
        )
    for key, working in compartments.working_sets.items():
        if key != working.problem_id:
            why = _(
                "the working set of {problem} belongs to {other}",
                problem=key,
                other=working.problem_id,
            )
            yield AuditFinding("problems", scope.name, (), why, f"/problem show {key}")
    for other in compartments.problems.values():
        others = {
            number: problem_of(entry)
            for number in other.resumable_entry_ids
            if (entry := scope.evidence.get((scope.name, number))) is not None
            and problem_of(entry) != other.problem_id
        }
        if others:
            which = ", ".join(
                _("{entry} of {problem}", entry=f"#{number}", problem=problem)
                for number, problem in others.items()
            )
            why = _(
                "{problem} restores messages of another problem: {entries}",
                problem=other.problem_id,
                entries=which,
            )
            do = _("switch to it and send /new, to start without them")
            yield AuditFinding("problems", scope.name, (), why, do)


def unexplained_decisions(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield decisions without a reason."""
    if scope.replay.entries_without_reason:
        which = ", ".join(f"#{one}" for one in scope.replay.entries_without_reason[:_LISTED])
        why = _("a decision has no reason: {entries}", entries=which)
        yield AuditFinding("bookkeeping", scope.name, (), why, f"tapebot tape show {scope.name}")
