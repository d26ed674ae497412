"""Take a plain yes or no like the press of a button of the question that was asked last.

Rule 1: it counts only as the next message of whom the question was asked, in the chat that asked, as long as the
    question waits; an erasure is asked for again after ten minutes.
Rule 2: it answers the question that was asked of its writer last, also if several wait; of several in one message it
    means none, so what waits is shown. A press in vain says nothing.
Rule 3: if the model asks above the program's question, and text from outside could have had it ask, a call that waits
    is shown again, alone, and an erasure needs its button or command.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from bot.agent.commands.parser import ParsedCommand, parse_command
from bot.agent.commands.plain_words import plain_answer
from bot.bus import PERSON, Inbound
from bot.core.patterns import LazyPattern
from bot.memory.erasure.persons_entries import is_persons_entry
from bot.memory.records.event_names import REPLY
from bot.memory.records.transcript import recorded_at, sender_id
from bot.memory.records.turn_marks import turn_end
from bot.memory.session.scope.identities import identity_at
from bot.memory.session.state.turn_fold import UndeliveredAnswer, string_items
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
_ASKING = LazyPattern(r"(?:memory (?:forget|clear)|unlink|link)\b")
"""Commands, without the slash, that ask before they act, and by which their question is answered in words."""
_ASKS = LazyPattern(r"[?？؟]")


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
    key, me = session.key, identity_at(session.key, inbound.sender.id)
    # The question of a link was sent from another chat, and is on no tape.
    claim = session.memory.scopes.identity_linker.find_waiting_claim(me)
    here = inbound.private and claim is not None and claim.code_owner.session == key
    claimed = claim.at if claim is not None and here and _is_since(inbound, claim.at) else None
    said = await session.tape.read_entries(max(1, session.fold.version - _LOOKED_AT))
    theirs = [entry for entry in said if is_persons_entry(entry)]
    by = {str(entry.meta.get("inbound")): identity_at(key, sender_id(entry)) for entry in theirs}
    turn: dict[str, Any] = {}
    vain: tuple[int, list[str]] = (0, [])
    for entry in reversed(said):
        turn = turn if (end := turn_end(entry)) is None else end.data
        answers = entry.name == REPLY or entry.payload.get("role") == "assistant"
        answers = answers and entry.meta.get("turn") == turn.get("turn")
        sent = str(entry.meta.get("inbound"))
        mine = is_persons_entry(entry) and by[sent] == me
        # What comes by itself, such as a reminder, asks nothing; a press in vain says nothing.
        aside = "cause" in entry.meta or "via" in entry.meta or "via" in entry.data
        if aside or (entry.id, [sent]) == vain or not (answers or mine):
            continue
        answered, at = string_items(turn.get("inbound")), recorded_at(entry)
        if answers and entry.data.get("alone") is True and not entry.data.get("buttons"):
            vain = (entry.id - 1, answered)
            continue
        if claim is not None and claimed is not None and at is not None and at <= claimed:
            return [f"/link {word} {claim.entry}" for word in ("confirm", "refuse")]
        if mine:
            return []
        buttons = UndeliveredAnswer.from_entry("", entry, None, ()).buttons
        commands = [command for _label, command in buttons]
        start = _question_start(commands)
        several = sum(map(bool, map(_CALL.match, commands))) > 1
        commands = [] if start is None else commands[start:]
        number = int(commands[0].split()[1]) if commands and _CALL.match(commands[0]) else 0
        call = session.fold.pending_calls.calls.get(number)
        whom = set(call.asked_by) if call else {by.get(one, "") for one in answered}
        alone = inbound.private and not (all(whom) and whom)
        if alone or whom == {me} or (call and me in whom):
            foreign = call is not None and bool(call.foreign)
            found = _question(session, entry, inbound, commands, foreign)
            return ["/approvals"] if found and several else found
        if me in whom or not all(whom) or not whom:
            return []
    return []


def deciding_commands(commands: Sequence[str], button: int) -> list[str]:
    """Return the yes and the no of a button's question; empty if it has none, or a call's, which knows its own state."""
    start = _question_start(commands)
    if start is None or button < start or _CALL.match(commands[start]):
        return []
    return [commands[start], commands[-1]]


def may_answer(given: ParsedCommand) -> bool:
    """Say whether a command may be the answer to a question, which others need not look for."""
    return _ASKING.match(f"{given.name} {given.arguments}") is not None


def answered_buttons(commands: Sequence[str], given: ParsedCommand) -> Sequence[str]:
    """Return the buttons' commands of a question that a command answers; empty if it answers none."""
    decide = map(parse_command, deciding_commands(commands, len(commands) - 1))
    return commands[_question_start(commands) :] if given in decide else ()


def _question_start(commands: Sequence[str]) -> int | None:
    return max((at for at, one in enumerate(commands) if _YES.match(one)), default=None)


def _is_since(inbound: Inbound, moment: datetime | None) -> bool:
    """Say whether a message was sent after a moment; platforms tell whole seconds."""
    return moment is not None and moment.replace(microsecond=0) <= inbound.sent_at


def _question(
    session: Session, entry: TapeEntry, inbound: Inbound, commands: list[str], foreign: bool
) -> list[str]:
    """Return the commands of the question that an answer asks; empty if it may not be the one that is meant."""
    asked = recorded_at(entry)
    if not commands or asked is None or entry.meta.get("turn") in session.fold.turns.undelivered:
        return []
    above = _ASKS.search(str(entry.payload.get("content") or ""))
    erases = commands[0].startswith(_ERASES)
    valid = asked + (_ERASURE_VALID if erases else _VALID)
    if not _is_since(inbound, asked) or inbound.sent_at > valid:
        return []
    if erases and above and session.fold.outside.since:
        return []
    return ["/approvals", *commands[1:]] if above and foreign else commands
