"""Classify tape entries: their category for display, their author, and their turn. Pure."""

from __future__ import annotations

from typing import Literal, get_args

from bot.agent.subtask import TASK_RUN
from bot.memory.records.conversation_entries import LOOP_STEP, TURN_END, TURN_START
from bot.memory.records.event_names import (
    COMMAND,
    HISTORY_EVENT,
    IMPORT_READING,
    MODEL_CHOSEN,
    REPLY,
)
from bot.memory.records.fact_fold import FACTS_EVENT, PAUSED_EVENT
from bot.memory.records.pending_calls import (
    TOOL_DECIDED,
    TOOL_PENDING,
    TOOL_RESULT,
    TOOL_STARTED,
)
from bot.memory.records.schedules import SCHEDULE_EVENTS
from bot.memory.records.transcript import sender_name, speaker_label
from bot.memory.records.turn_marks import unfold
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.memory.session.state.turn_fold import (
    DELIVERY,
    TURN_RESUME,
)
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
    REFERENCE_EVENT,
    SHARED_EVENT,
)
from bot.memory.session.state.zone_versions import MEMORY_UNDONE_EVENT
from bot.tape.entries import MEMORY_CONSOLIDATED, MEMORY_OPEN, MEMORY_SEAL, TapeEntry

Category = Literal[
    "message",
    "answer",
    "tool",
    "anchor",
    "zone",
    "consolidation",
    "gate",
    "command",
    "delivery",
    "turn",
    "schedule",
    "system",
    "other",
]
"""The categories by which entries are displayed and filtered."""

CATEGORIES: tuple[Category, ...] = get_args(Category)

INDEXED: frozenset[Category] = frozenset({"message", "answer", "tool", "anchor"})
"""Categories that a store's search covers in full, except for the answers of commands."""

_EVENTS: dict[str, Category] = {
    LONG_TERM_EVENT: "zone",
    DAILY_EVENT: "zone",
    SHARED_EVENT: "zone",
    REFERENCE_EVENT: "zone",
    MEMORY_UNDONE_EVENT: "zone",
    HISTORY_EVENT: "consolidation",
    CONSOLIDATION_FAILED_EVENT: "consolidation",
    FACTS_EVENT: "gate",
    PAUSED_EVENT: "gate",
    TOOL_PENDING: "tool",
    TOOL_DECIDED: "tool",
    TOOL_STARTED: "tool",
    TOOL_RESULT: "tool",
    COMMAND: "command",
    IMPORT_READING: "command",
    MODEL_CHOSEN: "command",
    REPLY: "answer",
    DELIVERY: "delivery",
    TURN_START: "turn",
    TURN_END: "turn",
    TURN_RESUME: "turn",
    LOOP_STEP: "turn",
    TASK_RUN: "turn",
}
_ANCHORS: dict[str, Category] = {
    MEMORY_OPEN: "zone",
    MEMORY_SEAL: "zone",
    MEMORY_CONSOLIDATED: "consolidation",
}


_EVENTS |= dict.fromkeys(SCHEDULE_EVENTS, "schedule")


def category(entry: TapeEntry) -> Category:
    """Return an entry's category."""
    if entry.kind == "message":
        return "answer" if entry.payload.get("role") == "assistant" else "message"
    if entry.kind in ("tool_call", "tool_result"):
        return "tool"
    if entry.kind == "system":
        return "system"
    name = entry.name or ""
    if entry.kind == "anchor":
        return _ANCHORS.get(name, "anchor")
    return _EVENTS.get(name, "other")


def author_name(entry: TapeEntry) -> str:
    """Return an entry's author: a person's name, ``tapebot``, or the empty string."""
    kind = category(entry)
    if kind in ("answer", "tool"):
        return "tapebot"
    if entry.kind == "message":
        return speaker_label(entry)
    return sender_name(entry) if "sender" in entry.meta else ""


def turn_id(entry: TapeEntry) -> str:
    """Return the id of the turn that an entry names; empty if it names none."""
    for turn in (entry.meta.get("turn"), unfold(entry)[-1].data.get("turn")):
        if isinstance(turn, str) and turn:
            return turn
    return ""
