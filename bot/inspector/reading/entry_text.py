"""Describe tape entries in plain text, in the current language. Pure.

Rule 1: text from a tape stays text: no function here returns HTML or Markdown.
Rule 2: a damaged entry is described as far as it can be read, and never raises.
"""

from __future__ import annotations

import json
from typing import Any

from bot.agent.schedules.wording import event_text
from bot.agent.subtask import TASK_RUN
from bot.core.clock import format_time
from bot.core.i18n import N_, _, ngettext, pgettext
from bot.core.patterns import LazyPattern
from bot.core.reasons import reason_text
from bot.inspector import labels
from bot.inspector.numbers import fixed, money
from bot.inspector.reading.categories import category
from bot.llm.base import Usage
from bot.memory.erasure.closure import FORGET_REQUESTED_EVENT, FORGOTTEN_EVENT
from bot.memory.records.attachments import attachments_in
from bot.memory.records.boundaries import boundary_summary
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
    RATE_LIMIT,
    SESSION_FORK,
    SESSION_NEW,
    SESSION_START,
    TapeEntry,
)
from bot.tape.store import HEADER_EVENT

LONGEST = 300
"""Characters of a one-line description."""

ERASED = N_("[erased]")

_PARTS = {
    LONG_TERM_EVENT: N_("Long-term memory"),
    SHARED_EVENT: N_("Shared with everyone"),
    REFERENCE_EVENT: N_("Reference"),
}
_NAMED = {
    SESSION_START: N_("The conversation starts"),
    SESSION_NEW: N_("A new session starts"),
    SESSION_FORK: N_("A copy of another conversation starts"),
    CONTEXT_OVERFLOW: N_("The context was full and starts again"),
    RATE_LIMIT: N_("The context was full and starts again"),
}
_PLAIN = {
    HEADER_EVENT: N_("A part of the tape starts"),
    FORGOTTEN_EVENT: N_("Something was erased on request"),
    FORGET_REQUESTED_EVENT: N_("A request to forget something"),
    TASK_RUN: N_("A sub-task ran"),
    BUS_EVENT: N_("Memory bus"),
    EPISODE_EVENT: N_("Episode"),
}
_STEPS = {
    "tool_calls": N_("calls tools"),
    "answer": N_("answers"),
    "joined": N_("more messages arrived"),
}
_STATES = {
    "ok": N_("answered"),
    "command": N_("a command was answered"),
    "reminder": N_("reminded"),
}
_HIDDEN = frozenset({"previous"})
"""Keys of an event's data that are for programs only."""

_CONTROL = LazyPattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def entry_line(entry: TapeEntry) -> str:
    """Describe an entry on one line of at most ``LONGEST`` characters."""
    return _short(describe(entry))


def describe(entry: TapeEntry) -> str:
    """Describe an entry in a sentence that holds all its words."""
    if entry.kind == "message":
        return _message(entry)
    if entry.kind == "tool_call":
        calls = [f"{call.get('name')}({call.get('arguments')})" for call in entry.calls]
        return _("calls {tools}", tools="; ".join(calls)) if calls else _("calls nothing")
    if entry.kind == "tool_result":
        payload = entry.payload
        text = _(ERASED) if is_erased(entry) else payload.get("content")
        return f"{payload.get('name')} → {payload.get('status')}: {text}"
    if entry.kind == "system":
        length = len(str(entry.payload.get("content") or ""))
        return ngettext("System prompt, {n} character", "System prompt, {n} characters", length)
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
    if isinstance(content, str) and content and (heading := _heading(entry.name or "", entry.data)):
        return strip_control_characters(f"{heading}\n{content}")
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
        f"{one.get('op')}: {one.get('text') or _(ERASED)} - {one.get('verdict')}"
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
        return f"{_(ERASED)}{behind}"
    text = f"{message_content(entry)}{behind}"
    if not text:
        return _("(no text)")
    return _("{text} (overheard)", text=text) if entry.meta.get("overheard") is True else text


def _anchor(entry: TapeEntry) -> str:
    state = entry.data
    if entry.name == MEMORY_OPEN:
        if state.get("cleared"):
            return _("Memory, version {number}, cleared", number=state.get("version"))
        return _("Memory, version {number}", number=state.get("version"))
    if entry.name == MEMORY_SEAL:
        return _("Memory, version {number}, ends here", number=state.get("version"))
    if entry.name == MEMORY_CONSOLIDATED:
        return _consolidated(state)
    title = str(state.get("title") or state.get("name") or boundary_summary(state))
    name = _(_NAMED[entry.name]) if entry.name in _NAMED else str(entry.name)
    if entry.target_id:
        name = _("{name} (points at entry {entry})", name=name, entry=entry.target_id)
    return _("{name}: {text}", name=name, text=title) if title else name


def _consolidated(state: dict[str, Any]) -> str:
    through, messages = state.get("through"), state.get("messages")
    if "version" in state:
        return _(
            "Consolidated through entry {entry}: {messages} messages, memory version {number}",
            entry=through,
            messages=messages,
            number=state["version"],
        )
    return _(
        "Consolidated through entry {entry}: {messages} messages", entry=through, messages=messages
    )


def _event(entry: TapeEntry) -> str:
    name, data = entry.name or "", entry.data
    if name == COMMAND:
        return f"/{data.get('name')} {data.get('arguments') or ''}".rstrip()
    if name == REPLY:
        return str(data.get("text") or _(ERASED))
    if name in SCHEDULE_EVENTS:
        return event_text(entry)
    if name == FACTS_EVENT:
        return _decided(data)
    if name == MODEL_CHOSEN:
        preset = data.get("preset")
        return _("Model chosen: {name}", name=preset) if preset else _("Model chosen: the default")
    if name == PAUSED_EVENT:
        return _("Learning is paused") if data.get("paused") is True else _("Learning is resumed")
    if name == DELIVERY:
        return _delivery(data)
    if (told := describe_call_event(entry)) is not None:
        return told
    if name in (TURN_START, TURN_END, TURN_RESUME, LOOP_STEP):
        return _turn(name, data)
    return _memory(name, data)


def _heading(name: str, data: dict[str, Any]) -> str:
    """Return what an event's content is; empty for events without such content."""
    if name == DAILY_EVENT:
        return _("Note of {day}", day=data.get("date"))
    return _(_PARTS[name]) if name in _PARTS else ""


def _memory(name: str, data: dict[str, Any]) -> str:
    if heading := _heading(name, data):
        return _("{name}: {text}", name=heading, text=data.get("content"))
    if name == HISTORY_EVENT:
        return _("Summary: {text}", text=data.get("entry") or "")
    if name == CONSOLIDATION_FAILED_EVENT:
        return _(
            "Consolidation failed: {error}",
            error=reason_text(data.get("error") or data.get("reason")),
        )
    if name == MEMORY_UNDONE_EVENT:
        return _("A change of memory was undone: from version {number}", number=data.get("from"))
    if name == SCOPE_EVENT:
        home = data.get("home")
        if home:
            return _("Facts learned here belong to {scope}", scope=home)
        return _("Facts learned here belong to this conversation")
    known = _(_PLAIN[name]) if name in _PLAIN else name or pgettext("entry", "event")
    rest = {key: value for key, value in data.items() if key not in _HIDDEN}
    told = json.dumps(rest, ensure_ascii=False) if rest and name != HEADER_EVENT else ""
    return f"{known} {told}".rstrip()


def _turn(name: str, data: dict[str, Any]) -> str:
    if name == TURN_START:
        return _("A turn starts")
    if name == TURN_RESUME:
        return _("The turn continues after a restart")
    status = str(data.get("status"))
    if name == LOOP_STEP:
        return _step(data, _(_STEPS[status]) if status in _STEPS else status)
    told = _(_STATES[status]) if status in _STATES else status
    parts = [_("The turn ends: {result}", result=told)]
    milliseconds = data.get("ms")
    if isinstance(milliseconds, (int, float)):
        parts.append(pgettext("seconds", "{number} s", number=fixed(milliseconds / 1000, 1)))
    usage = parse_usage(data.get("usage"))
    if usage.calls:
        parts.append(_tokens(usage))
    if usage.cost:
        parts.append(money(usage.cost, 4))
    if data.get("error"):
        parts.append(reason_text(data["error"]))
    return ", ".join(parts)


def _step(data: dict[str, Any], did: str) -> str:
    number = data.get("step", "?")
    if data.get("model"):
        told = _(
            "Step {number} by {model}: {result}", number=number, model=data["model"], result=did
        )
    else:
        told = _("Step {number}: {result}", number=number, result=did)
    usage = parse_usage(data.get("spent"))
    return f"{told}, {_tokens(usage)}" if usage.calls else told


def _tokens(usage: Usage) -> str:
    return ngettext("{n} token", "{n} tokens", usage.prompt_tokens + usage.completion_tokens)


def _delivery(data: dict[str, Any]) -> str:
    if data.get("final") is False:
        return _("A part of the answer was shown")
    if data.get("delivered") is False:
        return _("The answer was not delivered: {error}", error=reason_text(data.get("error")))
    return _("The answer was delivered")


def _decided(data: dict[str, Any]) -> str:
    operations = _listed(data.get("ops"))
    counts: dict[str, int] = {}
    for operation in operations:
        verdict = str(operation.get("verdict"))
        counts[verdict] = counts.get(verdict, 0) + 1
    told = ", ".join(f"{count} {_verdict(name)}" for name, count in counts.items())
    told = told or _("nothing changed")
    first = str(operations[0].get("text") or "") if operations else ""
    if data.get("author"):
        line = _("Decision on memory by {author}: {result}", author=data["author"], result=told)
    else:
        line = _("Decision on memory: {result}", result=told)
    return f"{line} - {first}" if first else line


def _verdict(name: str) -> str:
    try:
        return labels.verdict(name)[0]
    except KeyError:
        return name


def _listed(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _short(text: str) -> str:
    line = " ".join(strip_control_characters(text[: LONGEST * 8]).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"
