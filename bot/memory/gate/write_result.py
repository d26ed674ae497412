"""Results of writes beyond the working set, and their JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from bot.memory.gate.write_gate import Compartment, WriteDecision, WriteSignals
from bot.memory.records.episodes import episode_id
from bot.memory.records.record_json import RecordJson
from bot.tape.entries import TapeEntry


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of a write.

    Attributes:
        decision: The gate's decision.
        id: The new version, the pattern's id, or the id of the episode that logs the write; empty if
            nothing was written.
        requested: The compartment that was requested.
    """

    decision: WriteDecision
    id: str
    requested: Compartment

    def __bool__(self) -> bool:
        """Say whether it was written to the requested compartment."""
        return bool(self.id) and self.decision.target_compartment == self.requested

    @property
    def is_assumption(self) -> bool:
        """Whether it waits as an assumption of the active problem."""
        return self.decision.target_compartment == "working"

    @property
    def explanation(self) -> str:
        """Why it is not in the requested compartment, in sentences for a model."""
        noted = (
            " It is noted as an assumption of the problem at hand." if self.is_assumption else ""
        )
        return f"{self.decision.reason!s}.{noted}"


@dataclass(frozen=True, slots=True)
class ApprovedWrite:
    """A write that the gate approved for the requested compartment.

    Attributes:
        decision: The gate's decision.
        confidence: The confidence that the gate compared with its threshold.
        record: The decision as JSON, for the entry.
    """

    decision: WriteDecision
    confidence: float = 1.0
    record: dict[str, Any] = field(default_factory=dict)


_DECISIONS = RecordJson(WriteDecision)


def decision_record(decision: WriteDecision, signals: WriteSignals, by: str) -> dict[str, Any]:
    """Return a decision as JSON for its entry."""
    return {"decision": _DECISIONS.write(decision), "signals": asdict(signals), "by": by}


def parse_write_result(tape: str, entry: TapeEntry, requested: Compartment) -> WriteResult | None:
    """Read the result of a write from a ``memory.bus`` entry; None if it has no decision."""
    decision = _DECISIONS.read(entry.data.get("decision"))
    if decision is None:
        return None
    for name, key in (("references", "version"), ("patterns", "id")):
        records = entry.data.get(name)
        if isinstance(records, list) and records and isinstance(records[0], dict):
            return WriteResult(decision, str(records[0].get(key, "")), requested)
    return WriteResult(decision, episode_id(tape, entry.id + 1), requested)
