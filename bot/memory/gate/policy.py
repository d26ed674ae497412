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
Conflict = Literal["none", "low", "medium", "high"]
Radius = Literal["minimal", "moderate", "severe"]

_PENDING_HOURS = 2


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
    conflict_level: Conflict = "none"
    source_quality: float = 1.0
    alignment_score: float = 1.0
    blast_radius: Radius = "minimal"


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


_THRESHOLDS: dict[Radius, float] = {"severe": 0.9, "moderate": 0.7, "minimal": 0.5}
_GROUNDED = 0.6
_ALIGNED = 0.5


class WriteGate:
    """Decides on writes; holds no state."""

    def evaluate(self, request: WriteRequest, now: datetime | None = None) -> WriteDecision:
        """Return the decision.

        Args:
            request: The write.
            now: The current time, for what expires.
        """
        signals = request.signals
        needed = _THRESHOLDS[signals.blast_radius]
        if signals.conflict_level in ("medium", "high"):
            expiry = now + timedelta(hours=_PENDING_HOURS) if now is not None else None
            reason = "it contradicts what another source said; a person must decide"
            return WriteDecision(True, "working", needed, expiry, reason)
        if signals.alignment_score < _ALIGNED and request.target_compartment == "semantic":
            return WriteDecision(False, None, 0.0, None, "it does not serve the priorities")
        if signals.source_quality < _GROUNDED:
            reason = "no words of a person carry it; it is logged, not believed"
            return WriteDecision(True, "episodic", 0.0, None, reason)
        confidence = request.data.get("confidence", 1.0)
        if confidence < needed:
            reason = f"its confidence of {confidence:.2f} is below the {needed:.1f} needed here"
            return WriteDecision(True, "episodic", needed, None, reason)
        return WriteDecision(True, request.target_compartment, needed, None, "approved")
