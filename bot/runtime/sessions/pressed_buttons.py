"""Find the command of a pressed button on the tape of its session."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import aclosing

from bot.agent.commands.parser import ParsedCommand, parse_command
from bot.bus import Inbound
from bot.bus.buttons import pressed_button
from bot.memory.records.event_names import COMMAND, REPLY
from bot.memory.session.state.turn_fold import UndeliveredAnswer
from bot.runtime.sessions.plain_confirmations import deciding_commands
from bot.runtime.sessions.session import Session

_LOOKED_AT = 1_000


async def pressed_command(session: Session, inbound: Inbound) -> ParsedCommand | None:
    """Return the command of a pressed button; None if it is gone, or was carried out by a press before.

    Raises:
        TapeError: The tape cannot be read.
    """
    pressed = pressed_button(inbound)
    assert pressed is not None
    turn, number, index = pressed
    entries = await session.tape.read_entries(number, number)
    buttons = UndeliveredAnswer.from_entry(turn, entries[0], None, ()).buttons if entries else ()
    if index >= len(buttons) or entries[0].meta.get("turn") != turn:
        return None
    commands = [command for _label, command in buttons]
    own, *decide = map(parse_command, (commands[index], *deciding_commands(commands, index)))
    return None if await _is_over(session, inbound, number, own, decide) else own


async def _is_over(
    session: Session,
    inbound: Inbound,
    number: int,
    own: ParsedCommand | None,
    decide: Collection[ParsedCommand | None],
) -> bool:
    """Say whether the tape was reset since a button's entry, its question was decided, or its command changed the message."""
    replaced, done, looked = False, False, 0
    async with aclosing(session.tape.read_back()) as entries:
        async for entry in entries:
            looked += 1
            data = entry.data
            if entry.is_reset:
                return True
            if entry.id <= number or looked == _LOOKED_AT:
                return entry.id > number and bool(decide)  # too long ago to be sure
            if entry.name == COMMAND:
                given = ParsedCommand(str(data.get("name")), str(data.get("arguments")))
                if (replaced and given == own) or (done and given in decide):
                    return True
                replaced = done = False
            elif entry.name == REPLY:
                done = data.get("unchanged") is not True
            if (data.get("replaces"), data.get("via")) == (inbound.pressed_message_id, None):
                replaced = True
    return False
