"""Classify entries for the view: kinds, queued and overheard messages, edits, tokens. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bot.llm.base import estimate_tokens
from bot.memory.records.attachments import attachment_tokens
from bot.tape.entries import SESSION_NEW, TapeEntry

QUESTION = "question"
"""Key of the question below an answer, in the answer's payload and in that of the tool result."""

TURN_START = "turn.start"
TURN_END = "turn.end"
LOOP_STEP = "loop.step"
REMINDED = "reminder"
"""Status of a ``turn.end`` that tells a reminder."""
CLIENT_CALLS = "client_calls"
"""Status of a ``turn.end`` whose answer is calls of a client program's own tools."""
NO_TURNS = ("command", REMINDED)
"""Statuses of a ``turn.end`` that ends no turn of a model."""
MEANWHILE = "meanwhile"
"""Meta key of a reminder that was told while a turn ran, which does not see it."""
AUTOMATION = "automation"
"""Role of a message that no person sent, such as a scheduled task; its ``cause`` tells what did."""
PROBLEM_ANCHOR_PREFIX = "problem/"
"""Prefix of boundary anchors that switch the active problem."""

CONVERSATION_KINDS = frozenset({"message", "tool_call", "tool_result"})
"""Kinds of entries that are part of the conversation."""


def entry_tokens(entry: TapeEntry) -> int:
    """Return the estimated tokens of an entry in a prompt."""
    payload = entry.payload
    if entry.kind == "tool_call":
        calls = payload.get("calls")
        text = f"{payload.get('content')}{calls}{payload.get('reasoning', '')}"
    else:
        text = str(payload.get("content", ""))
    return estimate_tokens(text) + attachment_tokens(entry.meta) + 6


def joined_message_ids(entry: TapeEntry) -> list[int]:
    """Return the ids of queued messages that a turn took in at this event."""
    if entry.kind != "event" or entry.name not in (TURN_START, LOOP_STEP, TURN_END):
        return []
    joined = entry.data.get("joined")
    return [i for i in joined if type(i) is int] if isinstance(joined, list) else []


def inbound_ids(messages: Iterable[TapeEntry]) -> list[str]:
    """Return the platform ids of the messages that have one."""
    return [str(entry.meta["inbound"]) for entry in messages if "inbound" in entry.meta]


def is_queued(entry: TapeEntry) -> bool:
    """Say whether a message arrived during a turn."""
    return entry.kind == "message" and entry.meta.get("queued") is True


def is_overheard(entry: TapeEntry) -> bool:
    """Say whether a message was overheard in a group and needs no answer."""
    return entry.kind == "message" and entry.meta.get("overheard") is True


def is_remote_command(entry: TapeEntry) -> bool:
    """Say whether a command came from another conversation and is not part of this one."""
    return "via" in entry.meta


def replaced_entry_id(entry: TapeEntry) -> int | None:
    """Return the id of the message that an edit replaces; None for any other entry."""
    old = entry.meta.get("replaces") if entry.kind == "message" else None
    return old if type(old) is int else None


def needs_answer(entry: TapeEntry) -> bool:
    """Say whether a ``turn.end`` must list a message."""
    return not is_overheard(entry) and replaced_entry_id(entry) is None


def is_caused(entry: TapeEntry) -> bool:
    """Say whether a message has another cause than a person, such as a schedule.

    Such messages never make a consolidation due.
    """
    return entry.kind == "message" and "cause" in entry.meta


def switched_problem(entry: TapeEntry) -> str | None:
    """Return the problem that a boundary switches to; None if it switches none."""
    problem = (
        entry.data.get("problem") if str(entry.name).startswith(PROBLEM_ANCHOR_PREFIX) else None
    )
    return problem if isinstance(problem, str) and entry.is_boundary else None


def discards_overheard(entry: TapeEntry) -> bool:
    """Say whether an entry drops the overheard messages that no turn took in."""
    began = entry.kind == "event" and entry.name == TURN_START
    new = entry.kind == "anchor" and entry.name == SESSION_NEW
    return began or new or switched_problem(entry) is not None


def starts_turn(entry: TapeEntry) -> bool:
    """Say whether a turn begins here, the only place where a window may be cut."""
    if entry.kind == "message":
        role = entry.payload.get("role")
        begins = role in ("user", AUTOMATION) and not is_queued(entry)
        return begins and replaced_entry_id(entry) is None
    return entry.name == TURN_START and bool(joined_message_ids(entry))
