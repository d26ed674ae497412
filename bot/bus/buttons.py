"""Ids of buttons. A platform gets the id alone; the command stands on the tape of the session that asked.

Rule 1: an id names the session, the entry with the button and its turn, whose random id cannot be guessed.
Rule 2: a press counts in its own chat only; of its topic nothing is known where the message is shown no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.bus.messages import Address, Button, Inbound
from bot.core.errors import InvalidInbound
from bot.core.patterns import LazyPattern

_ID = LazyPattern(r"([0-9a-f]{16})\.(\d{1,15})\.(\d{1,3})@(\S{1,600})")


def button_id(session: Address, shown: Address, turn: str, entry: int, index: int) -> str:
    """Return the id of a button, short where it is shown on its session's own channel."""
    key = session.session
    if session.channel == shown.channel:
        key = key.removeprefix(session.channel)
    return f"{turn.rpartition('-')[2]}.{entry}.{index}@{key}"


def pressed_button(inbound: Inbound) -> tuple[str, int, int] | None:
    """Return the turn, the entry and the index of a pressed button; None if nothing with an id was."""
    found = None if inbound.pressed_message_id is None else _ID.fullmatch(inbound.text)
    return None if found is None else (f"turn-{found[1]}", int(found[2]), int(found[3]))


def address_press(inbound: Inbound) -> Inbound:
    """Return a press as a message to its button's session, if that is in the chat; any other as it is."""
    found = None if inbound.pressed_message_id is None else _ID.fullmatch(inbound.text)
    if found is None:
        return inbound
    here, key = inbound.address, found[4]
    try:
        there = Address.parse(f"{here.channel}{key}" if key.startswith(":") else key)
    except InvalidInbound:
        return inbound
    same_chat = (there.channel, there.chat_id) == (here.channel, here.chat_id)
    return replace(inbound, address=there) if same_chat else inbound


def tape_buttons(
    pairs: Iterable[tuple[str, str]], session: Address, shown: Address, turn: str, entry: int
) -> tuple[Button, ...]:
    """Return the buttons of an answer on a tape: labels and commands with their ids."""
    return tuple(
        Button(label, command, button_id(session, shown, turn, entry, index))
        for index, (label, command) in enumerate(pairs)
    )
