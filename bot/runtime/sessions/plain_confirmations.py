"""Take a plain yes or no right after the question of an erasure like the press of its button.

Rule 1: it counts only as the next message after the question, by the person who asked, in the chat that
    asked, within a short time.
Rule 2: it counts only if nothing else is asked: no call waits for a yes, and the answer above the
    question asks nothing else.
"""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta

from bot.agent.commands.parser import ParsedCommand, parse_command
from bot.bus import PERSON, Inbound
from bot.core.patterns import LazyPattern
from bot.language.forget_requests import asks_to_forget
from bot.language.plain_answers import plain_answer
from bot.memory.erasure.persons_entries import is_persons_entry
from bot.memory.records.event_names import REPLY
from bot.memory.records.transcript import recorded_at, sender_id
from bot.runtime.sessions.session import Session
from bot.tape.entries import TapeEntry

_VALID = timedelta(minutes=10)
_LOOKED_AT = 200
# From the start of a sentence only, so that a long text takes linear time.
_ASKED = LazyPattern(r"(?<![^.!?。！？\n])[^.!?。！？\n]*[?？]")


async def confirmation_command(session: Session, inbound: Inbound) -> ParsedCommand | None:
    """Return the command that a plain yes or no stands for; None if the message is none.

    Args:
        session: The session, before the message is on its tape.
        inbound: The message.

    Raises:
        TapeError: The tape cannot be read.
    """
    answer = plain_answer(inbound.text) if _is_plain(inbound) else None
    turns = session.fold.turns
    if answer is None or turns.open_turn is not None:
        return None
    if (known := turns.unanswered_commands.get(inbound.id)) is not None:
        # A killed process has recorded what the message stands for.
        entries = await session.tape.read_entries(known, known)
        told = (f"/{entry.data.get('name')} {entry.data.get('arguments')}" for entry in entries)
        return parse_command(next(told, ""))
    if turns.undelivered or session.fold.pending_calls.waiting:
        return None
    command = await _asked_command(session, inbound)
    if command is None:
        return None
    from bot.memory.erasure.erasure_messages import confirmed_request

    return parse_command(command if answer else f"/memory forget no {confirmed_request(command)}")


def _is_plain(inbound: Inbound) -> bool:
    beside = inbound.quote or inbound.attachments or inbound.edited_message_id or inbound.answer_to
    return inbound.expects_answer and inbound.cause == PERSON and not beside


async def _asked_command(session: Session, inbound: Inbound) -> str | None:
    """Return the command of the question's button, if the newest answer asks that question."""
    command: str | None = None
    looked = 0
    async with aclosing(session.tape.read_back()) as entries:
        async for entry in entries:
            looked += 1
            if is_persons_entry(entry):
                return command if sender_id(entry) == inbound.sender.id else None
            answers = entry.name == REPLY or entry.payload.get("role") == "assistant"
            if answers and command is None:
                command = _command_of(entry, inbound)
            if (answers and command is None) or looked == _LOOKED_AT:
                return None
    return None


def _command_of(entry: TapeEntry, inbound: Inbound) -> str | None:
    """Return the command that confirms, if an answer asks for nothing else and is recent."""
    asked = recorded_at(entry)
    if asked is None or not asked.replace(microsecond=0) <= inbound.sent_at <= asked + _VALID:
        return None
    buttons = entry.data.get("buttons") or entry.payload.get("buttons") or []
    commands = [str(button[1]) for button in buttons if isinstance(button, list) and button[1:]]
    text = str(entry.payload.get("content") or "")
    if not commands or not all(map(asks_to_forget, _ASKED.findall(text))):
        return None
    from bot.memory.erasure.erasure_messages import confirmed_request

    return next((one for one in commands if confirmed_request(one) is not None), None)
