"""Record types of the memory bus's compartments, named as in its seed, and their JSON. Pure.

All values are JSON, so that a tape can hold them; times are timezone-aware, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from bot.core.clock import format_time
from bot.core.reasons import parse_reason, reason_json

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
_FIRST_YEAR, _LAST_YEAR = 2, 9_998
"""Accepted years, so that time zones and lifetimes can be added without overflow."""

_BY_NAME = frozenset({"constraints", "partial_artifacts"})


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
        plain: dict[str, Any] = {
            "problem": self.problem_id,
            "created": format_time(self.created_at),
            "expires": format_time(self.expires_at),
            "ttl": self.ttl_hours,
        }
        plain |= {"lane": self.lane_id} if self.lane_id else {}
        return plain | {name: getattr(self, name) for name in WORKING_FIELDS if getattr(self, name)}


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
        return {
            "key": self.key,
            "value": self.value,
            "version": self.version,
            "source": self.source,
            "created": format_time(self.created_at),
            "updated": format_time(self.updated_at),
            "by": self.updated_by,
            **({"entry": self.entry} if self.entry else {}),
            **({"stale": True} if self.stale else {}),
        }


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
        return {
            "id": self.id,
            "type": self.pattern_type,
            "content": self.content,
            "evidence": self.evidence_ids,
            "confidence": self.confidence,
            "created": format_time(self.created_at),
            "validated": format_time(self.last_validated),
            "decay": self.decay_rate,
            **({"protected": True} if self.protected else {}),
            "status": self.status,
            **({"reason": reason_json(self.reason)} if self.reason else {}),
        }


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
        return {
            "id": self.problem_id,
            "name": self.name,
            "state": self.state,
            "created": format_time(self.created_at),
            "used": format_time(self.last_active),
            "priority": self.priority,
            **({"summary": self.summary} if self.summary else {}),
            **({"messages": list(self.resumable_entry_ids)} if self.resumable_entry_ids else {}),
            **({"weight": list(self.resumable_size)} if any(self.resumable_size) else {}),
            **({"private": True} if self.private else {}),
        }


def working_set_from_json(record: object, lane: str | None = None) -> WorkingSet | None:
    """Read a working set from JSON; return None if it is malformed."""
    if not isinstance(record, dict) or not isinstance(record.get("problem"), str):
        return None
    created = _time(record.get("created"))
    hours = _number(record.get("ttl"), 2.0, most=MAX_WORKING_SET_HOURS)
    working_set = WorkingSet(
        record["problem"],
        _text(record.get("lane")) or lane,
        created,
        parse_utc_time(record.get("expires")) or created + timedelta(hours=hours),
        ttl_hours=hours,
    )
    return replace(working_set, **parse_working_fields(_in_shape(record)))


def _in_shape(record: dict[str, Any]) -> dict[str, Any]:
    """Return a working set's fields in the expected shapes, whatever an imported tape holds."""
    shaped = {**record}
    for name, part in (("assumptions", "a"), ("local_decisions", "d")):
        if isinstance(held := record.get(name), list):
            shaped[name] = [
                one
                if isinstance(one, dict) and isinstance(one.get(part), str)
                else {part: str(one)}
                for one in held
            ]
    if isinstance(asked := record.get("open_questions"), list):
        shaped["open_questions"] = list(map(str, asked))
    if isinstance(rules := record.get("constraints"), dict):
        shaped["constraints"] = {
            key: held if isinstance(held, list) else [held] for key, held in rules.items()
        }
    return shaped


def parse_working_fields(record: dict[str, Any]) -> dict[str, Any]:
    """Return those working-set fields of a record that have the right shape."""
    return {
        name: record[name]
        for name in WORKING_FIELDS
        if isinstance(record.get(name), dict if name in _BY_NAME else list)
    }


def reference_from_json(record: object, entry: int = 0) -> SharedReference | None:
    """Read a version of a shared value from JSON; return None if it is malformed."""
    if not isinstance(record, dict) or not isinstance(record.get("key"), str):
        return None
    version = record.get("version")
    if type(version) is not int:
        return None
    known = record.get("entry")
    return SharedReference(
        record["key"],
        record.get("value"),
        version,
        _text(record.get("source")),
        _time(record.get("created")),
        _time(record.get("updated")),
        _text(record.get("by")),
        known if type(known) is int else entry,
        record.get("stale") is True,
    )


def pattern_from_json(record: object) -> SynthesizedPattern | None:
    """Read a pattern from JSON; return None if it is malformed."""
    if not isinstance(record, dict) or not _is_id(record.get("id")):
        return None
    content = record.get("content")
    kind = next(
        (get_arg for get_arg in get_args(PatternType) if get_arg == record.get("type")), None
    )
    if kind is None or not isinstance(content, dict):
        return None
    status = record.get("status")
    evidence = record.get("evidence")
    return SynthesizedPattern(
        record["id"],
        kind,
        content,
        [one for one in evidence if isinstance(one, str)] if isinstance(evidence, list) else [],
        _number(record.get("confidence"), 0.5),
        _time(record.get("created")),
        _time(record.get("validated")),
        _number(record.get("decay"), 0.01),
        record.get("protected") is True,
        status if status in ("active", "stale", "retired") else "retired",
        parse_reason(record.get("reason")),
    )


def problem_from_json(record: object, lane: str | None = None) -> Problem | None:
    """Read a problem from JSON; return None if it is malformed."""
    if not isinstance(record, dict) or not _is_id(record.get("id")):
        return None
    state, priority, messages = (record.get(name) for name in ("state", "priority", "messages"))
    return Problem(
        record["id"],
        _text(record.get("name")) or record["id"],
        next((get_arg for get_arg in get_args(ProblemState) if get_arg == state), "paused"),
        lane,
        _time(record.get("created")),
        _time(record.get("used")),
        None,
        priority if type(priority) is int else 5,
        _text(record.get("summary")),
        _integers(messages),
        (weight[0], weight[1]) if len(weight := _integers(record.get("weight"))) == 2 else (0, 0),
        record.get("private") is True,
    )


def parse_utc_time(value: object) -> datetime | None:
    """Parse an ISO 8601 time, as UTC if it has no zone; None if invalid or out of range."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if moment is None or not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_ID


def _time(value: object) -> datetime:
    return parse_utc_time(value) or datetime.fromtimestamp(0, UTC)


def _integers(value: object) -> tuple[int, ...]:
    return tuple(i for i in value if type(i) is int) if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object, default: float, most: float = 1.0) -> float:
    """Return a number clamped to 0 to ``most``, or the default if it is not a number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return default
    return most if value >= most else float(value) if value > 0 else 0.0
