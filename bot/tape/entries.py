"""Define tape entries, their kinds, and constructors for each kind. Pure.

Rule 1: an entry is a fact. It never changes; a correction is a new entry that refers to the old
    one.
Rule 2: ids grow by one per tape and never restart, not even after archive or reset.
Rule 3: an entry with id 0 has not been appended yet; the store assigns its id.
Rule 4: payload and meta hold JSON values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
RATE_LIMIT = "auto_handoff/rate_limit"

# Bookkeeping anchors mark steps of the memory, not phases of the conversation.
NON_BOUNDARY_ANCHORS = frozenset({MEMORY_OPEN, MEMORY_SEAL, MEMORY_CONSOLIDATED})


@dataclass(frozen=True, slots=True)
class TapeEntry:
    """An immutable record on a tape.

    Attributes:
        id: Position on the tape, from 1; 0 before the entry is appended.
        kind: One of ``ENTRY_KINDS``.
        payload: The content; its shape depends on the kind (see the constructors below).
        meta: ``ts`` (UTC, ISO 8601) and, where they apply, ``sender``, ``inbound``, ``turn``,
            ``origin``.
    """

    id: int
    kind: EntryKind
    payload: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str | None:
        """The name of an anchor or event; None for other kinds."""
        name = self.payload.get("name") if self.kind in ("anchor", "event") else None
        return name if isinstance(name, str) else None

    @property
    def data(self) -> dict[str, Any]:
        """The data of an event or the state of an anchor; empty for other kinds."""
        key = {"event": "data", "anchor": "state"}.get(self.kind)
        value = self.payload.get(key) if key else None
        return value if isinstance(value, dict) else {}

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of a tool_call, without malformed ones; empty for other kinds."""
        calls = self.payload.get("calls") if self.kind == "tool_call" else None
        return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []

    @property
    def target_id(self) -> int | None:
        """Id of the entry that a named anchor points at; None for other entries."""
        entry = self.payload.get("entry") if self.kind == "anchor" else None
        known = type(entry) is int and entry > 0 and (entry < self.id or not self.id)
        return entry if known else None

    @property
    def is_boundary(self) -> bool:
        """Whether this anchor cuts the context: it is not the memory's and points at no entry."""
        return (
            self.kind == "anchor"
            and self.name not in NON_BOUNDARY_ANCHORS
            and self.target_id is None
        )

    @property
    def is_reset(self) -> bool:
        """Whether this is the anchor that restarts a tape: nothing before it is remembered."""
        return (
            self.kind == "anchor" and self.name == SESSION_START and self.data.get("reset") is True
        )

    def with_meta(self, **values: Any) -> TapeEntry:
        """Return a copy with these meta values added."""
        return TapeEntry(self.id, self.kind, self.payload, {**self.meta, **values})


def message(role: str, content: str, **meta: Any) -> TapeEntry:
    """A chat message: ``{"role", "content"}``."""
    return TapeEntry(0, "message", {"role": role, "content": content}, meta)


def tool_call(
    content: str,
    calls: list[dict[str, Any]],
    *,
    reasoning: Mapping[str, Any] | None = None,
    origin: str = "",
    **meta: Any,
) -> TapeEntry:
    """The model's request to run tools: ``{"content", "calls": [{"id", "name", "arguments"}]}``.

    ``arguments`` is the model's text, valid JSON or not. ``reasoning``, if there is any, has the
    fields of the message that its provider wants back, a call's ``extra`` those of the call; ``origin`` tells which.
    """
    payload: dict[str, Any] = {"content": content, "calls": calls}
    if reasoning:
        payload["reasoning"] = dict(reasoning)
    if origin:
        payload["origin"] = origin
    return TapeEntry(0, "tool_call", payload, meta)


def tool_result(
    call_id: str, name: str, content: str, *, status: str = "ok", **meta: Any
) -> TapeEntry:
    """The result of one tool call: ``{"call_id", "name", "content", "status"}``.

    ``status`` is ``ok``, ``error``, ``unknown`` or ``interrupted``.
    """
    payload = {"call_id": call_id, "name": name, "content": content, "status": status}
    return TapeEntry(0, "tool_result", payload, meta)


def anchor(name: str, state: dict[str, Any] | None = None, **meta: Any) -> TapeEntry:
    """A marked place on the tape, by default a new phase: ``{"name", "state"}``."""
    return TapeEntry(0, "anchor", {"name": name, "state": state or {}}, meta)


def event(name: str, data: dict[str, Any] | None = None, **meta: Any) -> TapeEntry:
    """An event outside the conversation: ``{"name", "data"}``."""
    return TapeEntry(0, "event", {"name": name, "data": data or {}}, meta)


def system(content: str, **meta: Any) -> TapeEntry:
    """A system prompt: ``{"content"}``."""
    return TapeEntry(0, "system", {"content": content}, meta)
