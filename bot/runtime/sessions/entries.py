"""Build the entries that a session's worker writes around turns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from bot.agent.commands.parser import ParsedCommand, parse_command
from bot.agent.commands.registry import CommandAuthor
from bot.bus import PERSON, Button, Cause, DeliveryReport, Inbound, OutgoingFile
from bot.core.clock import format_time
from bot.core.reasons import reason_json
from bot.llm.base import Usage
from bot.memory.records.attachments import EntryAttachment, attachment_record
from bot.memory.records.conversation_entries import AUTOMATION, MEANWHILE, TURN_END
from bot.memory.records.event_names import (
    COMMAND,
    REPLY,
)
from bot.memory.records.evidence import GRANT, MEMORY_PAUSED
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.turn_fold import DELIVERY
from bot.tape.entries import TapeEntry, event, message


def message_entry(
    inbound: Inbound,
    timezone: str,
    *,
    queued: bool = False,
    overheard: bool = False,
    replaces: TapeEntry | None = None,
    paused: bool = False,
) -> TapeEntry:
    """Return a message as an entry; its meta holds what determines how it is rendered.

    What no person said has the role ``automation``, so that nothing is learned from it.

    Args:
        inbound: The message.
        timezone: The user's, by name.
        queued: Whether a later turn takes it in.
        overheard: Whether it asks for no answer.
        replaces: The unanswered message that this edit replaces in view; its attachments are kept.
        paused: Whether memory is paused, so that nothing is learned from it.
    """
    meta = _meta(inbound, timezone)
    if paused:
        meta[MEMORY_PAUSED] = True
    if queued or overheard:
        meta["queued"] = True
    if overheard:
        meta["overheard"] = True
    if inbound.edited_message_id is not None:
        meta["edits"] = inbound.edited_message_id
    if replaces is not None:
        meta["replaces"] = replaces.id
        if (kept := replaces.meta.get("attachments")) is not None:
            meta["attachments"] = kept
    if inbound.quote is not None:
        meta["quote"] = inbound.quote
    if inbound.cause != PERSON:
        return message(AUTOMATION, inbound.text, **meta, cause=inbound.cause.as_json())
    return message("user", inbound.text, **meta)


def command_entry(inbound: Inbound, parsed: ParsedCommand, timezone: str) -> TapeEntry:
    """Return a command as an event: it is recorded, but is no part of the conversation."""
    data = {"name": parsed.name, "arguments": parsed.arguments}
    return event(COMMAND, data, **_meta(inbound, timezone))


def command_end_entries(
    turn: str,
    inbound: Inbound,
    text: str,
    *,
    status: str = "command",
    buttons: Sequence[Button] = (),
    replaces: str | None = None,
    files: Sequence[OutgoingFile] = (),
    unchanged: bool = False,
) -> list[TapeEntry]:
    """Return the reply to a command and the end of its turn.

    Args:
        turn: The turn's id.
        inbound: The command's message.
        text: The reply.
        status: How the turn ended.
        buttons: Buttons below the reply.
        replaces: Platform id of the message that the reply replaces.
        files: Files sent with the reply, from the folder for exports.
        unchanged: Whether nothing was done: then a reply to a press is for who pressed alone.
    """
    reply: dict[str, Any] = {"text": text}
    if unchanged:
        reply |= {"unchanged": True, "alone": inbound.pressed_message_id is not None}
    if buttons:
        reply["buttons"] = [[button.label, button.command] for button in buttons]
    if replaces is not None:
        reply["replaces"] = replaces
    if files:
        # File names alone: a tape must not contain this machine's paths.
        reply["files"] = [[file.name, file.path.name] for file in files]
    end: dict[str, Any] = {
        "turn": turn,
        "status": status,
        "answered": True,
        "inbound": [inbound.id],
        "reply_to": inbound.id,
        "usage": Usage().as_json(),
    }
    if inbound.answer_to is not None:
        # In the reply as well: undelivered replies are read from there.
        reply["via"] = end["via"] = inbound.answer_to.session
    return [event(REPLY, reply, turn=turn), event(TURN_END, end)]


def answer_end_entries(
    turn: str,
    inbound: Inbound,
    text: str,
    fold: SessionFold,
    *,
    cause: Cause,
    problem: str,
    status: str,
    buttons: Sequence[Button] = (),
) -> list[TapeEntry]:
    """Return a message that no person caused, and the end of its turn.

    Args:
        turn: The turn's id.
        inbound: What the message answers.
        text: The message.
        fold: The session's state.
        cause: What caused it.
        problem: The problem that it belongs to.
        status: How the turn ended.
        buttons: Buttons below the message.
    """
    said = message("assistant", text, turn=turn, cause=cause.as_json(), problem=problem)
    if fold.turns.open_turn is not None:
        said = said.with_meta(**{MEANWHILE: True})
    if buttons:
        pairs = [[button.label, button.command] for button in buttons]
        said = replace(said, payload={**said.payload, "buttons": pairs})
    end = {
        "turn": turn,
        "status": status,
        "answered": True,
        "inbound": [inbound.id],
        "reply_to": None,
        "usage": Usage().as_json(),
    }
    return [said, event(TURN_END, end)]


def delivery_entry(report: DeliveryReport) -> TapeEntry:
    """Return the receipt of an answer or of a part of it."""
    data: dict[str, Any] = {"turn": report.answer}
    if report.final:
        data["delivered"] = report.delivered
    else:
        data["final"] = False
    if report.platform_ids:
        data["platform_ids"] = list(report.platform_ids)
    if report.error is not None:
        data["error"] = reason_json(report.error)
    return event(DELIVERY, data)


def _meta(inbound: Inbound, timezone: str) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "sender": {"id": inbound.sender.id, "name": inbound.sender.name, "role": inbound.role},
        "inbound": inbound.id,
        "sent": format_time(inbound.sent_at),
        "tz": timezone,
        "private": inbound.private,
    }
    if inbound.answer_to is not None:
        meta["via"] = inbound.answer_to.session
    if inbound.moved_to is not None:
        meta["moved"] = [inbound.address.chat_id, inbound.moved_to]
    if inbound.parts:
        meta["parts"] = [list(part) for part in inbound.parts]
    if inbound.attachments:
        meta["attachments"] = [
            attachment_record(EntryAttachment(**asdict(attachment)))
            for attachment in inbound.attachments
        ]
    if inbound.grant is not None:
        meta[GRANT] = inbound.grant.as_json()
    return meta


def parsed_command(inbound: Inbound) -> ParsedCommand | None:
    """Return the command in a message; None for what cannot give one."""
    return parse_command(inbound.text) if is_to_answer(inbound) else None


def is_to_answer(inbound: Inbound) -> bool:
    """Say whether a person wrote a new message to the bot: no overheard one, and no edit."""
    return inbound.edited_message_id is None and inbound.expects_answer and inbound.cause == PERSON


def command_author(inbound: Inbound) -> CommandAuthor:
    """Return who gave a command.

    Ids count only on their own channel: an author on another surface gets an id with its channel as
    prefix.
    """
    sender, via = inbound.sender.id, inbound.answer_to
    who = sender if via is None else f"{via.channel}:{sender}"
    return CommandAuthor(inbound.role, inbound.private, who, inbound.id, inbound.grant)
