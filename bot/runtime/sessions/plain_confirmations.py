"""Take a plain yes or no like the press of a button of the question that was asked last.

Rule 1: it counts only as the next message of whom the question answers, in the chat that asked, as long as the
    question waits; an erasure is asked for again after ten minutes.
Rule 2: it answers the question that was asked last, also if several wait.
Rule 3: where the model asks above the program's question, an erasure must be what it asks for, too; and if text from
    outside could have had it ask, what waits for a yes is shown again, alone.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from bot.memory.session.scope.identities import identity_at
from bot.runtime.sessions.session import Session
from bot.tape.entries import TapeEntry

_VALID = timedelta(days=1)
_ERASURE_VALID = timedelta(minutes=10)
_LOOKED_AT = 200
_ERASES = "/memory forget yes "  # for the parser
_CALL = LazyPattern(r"/approve \d{1,9}(?: |$)")
_YES = LazyPattern(
    r"/(?:approve \d|memory (?:forget|clear) yes\b|unlink yes\b|link (?:confirm\b|\S+ yes$))"
)
"""Commands of buttons that say yes; the last button beside one says no."""
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
    if answer is None:
        return None
    if (known := session.fold.turns.unanswered_commands.get(inbound.id)) is not None:
        # A killed process has recorded what the message stands for.
        entries = await session.tape.read_entries(known, known)
        told = (f"/{entry.data.get('name')} {entry.data.get('arguments')}" for entry in entries)
        return parse_command(next(told, ""))
    buttons = await _asked(session, inbound)
    return parse_command(buttons[0 if answer else -1]) if buttons else None


def _is_plain(inbound: Inbound) -> bool:
    beside = inbound.quote or inbound.attachments or inbound.edited_message_id or inbound.answer_to
    return inbound.expects_answer and inbound.cause == PERSON and not beside


async def _asked(session: Session, inbound: Inbound) -> list[str]:
    """Return the commands of the question that a message answers, yes first and no last; empty if it answers none."""
    linker, me = session.memory.scopes.identity_linker, inbound.sender.id
    # The question of a link was sent from another chat, and is not on this tape.
    claim = linker.find_waiting_claim(identity_at(session.key, me)) if inbound.private else None
    asked: list[str] = []
    first = session.fold.version - _LOOKED_AT
    async with aclosing(session.tape.read_back()) as entries:
        async for entry in entries:
            if entry.id < first:
                break
            answers = entry.name == REPLY or entry.payload.get("role") == "assistant"
            # What comes by itself, such as a reminder, asks nothing.
            aside = "cause" in entry.meta or "via" in entry.meta or "via" in entry.data
            if aside or not (answers or is_persons_entry(entry)):
                continue
            at = recorded_at(entry)
            if claim is not None and claim.at is not None and at is not None and at <= claim.at:
                return [f"/link {word} {claim.entry}" for word in ("confirm", "refuse")]
            claim = None
            if not answers and (asked or sender_id(entry) == me):
                return asked if sender_id(entry) == me else []
            if answers and not asked:
                asked = _question(session, entry, inbound)
                if not asked:
                    return []
    return []


def deciding_commands(commands: Sequence[str], button: int) -> list[str]:
    """Return the yes and the no of a button's question; empty if it has none, or a call's, which knows its own state."""
    start = _question_start(commands)
    if start is None or button < start or _CALL.match(commands[start]):
        return []
    return [commands[start], commands[-1]]


def _question_start(commands: Sequence[str]) -> int | None:
    return max((at for at, one in enumerate(commands) if _YES.match(one)), default=None)


def _question(session: Session, entry: TapeEntry, inbound: Inbound) -> list[str]:
    """Return the commands of the last question that an answer asks; empty if it may not be the one that is meant."""
    buttons = entry.data.get("buttons") or entry.payload.get("buttons") or []
    commands = [str(button[1]) for button in buttons if isinstance(button, list) and button[1:]]
    last = _question_start(commands)
    asked = recorded_at(entry)
    if last is None or asked is None or entry.meta.get("turn") in session.fold.turns.undelivered:
        return []
    yes, above = commands[last], _ASKED.findall(str(entry.payload.get("content") or ""))
    erases = yes.startswith(_ERASES)
    valid = asked + (_ERASURE_VALID if erases else _VALID)
    if not asked.replace(microsecond=0) <= inbound.sent_at <= valid:
        return []
    if erases and not all(map(asks_to_forget, above)):
        return []
    call = session.fold.pending_calls.calls.get(int(yes.split()[1])) if _CALL.match(yes) else None
    if above and call is not None and call.foreign:
        return ["/approvals", *commands[last + 1 :]]
    return commands[last:]
