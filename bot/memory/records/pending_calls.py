"""Fold the tool calls that wait for a person's yes. Pure.

Rule 1: a call waits from ``tool.pending`` until ``tool.decided``, which comes once.
Rule 2: what was decided with yes has one ``tool.result``; until then it is approved, not done.
Rule 3: ``tool.started`` precedes a run that must not be repeated. A started call without a result
    may have happened or not.
Rule 4: whatever is missing or malformed is no yes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, get_args

from bot.core.i18n import N_, _
from bot.memory.records.argument_labels import ArgumentLabel, labels_from_json
from bot.memory.records.attachments import EntryAttachment, attachment_record
from bot.memory.records.conversation_entries import AUTOMATION
from bot.memory.records.record_json import RecordJson
from bot.memory.records.tombstones import ERASED_TEXT
from bot.tape.entries import TapeEntry, event, message

TOOL_PENDING = "tool.pending"
TOOL_DECIDED = "tool.decided"
TOOL_STARTED = "tool.started"
TOOL_RESULT = "tool.result"

Decision = Literal["yes", "no", "expired"]
_SHOWN_ARGUMENTS = 200

CallStatus = Literal["ok", "error", "stopped", "unknown"]


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A tool call that waits for a decision, or was approved and has no result yet.

    Attributes:
        number: Its number, unique in the workspace; people answer with it.
        tool: The tool's name.
        arguments: JSON text of the arguments.
        key: Key that identifies the call; handed on to services as an idempotency key.
        asked_by: Identities whose messages the turn answered, such as ``telegram:42``.
        foreign: What was in view and is not the person's own words, for people.
        expires: When it counts as denied; aware.
        cost: US dollars that it costs.
        labels: Where its arguments come from.
        reasons: Why it waits although the owner allowed the tool, for people.
        answers: Ids of the messages that the turn answered.
        timezone: Name of the person's time zone; empty if unknown.
        entry: Id of the ``tool.pending`` entry; 0 before it is appended.
        decision: What was decided; None while it waits.
        started_entry: Id of the ``tool.started`` entry; 0 if the run did not begin.
    """

    number: int
    tool: str
    arguments: str
    key: str
    asked_by: tuple[str, ...]
    foreign: tuple[str, ...]
    expires: datetime
    cost: float = 0.0
    labels: tuple[ArgumentLabel, ...] = ()
    reasons: tuple[str, ...] = ()
    answers: tuple[int, ...] = ()
    timezone: str = ""
    entry: int = 0
    decision: Decision | None = None
    started_entry: int = 0


_CALLS = RecordJson(
    PendingCall,
    without=("entry", "decision", "started_entry"),
    timezone="tz",
)


@dataclass(slots=True)
class PendingCalls:
    """The calls of one tape that wait or were approved and have no result.

    Attributes:
        calls: The calls by number, oldest first.
    """

    calls: dict[int, PendingCall] = field(default_factory=dict)

    @property
    def waiting(self) -> list[PendingCall]:
        """The calls without a decision, oldest first."""
        return [call for call in self.calls.values() if call.decision is None]

    @property
    def approved(self) -> list[PendingCall]:
        """The calls that were approved and have no result, oldest first."""
        return [call for call in self.calls.values() if call.decision == "yes"]

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        if entry.kind != "event":
            return
        if entry.name == TOOL_PENDING and (call := parse_pending(entry)) is not None:
            self.calls.setdefault(call.number, call)
            return
        if entry.name not in (TOOL_DECIDED, TOOL_STARTED, TOOL_RESULT):
            return
        number = entry.data.get("number")
        call = self.calls.get(number) if type(number) is int else None
        if call is None:
            return
        if entry.name == TOOL_RESULT:
            del self.calls[call.number]
        elif entry.name == TOOL_STARTED and call.decision == "yes":
            self.calls[call.number] = replace(call, started_entry=entry.id)
        elif entry.name == TOOL_DECIDED and call.decision is None:
            self._decide(call, entry)

    def _decide(self, call: PendingCall, entry: TapeEntry) -> None:
        decision = entry.data.get("decision")
        if decision == "yes":
            self.calls[call.number] = replace(call, decision="yes")
        elif decision in get_args(Decision):
            del self.calls[call.number]


def pending_entry(call: PendingCall, *, call_id: str, turn: str) -> TapeEntry:
    """Return the event that makes a call wait.

    Args:
        call: The call.
        call_id: The id that the model gave it.
        turn: The turn that asked for it.
    """
    return event(TOOL_PENDING, {**_CALLS.write(call), "call_id": call_id}, turn=turn)


def decided_entry(
    call: PendingCall, decision: Decision, by: str, *, standing: bool = False
) -> TapeEntry:
    """Return the event that decides a call.

    Args:
        call: The call.
        decision: The decision.
        by: Who decided, as ``telegram:42``; empty if time did.
        standing: Whether they decided beforehand, about all calls of the tool.
    """
    data: dict[str, object] = {"number": call.number, "decision": decision, "by": by}
    if standing:
        data["standing"] = True
    return event(TOOL_DECIDED, data, cause=_cause(call))


def refused_entries(call: PendingCall, decision: Decision, by: str) -> list[TapeEntry]:
    """Return the entries of a call that will not run; the message lets the model know."""
    why = "denied it" if decision == "no" else "did not answer in time"
    shown = call.arguments[:_SHOWN_ARGUMENTS]
    more = "…" if len(call.arguments) > len(shown) else ""
    text = (
        f"The user {why}: call {call.number} ({call.tool} with {shown}{more}) was not run and will "
        "not be."
    )
    return [decided_entry(call, decision, by), message(AUTOMATION, text, **_meta(call))]


def started_entry(call: PendingCall) -> TapeEntry:
    """Return the event before a run that must not be repeated."""
    return event(TOOL_STARTED, {"number": call.number})


def result_entries(
    call: PendingCall,
    status: CallStatus,
    content: str,
    *,
    turn: str,
    attachments: Sequence[EntryAttachment] = (),
    own: bool = False,
) -> list[TapeEntry]:
    """Return the result of an approved call, and the message that gives it to the model.

    Args:
        call: The call.
        status: What became of it.
        content: Its result.
        turn: The running turn.
        attachments: Files that came with it.
        own: Whether the result is tapebot's own words, not text from outside.
    """
    told = {
        "ok": "The user approved it, and it ran",
        "error": "The user approved it, and it failed",
        "stopped": "The user approved it, but it was stopped before it ran: it did not happen",
        "unknown": "The user approved it, but no usable answer came: it is not known whether it happened",
    }[status]
    text = f"{told}: call {call.number} ({call.tool})."
    if own and content.strip():
        text = f"{text}\n{content}"
    return [
        result_event(call, status, content, turn=turn),
        message(
            AUTOMATION,
            text,
            turn=turn,
            **_meta(call),
            **({"quote": content} if content.strip() and not own else {}),
            **({"attachments": list(map(attachment_record, attachments))} if attachments else {}),
        ),
    ]


def result_event(call: PendingCall, status: CallStatus, content: str, *, turn: str) -> TapeEntry:
    """Return the event that ends a call."""
    data = {"number": call.number, "status": status, "content": content}
    return event(TOOL_RESULT, data, turn=turn)


def describe_call_event(entry: TapeEntry) -> str | None:
    """Describe one of these events in a sentence; None for any other entry."""
    data, number = entry.data, entry.data.get("number")
    if entry.name == TOOL_PENDING:
        call = f"{data.get('tool')}({data.get('arguments')})"
        shown = _("Call {number} waits for a yes: {call}", number=number, call=call)
        return "\n".join(
            [shown, *(f"- {one.line()}" for one in labels_from_json(data.get("labels")))]
        )
    if entry.name == TOOL_DECIDED:
        return _describe_decision(data)
    if entry.name == TOOL_STARTED:
        return _("Call {number} runs", number=number)
    if entry.name == TOOL_RESULT:
        call = _("Call {number}", number=number)
        return f"{call} → {data.get('status')}: {data.get('content')}"
    return None


def _describe_decision(data: Mapping[str, Any]) -> str:
    number, by = data.get("number"), data.get("by")
    plain, by_whom, beforehand = _DECIDED.get(str(data.get("decision")), _DECIDED_SOMEHOW)
    if not by:
        return _(plain, number=number)
    return _(beforehand if data.get("standing") is True else by_whom, number=number, by=by)


_DECIDED_SOMEHOW = (
    N_("Call {number} was decided"),
    N_("Call {number} was decided by {by}"),
    N_("Call {number} was decided by {by}, beforehand"),
)
_DECIDED: dict[str, tuple[str, str, str]] = {
    "yes": (
        N_("Call {number} was approved"),
        N_("Call {number} was approved by {by}"),
        N_("Call {number} was approved by {by}, beforehand"),
    ),
    "no": (
        N_("Call {number} was denied"),
        N_("Call {number} was denied by {by}"),
        N_("Call {number} was denied by {by}, beforehand"),
    ),
    "expired": (N_("Call {number} was not answered in time"),) * 3,
}
"""What is said of a decision: without and with who decided, and if they did so beforehand."""


def describe_call_state(entry: TapeEntry) -> str:
    """Return what became of a call by one of the events after ``tool.pending``, as a sentence."""
    if entry.name != TOOL_RESULT:
        return describe_call_event(entry) or ""
    return _(_STATES.get(str(entry.data.get("status")), _ENDED))


_ENDED = N_("It ended")
_STATES = {
    "ok": N_("It ran"),
    "error": N_("It failed"),
    "unknown": N_("It is not known whether it happened"),
    "stopped": N_("It was stopped before it ran"),
}


def _meta(call: PendingCall) -> dict[str, object]:
    """Return the meta of a message about a call: its cause, and the zone that its time is shown in."""
    return {"cause": _cause(call), **({"tz": call.timezone} if call.timezone else {})}


def _cause(call: PendingCall) -> dict[str, object]:
    return {"kind": "trigger", "name": f"approval {call.number}", "entry": call.entry}


def parse_pending(entry: TapeEntry) -> PendingCall | None:
    """Return the call of a ``tool.pending`` event; None if it is malformed."""
    if ERASED_TEXT in str(entry.data.get("arguments")):
        # A call whose words a person had erased must not run with what is left of them.
        return None
    return _CALLS.read(entry.data, entry=entry.id)
