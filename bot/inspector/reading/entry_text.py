"""Describe tape entries in plain text. Pure.

Rule 1: text from a tape stays text: no function here returns HTML or Markdown.
Rule 2: a damaged entry is described as far as it can be read, and never raises.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bot.agent.schedules.wording import event_text
from bot.agent.subtask import TASK_RUN
from bot.core.clock import format_time
from bot.core.reasons import reason_text
from bot.inspector.reading.categories import category
from bot.memory.erasure.erasure_plan import FORGET_REQUESTED_EVENT, FORGOTTEN_EVENT
from bot.memory.records.attachments import attachments_in
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.conversation_entries import LOOP_STEP, TURN_END, TURN_START
from bot.memory.records.episodes import EPISODE_EVENT
from bot.memory.records.event_names import (
    COMMAND,
    HISTORY_EVENT,
    MODEL_CHOSEN,
    REPLY,
)
from bot.memory.records.fact_fold import FACTS_EVENT, PAUSED_EVENT
from bot.memory.records.pending_calls import describe_call_event
from bot.memory.records.schedules import SCHEDULE_EVENTS
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import answer_text, message_content, sent_time
from bot.memory.session.state.session_fold import (
    CONSOLIDATION_FAILED_EVENT,
    SCOPE_EVENT,
    SESSION_MARK_EVENT,
)
from bot.memory.session.state.turn_fold import (
    DELIVERY,
    TURN_RESUME,
    parse_usage,
)
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
    REFERENCE_EVENT,
    SHARED_EVENT,
)
from bot.memory.session.state.zone_versions import MEMORY_UNDONE_EVENT
from bot.tape.entries import (
    CONTEXT_OVERFLOW,
    MEMORY_CONSOLIDATED,
    MEMORY_OPEN,
    MEMORY_SEAL,
    SESSION_FORK,
    SESSION_NEW,
    SESSION_START,
    TapeEntry,
)
from bot.tape.store import HEADER_EVENT, REPAIR_EVENT

LONGEST = 300
"""Characters of a one-line description."""

ERASED = "[erased]"

_PARTS = {
    LONG_TERM_EVENT: "Long-term memory",
    SHARED_EVENT: "Shared with everyone",
    REFERENCE_EVENT: "Reference",
}
_NAMED = {
    SESSION_START: "The conversation starts",
    SESSION_NEW: "A new session starts",
    SESSION_FORK: "A copy of another conversation starts",
    CONTEXT_OVERFLOW: "The context was full and starts again",
}
_PLAIN = {
    HEADER_EVENT: "A part of the tape starts",
    SESSION_MARK_EVENT: "A marker for opening the tape quickly",
    REPAIR_EVENT: "The tape was repaired",
    FORGOTTEN_EVENT: "Something was erased on request",
    FORGET_REQUESTED_EVENT: "A request to forget something",
    TASK_RUN: "A sub-task ran",
    BUS_EVENT: "Memory bus",
    EPISODE_EVENT: "Episode",
}
_STEPS = {"tool_calls": "calls tools", "answer": "answers", "joined": "more messages arrived"}
_STATES = {"ok": "answered", "command": "a command was answered", "reminder": "reminded"}
_HIDDEN = frozenset({"pointers", "state", "previous"})
"""Keys of an event's data that are for programs only."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def entry_line(entry: TapeEntry) -> str:
    """Describe an entry on one line of at most ``LONGEST`` characters."""
    return _short(describe(entry))


def describe(entry: TapeEntry) -> str:
    """Describe an entry in a sentence that holds all its words."""
    if entry.kind == "message":
        return _message(entry)
    if entry.kind == "tool_call":
        calls = [f"{call.get('name')}({call.get('arguments')})" for call in entry.calls]
        return f"calls {'; '.join(calls)}" if calls else "calls nothing"
    if entry.kind == "tool_result":
        payload = entry.payload
        text = ERASED if is_erased(entry) else payload.get("content")
        return f"{payload.get('name')} → {payload.get('status')}: {text}"
    if entry.kind == "system":
        return f"System prompt, {len(str(entry.payload.get('content') or '')):,} characters"
    return _anchor(entry) if entry.kind == "anchor" else _event(entry)


def entry_time(entry: TapeEntry) -> str:
    """Return when an entry was sent, else recorded, ISO 8601; empty if unknown."""
    moment = sent_time(entry)
    try:
        return format_time(moment) if moment is not None else ""
    except OverflowError:
        # The time is valid in its own zone, but out of range in UTC.
        return ""


def full_text(entry: TapeEntry) -> str:
    """Return all of an entry's words, or its description; line breaks are kept."""
    if entry.kind in ("message", "tool_call", "tool_result", "system") or entry.name == REPLY:
        text = entry.data.get("text") if entry.name == REPLY else answer_text(entry)
        if entry.kind == "tool_call":
            calls = [f"{call.get('name')}({call.get('arguments')})" for call in entry.calls]
            text = "\n".join([*([str(text)] if text else []), *calls])
        return strip_control_characters(str(text or "")) or strip_control_characters(
            describe(entry)
        )
    if entry.name == FACTS_EVENT:
        return "\n".join(
            strip_control_characters(line) for line in (describe(entry), *decisions(entry))
        )
    content = entry.data.get("content")
    if isinstance(content, str) and content:
        return strip_control_characters(f"{describe(entry).partition(': ')[0]}\n{content}")
    return strip_control_characters(describe(entry))


def is_markdown(entry: TapeEntry) -> bool:
    """Return whether an entry's words are an answer in Markdown."""
    return category(entry) == "answer" and not is_erased(entry)


def decisions(entry: TapeEntry) -> list[str]:
    """Return the write gate's decisions in an entry, one per line; none for other entries."""
    if entry.name != FACTS_EVENT:
        return []
    return [
        f"{one.get('op')}: {one.get('text') or ERASED} - {one.get('verdict')}"
        + (
            f" ({why})"
            if (why := reason_text(one.get("reason"))) not in ("", one.get("verdict"))
            else ""
        )
        for one in _listed(entry.data.get("ops"))
    ]


def evidence(entry: TapeEntry) -> list[tuple[str, int]]:
    """Return the tape and id of each entry that an entry cites, once each."""
    found: dict[tuple[str, int], None] = {}
    for operation in _listed(entry.data.get("ops")):
        for cited in _listed(operation.get("cites")):
            tape, number = cited.get("tape"), cited.get("entry")
            if isinstance(tape, str) and type(number) is int:
                found.setdefault((tape, number))
    return list(found)


def strip_control_characters(text: str) -> str:
    """Replace control characters except tab and newline, and lone surrogates."""
    return _CONTROL.sub(" ", text)


def _message(entry: TapeEntry) -> str:
    files = [entry_attachment.name for entry_attachment in attachments_in(entry.meta)]
    behind = f" [{', '.join(files)}]" if files else ""
    if is_erased(entry):
        return f"{ERASED}{behind}"
    overheard = " (overheard)" if entry.meta.get("overheard") is True else ""
    return (
        f"{message_content(entry)}{behind}{overheard}"
        if message_content(entry) or behind
        else "(no text)"
    )


def _anchor(entry: TapeEntry) -> str:
    state = entry.data
    if entry.name == MEMORY_OPEN:
        return f"Memory, version {state.get('version')}" + (
            ", cleared" if state.get("cleared") else ""
        )
    if entry.name == MEMORY_SEAL:
        return f"Memory, version {state.get('version')}, ends here"
    if entry.name == MEMORY_CONSOLIDATED:
        return (
            f"Consolidated through entry {state.get('through')}: {state.get('messages')} messages"
            + (f", memory version {state['version']}" if "version" in state else "")
        )
    title = next((str(state[key]) for key in ("title", "name", "summary") if state.get(key)), "")
    points = f" (points at entry {entry.target_id})" if entry.target_id else ""
    name = _NAMED.get(entry.name or "", entry.name)
    return f"{name}{points}{': ' + title if title else ''}"


def _event(entry: TapeEntry) -> str:
    name, data = entry.name or "", entry.data
    if name == COMMAND:
        return f"/{data.get('name')} {data.get('arguments') or ''}".rstrip()
    if name == REPLY:
        return str(data.get("text") or ERASED)
    if name in SCHEDULE_EVENTS:
        return event_text(entry)
    if name == FACTS_EVENT:
        return _decided(data)
    if name == MODEL_CHOSEN:
        return f"Model chosen: {data.get('preset') or 'the default'}"
    if name == PAUSED_EVENT:
        return "Learning is paused" if data.get("paused") is True else "Learning is resumed"
    if name == DELIVERY:
        return _delivery(data)
    if (told := describe_call_event(entry)) is not None:
        return told
    if name in (TURN_START, TURN_END, TURN_RESUME, LOOP_STEP):
        return _turn(name, data)
    return _memory(name, data)


def _memory(name: str, data: dict[str, Any]) -> str:
    if name in _PARTS:
        return f"{_PARTS[name]}: {data.get('content')}"
    if name == DAILY_EVENT:
        return f"Note of {data.get('date')}: {data.get('content')}"
    if name == HISTORY_EVENT:
        return f"Summary: {data.get('entry') or ''}"
    if name == CONSOLIDATION_FAILED_EVENT:
        return f"Consolidation failed: {data.get('error') or data.get('reason')}"
    if name == MEMORY_UNDONE_EVENT:
        return f"A change of memory was undone: from version {data.get('from')}"
    if name == SCOPE_EVENT:
        return f"Facts learned here belong to {data.get('home') or 'this conversation'}"
    known = _PLAIN.get(name, name or "event")
    rest = {key: value for key, value in data.items() if key not in _HIDDEN}
    told = (
        json.dumps(rest, ensure_ascii=False)
        if rest and name not in (HEADER_EVENT, SESSION_MARK_EVENT)
        else ""
    )
    return f"{known} {told}".rstrip()


def _turn(name: str, data: dict[str, Any]) -> str:
    if name == TURN_START:
        return "A turn starts"
    if name == TURN_RESUME:
        return "The turn continues after a restart"
    status = str(data.get("status"))
    if name == LOOP_STEP:
        usage = parse_usage(data.get("spent"))
        tokens = (
            f", {usage.prompt_tokens + usage.completion_tokens:,} tokens" if usage.calls else ""
        )
        model = f" by {data['model']}" if data.get("model") else ""
        return f"Step {data.get('step', '?')}{model}: {_STEPS.get(status, status)}{tokens}"
    usage = parse_usage(data.get("usage"))
    parts = [f"The turn ends: {_STATES.get(status, status)}"]
    milliseconds = data.get("ms")
    if isinstance(milliseconds, (int, float)):
        parts.append(f"{milliseconds / 1000:.1f} s")
    if usage.calls:
        parts.append(f"{usage.prompt_tokens + usage.completion_tokens:,} tokens")
    if usage.cost:
        parts.append(f"${usage.cost:.4f}")
    if data.get("error"):
        parts.append(str(data["error"]))
    return ", ".join(parts)


def _delivery(data: dict[str, Any]) -> str:
    if data.get("final") is False:
        return "A part of the answer was shown"
    if data.get("delivered") is False:
        return f"The answer was not delivered: {data.get('error')}"
    return "The answer was delivered"


def _decided(data: dict[str, Any]) -> str:
    operations = _listed(data.get("ops"))
    counts: dict[str, int] = {}
    for operation in operations:
        verdict = str(operation.get("verdict"))
        counts[verdict] = counts.get(verdict, 0) + 1
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    first = str(operations[0].get("text") or "") if operations else ""
    author = f" by {data['author']}" if data.get("author") else ""
    return (
        f"Decision on memory{author}: {told or 'nothing changed'}{' - ' + first if first else ''}"
    )


def _listed(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _short(text: str) -> str:
    line = " ".join(strip_control_characters(text[: LONGEST * 8]).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"
