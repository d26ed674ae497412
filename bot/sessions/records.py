"""Entries that a session's worker writes around turns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bot.bus import Button, DeliveryReport, Inbound
from bot.clock import iso
from bot.commands.parser import ParsedCommand, parse_command
from bot.commands.registry import Asker
from bot.llm.base import Usage
from bot.memory.asks import to_remember, with_line, without_line
from bot.memory.fold import SessionFold
from bot.memory.guards import MAX_BYTES
from bot.memory.snapshot import MemorySnapshot
from bot.memory.transcript import clean_name
from bot.memory.turns import DELIVERY, REPLY
from bot.memory.window import TURN_END
from bot.memory.zone import Edit
from bot.tape.entries import TapeEntry, event, message

COMMAND = "command"

NOT_LEARNED = (
    "What the user asked to remember was not saved just now: long-term memory has it already, or is "
    "full."
)


def message_entry(
    inbound: Inbound,
    timezone: str,
    *,
    queued: bool = False,
    overheard: bool = False,
    replaces: TapeEntry | None = None,
) -> TapeEntry:
    """Return a person's message as an entry; what fixes its rendering is in its meta.

    Args:
        inbound: The message.
        timezone: The user's, by name.
        queued: A turn takes it in later.
        overheard: It asks for no answer.
        replaces: The entry in whose place it is in view: the turn of that had not ended. What came
            with it stays.
    """
    meta = _meta(inbound, timezone)
    if queued or overheard:
        meta["queued"] = True
    if overheard:
        meta["overheard"] = True
    if inbound.edits is not None:
        meta["edits"] = inbound.edits
    if replaces is not None:
        meta["replaces"] = replaces.id
        if (kept := replaces.meta.get("attachments")) is not None:
            meta["attachments"] = kept
    if inbound.quote is not None:
        meta["quote"] = inbound.quote
    if inbound.attachments and "attachments" not in meta:
        meta["attachments"] = [
            {key: value for key, value in asdict(one).items() if value is not None}
            for one in inbound.attachments
        ]
    return message("user", inbound.text, **meta)


def command_entry(inbound: Inbound, parsed: ParsedCommand, timezone: str) -> TapeEntry:
    """Return a command as an event: it is heard, but it is no part of the conversation."""
    data = {"name": parsed.name, "arguments": parsed.arguments}
    return event(COMMAND, data, **_meta(inbound, timezone))


def command_end(
    turn: str,
    inbound: Inbound,
    text: str,
    fold: SessionFold,
    *,
    status: str = "command",
    buttons: Sequence[Button] = (),
    replaces: str | None = None,
) -> list[TapeEntry]:
    """Return the reply to a command, and the end of the turn that it is.

    Args:
        turn: Its id.
        inbound: The command's message.
        text: The reply.
        fold: The session's state.
        status: How it ended.
        buttons: Below the reply.
        replaces: The platform message whose place the reply takes.
    """
    reply: dict[str, Any] = {"text": text}
    if buttons:
        reply["buttons"] = [[button.label, button.command] for button in buttons]
    if replaces is not None:
        reply["replaces"] = replaces
    end = {
        "turn": turn,
        "status": status,
        "answered": True,
        "inbound": [inbound.id],
        "reply_to": inbound.id,
        "usage": Usage().as_json(),
        "pointers": fold.pointers(),
    }
    return [event(REPLY, reply, turn=turn), event(TURN_END, end)]


def delivery_entry(report: DeliveryReport) -> TapeEntry:
    """Return the receipt of an answer, or of a part of it."""
    data: dict[str, Any] = {"turn": report.answer}
    if report.final:
        data["delivered"] = report.delivered
    else:
        data["final"] = False
    if report.platform_ids:
        data["platform_ids"] = list(report.platform_ids)
    if report.error is not None:
        data["error"] = report.error
    return event(DELIVERY, data)


def _meta(inbound: Inbound, timezone: str) -> dict[str, Any]:
    return {
        "sender": {"id": inbound.sender.id, "name": inbound.sender.name, "role": inbound.role},
        "inbound": inbound.id,
        "sent": iso(inbound.sent_at),
        "tz": timezone,
        "private": inbound.private,
    }


def command_in(inbound: Inbound) -> ParsedCommand | None:
    """Return the command that a message is; what is overheard or edited is none."""
    if inbound.edits is not None or not inbound.asks:
        return None
    return parse_command(inbound.text)


def asker_of(inbound: Inbound) -> Asker:
    """Return what commands may know of who gave one."""
    return Asker(inbound.role, inbound.private)


def learned(inbound: Inbound) -> Edit | None:
    """Return the edit of memory that a message asks for in words that code recognises."""
    line = _learned_line(inbound, inbound.text)
    return None if line is None else _change(None, line)


def relearned(inbound: Inbound, original: TapeEntry) -> Edit | None:
    """Return the edit of memory that an edit asks for: what the old text had added goes."""
    old = _learned_line(inbound, str(original.payload.get("content", "")))
    new = _learned_line(inbound, inbound.text)
    return None if old == new else _change(old, new)


def _learned_line(inbound: Inbound, text: str) -> str | None:
    asked = to_remember(text)
    if asked is None or inbound.private:
        return asked
    # In a group "I" is whoever speaks.
    return f"{clean_name(inbound.sender.name)} ({inbound.sender.id}): {asked}"


def _change(old: str | None, new: str | None) -> Edit:
    def change(snapshot: MemorySnapshot) -> MemorySnapshot:
        changed = snapshot.long_term if old is None else without_line(snapshot.long_term, old)
        changed = changed if new is None else with_line(changed, new)
        fits = len(changed.encode("utf-8", "replace")) <= MAX_BYTES
        if changed == snapshot.long_term or not fits:
            return snapshot
        return snapshot.with_long_term(changed)

    return change
