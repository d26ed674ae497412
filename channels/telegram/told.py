"""What stands for a Telegram message that is neither text nor file.

Rule 1: among the sender's own words stands only what the sender has written, or nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aiogram.types import Message


@dataclass(frozen=True, slots=True)
class Told:
    """A message in words.

    Attributes:
        text: What it is; empty for a service message.
        content: What somebody else has written in it, in one line.
    """

    text: str = ""
    content: str = ""

    @property
    def whole(self) -> str:
        """All of it."""
        return f"{self.text} {self.content}".strip()

    @property
    def quote(self) -> str:
        """The content under a line on what it is of."""
        kind = self.text.strip("()").partition(":")[0]
        return f"From the {kind}:\n{self.content}" if self.content else ""


def told_of(message: Message) -> Told:
    """Return what stands for a message that is neither text nor file."""
    return next(iter((*_of_person(message), *_of_place(message), *_of_list(message))), Told())


def _of_person(message: Message) -> Iterator[Told]:
    if sticker := message.sticker:
        yield Told(f"(sticker {sticker.emoji})" if sticker.emoji else "(sticker)")
    if contact := message.contact:
        name = " ".join(filter(None, (contact.first_name, contact.last_name)))
        yield Told("(contact)", _line(name, contact.phone_number))
    if dice := message.dice:
        yield Told(f"(dice {dice.emoji}: {dice.value})")
    if message.story:
        yield Told("(a story, which bots cannot see)")
    if message.paid_media:
        yield Told("(paid media, which bots cannot see)")


def _of_place(message: Message) -> Iterator[Told]:
    if venue := message.venue:
        place = venue.location
        where = f"(place: {place.latitude}, {place.longitude})"
        yield Told(where, _line(venue.title, venue.address))
    if location := message.location:
        yield Told(f"(location: {location.latitude}, {location.longitude})")


def _of_list(message: Message) -> Iterator[Told]:
    if poll := message.poll:
        options = "; ".join(option.text for option in poll.options)
        yield Told(f"(poll: {poll.question} Options: {options})")
    if checklist := message.checklist:
        tasks = "; ".join(task.text for task in checklist.tasks)
        yield Told(f"(checklist: {checklist.title}: {tasks})")
    if game := message.game:
        yield Told("(game)", _line(game.title))


def _line(*parts: str) -> str:
    return " ".join(", ".join(parts).split())
