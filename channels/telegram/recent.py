"""What the channel remembers of the last messages, in memory only and bounded.

Rule 1: forgetting does no harm: an edit is published that changes nothing, a quote is kept that the
conversation holds already.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

from channels.telegram.reading import Event

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_MOST_CHATS = 1_000
_MOST_MESSAGES = 5_000


class Recent:
    """The bot's last answer in each chat, and what people's last messages said."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[str, frozenset[str]]] = OrderedDict()
        self._said: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._parts: OrderedDict[tuple[str, str], str] = OrderedDict()

    def shown(self, session: str, answer: str, message_id: str) -> None:
        """Note a message that carries an answer, or a part of it."""
        known = self._answers.get(session)
        before: frozenset[str] = known[1] if known and known[0] == answer else frozenset()
        _keep(self._answers, session, (answer, before | {message_id}), _MOST_CHATS)

    def last_answer(self, session: str, message_id: str) -> bool:
        """Return whether a message carries the bot's last answer in its chat."""
        known = self._answers.get(session)
        return known is not None and message_id in known[1]

    def said(self, event: Event) -> None:
        """Note what a person's message says now."""
        _keep(self._said, (event.address.session, event.message), hash(event.text), _MOST_MESSAGES)

    def part(self, event: Event, first: Event) -> None:
        """Note that a message was published as a part of another."""
        _keep(self._parts, (event.address.session, event.message), first.message, _MOST_MESSAGES)

    def whole(self, event: Event) -> str:
        """Return the id under which an event's message was published."""
        return self._parts.get((event.address.session, event.message), event.message)

    def says(self, event: Event) -> bool:
        """Return whether a message is known to say just this."""
        return self._said.get((event.address.session, event.message)) == hash(event.text)


def _keep(kept: OrderedDict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
