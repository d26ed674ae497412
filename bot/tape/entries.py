"""What a tape holds.

Rule 1: an entry is a fact. It is never changed; a correction is a new entry that names the old.
Rule 2: ids grow by one per tape and never restart, not even after archive or reset.
Rule 3: an entry with id 0 has not been appended yet; the store gives it its id.
Rule 4: payload and meta hold JSON values only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

EntryKind = Literal["message", "tool_call", "tool_result", "anchor", "event", "system"]
ENTRY_KINDS: frozenset[str] = frozenset(
    {"message", "tool_call", "tool_result", "anchor", "event", "system"}
)

SESSION_START = "session/start"
SESSION_NEW = "session/new"
SESSION_FORK = "session/fork"
MEMORY_OPEN = "memory/open"
MEMORY_SEAL = "memory/seal"
MEMORY_CONSOLIDATED = "memory/consolidated"
CONTEXT_OVERFLOW = "auto_handoff/context_overflow"

# Bookkeeping anchors mark a place in the memory's life, not a phase of the conversation.
NON_BOUNDARY_ANCHORS = frozenset({MEMORY_OPEN, MEMORY_SEAL, MEMORY_CONSOLIDATED})


@dataclass(frozen=True, slots=True)
class TapeEntry:
    """One immutable record.

    Attributes:
        id: Position on its tape, from 1; 0 before it is appended.
        kind: One of ``KINDS``.
        payload: What happened; its shape depends on the kind (see the constructors below).
        meta: ``ts`` (UTC, ISO 8601) and, where they apply, ``sender``, ``inbound``, ``turn``,
            ``origin``.
    """

    id: int
    kind: EntryKind
    payload: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str | None:
        """The name of an anchor or event, else None."""
        name = self.payload.get("name") if self.kind in ("anchor", "event") else None
        return name if isinstance(name, str) else None

    @property
    def data(self) -> dict[str, Any]:
        """An event's data, an anchor's state; empty for other kinds."""
        key = {"event": "data", "anchor": "state"}.get(self.kind)
        value = self.payload.get(key) if key else None
        return value if isinstance(value, dict) else {}

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of a tool_call; empty for other kinds, and without what is no call."""
        calls = self.payload.get("calls") if self.kind == "tool_call" else None
        return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []

    @property
    def target_id(self) -> int | None:
        """Id of the entry that a named anchor points at; None for all else."""
        entry = self.payload.get("entry") if self.kind == "anchor" else None
        known = type(entry) is int and entry > 0 and (entry < self.id or not self.id)
        return entry if known else None

    @property
    def is_boundary(self) -> bool:
        """True for an anchor that cuts the context: any but the memory's own and those that point."""
        return (
            self.kind == "anchor"
            and self.name not in NON_BOUNDARY_ANCHORS
            and self.target_id is None
        )

    @property
    def is_reset(self) -> bool:
        """True for the anchor behind which a tape begins anew: nothing of what was before is remembered."""
        return (
            self.kind == "anchor" and self.name == SESSION_START and self.data.get("reset") is True
        )

    def with_meta(self, **values: Any) -> TapeEntry:
        """Return a copy with these meta values added."""
        return replace(self, meta={**self.meta, **values})


def message(role: str, content: str, **meta: Any) -> TapeEntry:
    """A chat message: ``{"role", "content"}``."""
    return TapeEntry(0, "message", {"role": role, "content": content}, meta)


def tool_call(content: str, calls: list[dict[str, str]], **meta: Any) -> TapeEntry:
    """The model's request to run tools: ``{"content", "calls": [{"id", "name", "arguments"}]}``.

    ``arguments`` is the text that the model wrote, valid JSON or not.
    """
    return TapeEntry(0, "tool_call", {"content": content, "calls": calls}, meta)


def tool_result(
    call_id: str, name: str, content: str, *, status: str = "ok", **meta: Any
) -> TapeEntry:
    """What one tool answered: ``{"call_id", "name", "content", "status"}``.

    ``status`` is ``ok``, ``error`` or ``interrupted``.
    """
    payload = {"call_id": call_id, "name": name, "content": content, "status": status}
    return TapeEntry(0, "tool_result", payload, meta)


def anchor(name: str, state: dict[str, Any] | None = None, **meta: Any) -> TapeEntry:
    """A phase mark: ``{"name", "state"}``."""
    return TapeEntry(0, "anchor", {"name": name, "state": state or {}}, meta)


def event(name: str, data: dict[str, Any] | None = None, **meta: Any) -> TapeEntry:
    """Something that happened beside the conversation: ``{"name", "data"}``."""
    return TapeEntry(0, "event", {"name": name, "data": data or {}}, meta)


def system(content: str, **meta: Any) -> TapeEntry:
    """A system prompt: ``{"content"}``."""
    return TapeEntry(0, "system", {"content": content}, meta)
