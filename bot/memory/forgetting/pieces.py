"""What was found to be forgotten, piece by piece, so that a person can erase some of it. Pure.

Rule 1: pieces are known by numbers of facts and ids of messages, never by words.
Rule 2: a fact that is kept stays believed; a message that is kept loses only the words about what goes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bot.memory.forgetting.survey import Survey
from bot.memory.forgetting.wanted import Spared

Kind = Literal["fact", "facts", "message", "messages", "held"]
MOST_FACTS = 15
"""Facts that are pieces of their own; all others are one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that may be erased or kept.

    Attributes:
        kind: A fact or several, a message or all that are not listed, or what the memory bus holds.
        facts: Numbers of facts.
        place: Tape and id of a message.
    """

    kind: Kind
    facts: tuple[int, ...] = ()
    place: tuple[str, int] = ("", 0)

    def as_json(self) -> list[Any]:
        """Return it as JSON."""
        return [self.kind, list(self.facts), list(self.place)]

    @classmethod
    def read(cls, record: object) -> Piece | None:
        """Return the piece that JSON holds; None where it holds none."""
        match record:
            case [told, [*facts], [str(tape), int(entry)]]:
                kind: Kind | None = next((one for one in get_args(Kind) if one == told), None)
                numbers = tuple(one for one in facts if type(one) is int)
                return cls(kind, numbers, (tape, entry)) if kind is not None else None
        return None


def pieces_of(survey: Survey) -> list[Piece]:
    """Return what would go, each fact and each message that is shown by itself."""
    numbers = [fact.id for fact in survey.facts]
    found = [Piece("fact", (one,)) for one in numbers[:MOST_FACTS]]
    if more := tuple(numbers[MOST_FACTS:]):
        found.append(Piece("facts", more))
    found += [Piece("message", place=place) for place in survey.places]
    if survey.said > len(survey.places):
        found.append(Piece("messages"))
    if survey.held:
        found.append(Piece("held"))
    return found


def spared(pieces: Sequence[Piece], picked: Collection[int]) -> Spared:
    """Return what is kept where only the pieces of these numbers, from 1, are erased."""
    going = [one for number, one in enumerate(pieces, 1) if number in picked]
    kept = [one for number, one in enumerate(pieces, 1) if number not in picked]
    if not kept:
        return Spared()
    return Spared(
        facts=frozenset(number for one in kept for number in one.facts),
        gone=frozenset(one.place for one in going if one.kind == "message"),
        messages=frozenset(one.place for one in kept if one.kind == "message"),
        others=not any(one.kind == "messages" for one in going),
        held=any(one.kind == "held" for one in kept),
    )


def messages_in(pieces: Sequence[Piece], said: int, picked: Collection[int]) -> int:
    """Return how many messages the picked pieces are, of so many in all."""
    listed = sum(one.kind == "message" for one in pieces)
    going = [one.kind for number, one in enumerate(pieces, 1) if number in picked]
    return going.count("message") + (said - listed) * going.count("messages")
