"""Record types of the memory bus's compartments, named as in its seed, and their JSON. Pure.

All values are JSON, so that a tape can hold them; times are timezone-aware, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from bot.memory.records.record_json import RecordJson

NORTH_STARS_KEY = "north_stars"
PRIORITIES_KEY = "priorities"
GOAL_KEYS = (NORTH_STARS_KEY, PRIORITIES_KEY)
"""Keys in shared reference that hold goals, each a list of texts."""

ProblemState = Literal["active", "paused", "background", "completed"]
EpisodeType = Literal["turn", "tool", "retrieval", "decision", "delta", "summary"]
PatternType = Literal["conclusion", "heuristic", "policy", "summary", "fact"]
"""Kind of belief; ``fact`` stands for the facts of long-term memory, which have their own fold."""

WORKING_FIELDS = (
    "constraints",
    "assumptions",
    "open_questions",
    "partial_artifacts",
    "local_decisions",
)


MAX_WORKING_SET_HOURS = 24.0
"""Longest lifetime of an unused working set, in hours."""

_LONGEST_ID = 64


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """Notes for one problem that matter right now.

    Attributes:
        problem_id: The problem; no other problem reads it.
        lane_id: The session.
        created_at: Time of creation.
        expires_at: When it expires unless it is used before.
        constraints: ``{"must": [...], "must_not": [...]}``.
        assumptions: ``[{"a": text, "confidence": 0 to 1}]``. A contested one has ``"until"``, the
            time until which it holds, or ``"fact"``, the pending fact.
        open_questions: Questions as texts.
        partial_artifacts: Drafts by name.
        local_decisions: ``[{"d": text, "why": text}]``.
        context_packet: The text last rendered from it for the model.
        ttl_hours: Lifetime without use, in hours.
    """

    problem_id: str
    lane_id: str | None
    created_at: datetime
    expires_at: datetime
    constraints: dict[str, list[str]] = field(default_factory=dict)
    assumptions: list[dict[str, Any]] = field(default_factory=list)
    open_questions: list[str] = field(default_factory=list)
    partial_artifacts: dict[str, Any] = field(default_factory=dict)
    local_decisions: list[dict[str, Any]] = field(default_factory=list)
    context_packet: str = ""
    ttl_hours: float = 2.0

    @property
    def empty(self) -> bool:
        """Whether it holds no notes."""
        return not any(getattr(self, name) for name in WORKING_FIELDS)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON, without the packet, which is rendered from the rest."""
        return WORKING_SETS.write(self)


@dataclass(frozen=True, slots=True)
class SharedReference:
    """One version of a shared value.

    Attributes:
        key: Name of the value.
        value: Any JSON; None if the key was removed.
        version: Counts from 1; a rollback makes a new version.
        source: The entry it rests on, as ``tape#id``, or who set it.
        created_at: When the first version was made.
        updated_at: When this version was made.
        updated_by: Author: ``person``, ``assistant``, ``consolidation`` or ``rollback``.
        entry: Id of the entry on the scope's tape that records this version.
        stale: Its source was superseded or erased.
    """

    key: str
    value: Any
    version: int
    source: str
    created_at: datetime
    updated_at: datetime
    updated_by: str
    entry: int = 0
    stale: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return REFERENCES.write(self)


@dataclass(frozen=True, slots=True)
class EpisodeEntry:
    """One episode: something that happened.

    Attributes:
        id: ``tape#id`` of its entry; empty before it is appended.
        timestamp: When it happened.
        problem_id: The problem that it belongs to; None for the general problem.
        hrm_layer: A free tag, such as ``focus``; empty for none.
        entry_type: Type of the episode.
        content: The content, as JSON.
        tags: Free tags.
        supersedes: Id of the episode that it replaces.
    """

    id: str
    timestamp: datetime
    problem_id: str | None
    hrm_layer: str
    entry_type: EpisodeType
    content: dict[str, Any]
    tags: list[str] = field(default_factory=list)
    supersedes: str | None = None


_DEEPEST = 4


def _in_words(content: Mapping[str, Any]) -> str:
    """Return the text of a pattern in one of the seed's shapes; empty for any other shape."""
    if "if" in content and "then" in content:
        return f"If {_value(content['if'])}, then {_value(content['then'])}"  # for the model
    if "code" in content and "meaning" in content:
        return f"{_value(content['code'])}: {_value(content['meaning'])}"
    return _value(content.get("conclusion") or content.get("summary") or "")


def _value(value: object, depth: int = 0) -> str:
    """Return a value as text: an object's fields or a list's items, a few levels deep."""
    if not isinstance(value, Mapping | list | tuple):
        return str(value)
    if depth == _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(one, depth + 1)}".strip() for key, one in value.items())
    return ", ".join(_value(one, depth + 1) for one in value)


@dataclass(frozen=True, slots=True)
class SynthesizedPattern:
    """A belief distilled from episodes.

    Attributes:
        id: ``p1``, ``p2`` … within its scope; the number of a fact; empty before it is added.
        pattern_type: Type of the belief.
        content: ``{"text": …}``, or the fields of its type, from which the text is made:
            ``conclusion``; ``code`` and ``meaning``; ``if`` and ``then``; ``summary``.
        evidence_ids: Ids of episodes as ``tape#id``, or of beliefs in the same scope.
        confidence: From 0 to 1, at the last validation.
        created_at: When it was added.
        last_validated: When new evidence or a person last confirmed it.
        decay_rate: Share of the confidence lost per day without confirmation.
        protected: The confidence does not decay.
        status: ``active``; ``stale`` if its evidence is no longer valid; ``retired``.
        reason: Reasons for the current status.
    """

    id: str
    pattern_type: PatternType
    content: dict[str, Any]
    evidence_ids: list[str]
    confidence: float
    created_at: datetime
    last_validated: datetime
    decay_rate: float = 0.01
    protected: bool = False
    status: Literal["active", "stale", "retired"] = "active"
    reason: str = ""

    @property
    def text(self) -> str:
        """The belief in words."""
        return str(self.content.get("text") or _in_words(self.content))

    def confidence_at(self, now: datetime) -> float:
        """Return the confidence after decay; by default it halves in about 69 days."""
        if self.protected:
            return self.confidence
        days = max(0.0, (now - self.last_validated).total_seconds() / 86_400)
        return float(self.confidence * (1.0 - self.decay_rate) ** days)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return PATTERNS.write(self)


@dataclass(frozen=True, slots=True)
class Problem:
    """One of the problems of a session.

    Attributes:
        problem_id: ``general``, ``p1``, ``p2`` …; ids are never reused in a session.
        name: Display name.
        state: Current state.
        lane_id: The session.
        created_at: Time of creation.
        last_active: When it was last worked on.
        working_set: Its working set; None if there is none, or it expired.
        priority: From 1 to 9, the highest first.
        summary: Summary of its working sets that ended.
        resumable_entry_ids: Newest entries in view when the problem was left, in view order.
        resumable_size: Number of messages among them, and the estimated tokens of all.
        private: Whether only private models may see what is said in it; that cannot be taken back.
    """

    problem_id: str
    name: str
    state: ProblemState
    lane_id: str | None
    created_at: datetime
    last_active: datetime
    working_set: WorkingSet | None = None
    priority: int = 5
    summary: str = ""
    resumable_entry_ids: tuple[int, ...] = ()
    resumable_size: tuple[int, int] = (0, 0)
    private: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON, without its working set, which has its own record."""
        return PROBLEMS.write(self)


def _within_limits(working: WorkingSet) -> WorkingSet:
    return replace(working, ttl_hours=min(max(working.ttl_hours, 0.0), MAX_WORKING_SET_HOURS))


def _as_shares(pattern: SynthesizedPattern) -> SynthesizedPattern | None:
    confidence, decay = (min(1.0, max(0.0, n)) for n in (pattern.confidence, pattern.decay_rate))
    known = replace(pattern, confidence=confidence, decay_rate=decay)
    return known if 0 < len(pattern.id) <= _LONGEST_ID else None


def _with_id(problem: Problem) -> Problem | None:
    return problem if 0 < len(problem.problem_id) <= _LONGEST_ID else None


WORKING_SETS = RecordJson(
    WorkingSet,
    without=("context_packet",),
    check=_within_limits,
    problem_id="problem",
    lane_id="lane",
    created_at="created",
    expires_at="expires",
    ttl_hours="ttl",
)
REFERENCES = RecordJson(
    SharedReference, created_at="created", updated_at="updated", updated_by="by"
)
PATTERNS = RecordJson(
    SynthesizedPattern,
    check=_as_shares,
    pattern_type="type",
    evidence_ids="evidence",
    created_at="created",
    last_validated="validated",
    decay_rate="decay",
)
PROBLEMS = RecordJson(
    Problem,
    without=("lane_id", "working_set"),
    check=_with_id,
    problem_id="id",
    created_at="created",
    last_active="used",
    resumable_entry_ids="messages",
    resumable_size="weight",
)


def working_set_from_json(record: object) -> WorkingSet | None:
    """Read a working set from JSON; return None if it is malformed."""
    return WORKING_SETS.read(record, lane_id=None)


def problem_from_json(record: object) -> Problem | None:
    """Read a problem from JSON; return None if it is malformed."""
    return PROBLEMS.read(record)
