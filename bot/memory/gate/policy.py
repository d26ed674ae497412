"""The write gate: what may persist where. Pure.

The rules and thresholds are those of the memory bus seed; signals are computed from provenance
(``deciding.py``), not reported by whoever writes.

Rule 1: the larger the blast radius, the more confidence is needed.
Rule 2: what is contested stays with the problem at hand, pending, until a person decides.
Rule 3: what does not serve the priorities is not synthesised.
Rule 4: what is not grounded is logged, not concluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

Compartment = Literal["working", "shared", "episodic", "semantic"]
ConflictLevel = Literal["none", "low", "medium", "high"]
BlastRadius = Literal["minimal", "moderate", "severe"]


@dataclass(frozen=True, slots=True)
class WriteSignals:
    """What speaks for and against a write.

    Attributes:
        progress_delta: 0 to 1, how much is learned.
        conflict_level: With what is believed.
        source_quality: 0 to 1, groundedness.
        alignment_score: 0 to 1, relevance to priorities.
        blast_radius: How damaging it is if wrong.
    """

    progress_delta: float = 1.0
    conflict_level: ConflictLevel = "none"
    source_quality: float = 1.0
    alignment_score: float = 1.0
    blast_radius: BlastRadius = "minimal"


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write beyond the working set.

    Attributes:
        source_hrm: Who writes.
        problem_id: The problem that it belongs to; None where there is none.
        target_compartment: Where it should go.
        data: What is written; ``confidence`` is compared with the threshold.
        signals: Computed from provenance.
    """

    source_hrm: str
    problem_id: str | None
    target_compartment: Compartment
    data: dict[str, Any]
    signals: WriteSignals


@dataclass(frozen=True, slots=True)
class WriteDecision:
    """What becomes of it.

    Attributes:
        approved: It is written, though perhaps elsewhere.
        target_compartment: Where; None where it is not written.
        confidence_threshold: What was needed.
        expiry: When it ends by itself.
        reason: In plain words.
    """

    approved: bool
    target_compartment: Compartment | None
    confidence_threshold: float
    expiry: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class GateThresholds:
    """Where the gate draws its lines; the defaults are the seed's.

    Attributes:
        severe: Confidence that a write needs whose mistake would concern everybody.
        moderate: The same of one that would concern a person in all their chats.
        minimal: The same of one that would concern this memory alone.
        grounded: Source quality below which something is logged, and not concluded.
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
    """Decides on writes; holds no state.

    Args:
        thresholds: Where it draws its lines.
    """

    def __init__(self, thresholds: GateThresholds | None = None) -> None:
        self.thresholds = thresholds or GateThresholds()

    def evaluate(self, request: WriteRequest, now: datetime | None = None) -> WriteDecision:
        """Return the decision.

        Args:
            request: The write.
            now: The current time, for what expires.
        """
        signals, lines = request.signals, self.thresholds
        needed: float = getattr(lines, signals.blast_radius)
        if signals.conflict_level in ("medium", "high"):
            expiry = self._expiry("working", now)
            reason = "it contradicts what another source said; a person must decide"
            return WriteDecision(True, "working", needed, expiry, reason)
        if signals.alignment_score < lines.aligned and request.target_compartment == "semantic":
            return WriteDecision(False, None, 0.0, None, "it does not serve the priorities")
        if signals.source_quality < lines.grounded:
            reason = "no words of a person carry it; it is logged, not believed"
            return WriteDecision(True, "episodic", 0.0, None, reason)
        confidence = request.data.get("confidence", 1.0)
        if confidence < needed:
            reason = f"its confidence of {confidence:.2f} is below the {needed:.1f} needed here"
            return WriteDecision(True, "episodic", needed, None, reason)
        expiry = self._expiry(request.target_compartment, now)
        return WriteDecision(True, request.target_compartment, needed, expiry, "approved")

    def _expiry(self, target: Compartment, now: datetime | None) -> datetime | None:
        """Return when a write ends by itself: in a working set nothing stays."""
        if target != "working" or now is None:
            return None
        return now + timedelta(hours=self.thresholds.pending_hours)


_CONFLICTS: tuple[ConflictLevel, ...] = ("none", "low", "medium", "high")
_RADII: tuple[BlastRadius, ...] = ("minimal", "moderate", "severe")


def worst_signals(computed: WriteSignals, reported: WriteSignals | None) -> WriteSignals:
    """Return computed signals, made worse by what a writer reports: never better."""
    if reported is None:
        return computed
    return WriteSignals(
        progress_delta=min(computed.progress_delta, reported.progress_delta),
        conflict_level=max(computed.conflict_level, reported.conflict_level, key=_CONFLICTS.index),
        source_quality=min(computed.source_quality, reported.source_quality),
        alignment_score=min(computed.alignment_score, reported.alignment_score),
        blast_radius=max(computed.blast_radius, reported.blast_radius, key=_RADII.index),
    )
