"""What the channel remembers of the last messages, in memory only and bounded.

Rule 1: forgetting does little harm: an edit is published that changes nothing, a quote is kept that
the conversation holds already, a part of an album is edited for itself, typing is not seen in a
forum's General topic.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

from channels.telegram.gathering import joined_text
from channels.telegram.reading import Event

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_MOST_CHATS = 1_000
_MOST_MESSAGES = 5_000
_MOST_PARTS = 1_000


@dataclass(frozen=True, slots=True)
class _Whole:
    """Messages that were published as one.

    Attributes:
        id: The id under which they were.
        texts: What each says now, by its own id, in order.
        asks: It was for the bot.
    """

    id: str
    texts: dict[str, str]
    asks: bool


class Recent:
    """The bot's last answer in each chat, and what people's last messages said."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[str, frozenset[str]]] = OrderedDict()
        self._said: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._parts: OrderedDict[tuple[str, str], _Whole] = OrderedDict()
        self._forums: OrderedDict[str, bool] = OrderedDict()

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
        _keep(self._said, _key(event), _mark(event), _MOST_MESSAGES)

    def seen(self, event: Event) -> None:
        """Note what kind of chat something was said in."""
        _keep(self._forums, event.address.chat_id, event.forum, _MOST_CHATS)

    def is_forum(self, chat_id: str) -> bool:
        """Return whether a group is known to have topics."""
        return self._forums.get(chat_id, False)

    def gathered(self, events: list[Event], *, asks: bool) -> None:
        """Note that messages are published as one."""
        whole = _Whole(events[0].message, {one.message: one.text for one in events}, asks)
        for event in events:
            _keep(self._parts, _key(event), whole, _MOST_PARTS)

    def corrected(self, event: Event) -> tuple[str, str]:
        """Return what an edit is of, as it was published, and all that it says from now on."""
        whole = self._parts.get(_key(event))
        if whole is None:
            return event.message, event.text
        whole.texts[event.message] = event.text
        return whole.id, joined_text(whole.texts.values())

    def asked(self, event: Event) -> bool:
        """Return whether an edit is of a part of what was for the bot."""
        whole = self._parts.get(_key(event))
        return whole is not None and whole.asks

    def says(self, event: Event) -> bool:
        """Return whether a message is known to say just this."""
        return self._said.get(_key(event)) == _mark(event)


def _key(event: Event) -> tuple[str, str]:
    return event.address.session, event.message


def _mark(event: Event) -> int:
    return hash((event.text, event.quote if event.passed_on else None))


def _keep(kept: OrderedDict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
