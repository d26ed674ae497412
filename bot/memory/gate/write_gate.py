"""The write gate: decide which compartment a write may go to. Pure.

The rules and thresholds are those of the memory bus seed. Signals are computed from provenance
(``batch_decision.py``), not reported by the writer.

Rule 1: the larger the blast radius, the more confidence is needed.
Rule 2: a contested write stays in the working set, pending, until a person decides.
Rule 3: what does not serve the priorities is not written to semantic synthesis.
Rule 4: what is not grounded is logged, not concluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from bot.core.reasons import Reason

Compartment = Literal["working", "shared", "episodic", "semantic"]
ConflictLevel = Literal["none", "low", "medium", "high"]
BlastRadius = Literal["minimal", "moderate", "severe"]


@dataclass(frozen=True, slots=True)
class WriteSignals:
    """Signals for and against a write.

    Attributes:
        progress_delta: How much is learned, 0 to 1.
        conflict_level: Conflict with current beliefs.
        source_quality: How well the write is grounded, 0 to 1.
        alignment_score: Relevance to the priorities, 0 to 1.
        blast_radius: How much damage a wrong write does.
    """

    progress_delta: float = 1.0
    conflict_level: ConflictLevel = "none"
    source_quality: float = 1.0
    alignment_score: float = 1.0
    blast_radius: BlastRadius = "minimal"


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write to a compartment other than the working set.

    Attributes:
        source_hrm: Name of the writer.
        problem_id: The problem that the write belongs to; None if there is none.
        target_compartment: The compartment asked for.
        data: The record; its ``confidence`` is compared with the threshold.
        signals: Signals computed from provenance.
    """

    source_hrm: str
    problem_id: str | None
    target_compartment: Compartment
    data: dict[str, Any]
    signals: WriteSignals


@dataclass(frozen=True, slots=True)
class WriteDecision:
    """The gate's decision on a write.

    Attributes:
        approved: The write is stored, perhaps in another compartment.
        target_compartment: Where it is stored; None if it is not.
        confidence_threshold: The confidence that was required.
        expiry: When the write expires; None if it does not.
        reason: The reason.
    """

    approved: bool
    target_compartment: Compartment | None
    confidence_threshold: float
    expiry: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class GateThresholds:
    """Thresholds of the gate; the defaults are the seed's.

    Attributes:
        severe: Confidence required if a mistake would affect everybody.
        moderate: Confidence required if a mistake would affect a person in all their chats.
        minimal: Confidence required if a mistake would affect only this memory.
        grounded: Source quality below which a write is logged, not concluded.
        aligned: Alignment below which nothing is synthesised.
        pending_hours: Hours that a write stays in a working set.
    """

    severe: float = 0.9
    moderate: float = 0.7
    minimal: float = 0.5
    grounded: float = 0.6
    aligned: float = 0.5
    pending_hours: float = 2.0


class WriteGate:
    """Decide on writes; holds no state.

    Args:
        thresholds: The thresholds; by default the seed's.
    """

    def __init__(self, thresholds: GateThresholds | None = None) -> None:
        self.thresholds = thresholds or GateThresholds()

    def evaluate(self, request: WriteRequest, now: datetime | None = None) -> WriteDecision:
        """Return the decision.

        Args:
            request: The requested write.
            now: The current time, to compute the expiry.
        """
        signals, lines = request.signals, self.thresholds
        needed: float = getattr(lines, signals.blast_radius)
        if signals.conflict_level in ("medium", "high"):
            expiry = self._expiry("working", now)
            reason = Reason("contested")
            return WriteDecision(True, "working", needed, expiry, reason)
        if signals.alignment_score < lines.aligned and request.target_compartment == "semantic":
            return WriteDecision(False, None, 0.0, None, Reason("not_aligned"))
        if signals.source_quality < lines.grounded:
            reason = Reason("ungrounded")
            return WriteDecision(True, "episodic", 0.0, None, reason)
        confidence = request.data.get("confidence", 1.0)
        if confidence < needed:
            reason = Reason("unsure", confidence=confidence, needed=needed)
            return WriteDecision(True, "episodic", needed, None, reason)
        expiry = self._expiry(request.target_compartment, now)
        return WriteDecision(True, request.target_compartment, needed, expiry, Reason("approved"))

    def _expiry(self, target: Compartment, now: datetime | None) -> datetime | None:
        """Return when a write expires: only working-set writes do."""
        if target != "working" or now is None:
            return None
        return now + timedelta(hours=self.thresholds.pending_hours)


ASKED_CONFIDENCE = 0.95
"""Confidence of what a person asked to write."""

_LEARNED = 0.8


def write_confidence(by: str, quality: float) -> float:
    """Return the confidence of a write; unless a person asked for it, its sources limit it.

    Args:
        by: Author of the write.
        quality: Quality of its sources.
    """
    return ASKED_CONFIDENCE if by == "person" else min(_LEARNED, quality)


_CONFLICTS: tuple[ConflictLevel, ...] = ("none", "low", "medium", "high")
_RADII: tuple[BlastRadius, ...] = ("minimal", "moderate", "severe")


def worst_signals(computed: WriteSignals, reported: WriteSignals | None) -> WriteSignals:
    """Combine computed and reported signals, taking the worse of each: a report never helps."""
    if reported is None:
        return computed
    return WriteSignals(
        progress_delta=min(computed.progress_delta, reported.progress_delta),
        conflict_level=max(computed.conflict_level, reported.conflict_level, key=_CONFLICTS.index),
        source_quality=min(computed.source_quality, reported.source_quality),
        alignment_score=min(computed.alignment_score, reported.alignment_score),
        blast_radius=max(computed.blast_radius, reported.blast_radius, key=_RADII.index),
    )
