"""What was found to be forgotten, piece by piece, so that a person can erase some of it. Pure.

Rule 1: pieces are known by numbers of facts and ids of messages, never by words.
Rule 2: a fact that is kept stays believed; a message that is kept loses only the words about what goes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bot.memory.forgetting.erasure_candidates import ErasurePreview
from bot.memory.forgetting.erasure_query import KeptContent

ErasureItemKind = Literal["fact", "facts", "message", "messages", "held"]
MAX_LISTED_FACTS = 15
"""Facts that are pieces of their own; all others are one."""


@dataclass(frozen=True, slots=True)
class ErasureItem:
    """Something that may be erased or kept.

    Attributes:
        kind: A fact or several, a message or all that are not listed, or what the memory bus holds.
        facts: Numbers of facts.
        location: Tape and id of a message.
    """

    kind: ErasureItemKind
    facts: tuple[int, ...] = ()
    location: tuple[str, int] = ("", 0)

    def as_json(self) -> list[Any]:
        """Return it as JSON."""
        return [self.kind, list(self.facts), list(self.location)]

    @classmethod
    def from_json(cls, record: object) -> ErasureItem | None:
        """Return the piece that JSON holds; None where it holds none."""
        match record:
            case [told, [*facts], [str(tape), int(entry)]]:
                kind: ErasureItemKind | None = next(
                    (one for one in get_args(ErasureItemKind) if one == told), None
                )
                numbers = tuple(one for one in facts if type(one) is int)
                return cls(kind, numbers, (tape, entry)) if kind is not None else None
        return None


def list_items(survey: ErasurePreview) -> list[ErasureItem]:
    """Return what would go, each fact and each message that is shown by itself."""
    numbers = [fact.id for fact in survey.facts]
    found = [ErasureItem("fact", (one,)) for one in numbers[:MAX_LISTED_FACTS]]
    if more := tuple(numbers[MAX_LISTED_FACTS:]):
        found.append(ErasureItem("facts", more))
    found += [ErasureItem("message", location=place) for place in survey.message_locations]
    if survey.message_count > len(survey.message_locations):
        found.append(ErasureItem("messages"))
    if survey.affected_records:
        found.append(ErasureItem("held"))
    return found


def items_to_keep(pieces: Sequence[ErasureItem], picked: Collection[int]) -> KeptContent:
    """Return what is kept where only the pieces of these numbers, from 1, are erased."""
    going = [one for number, one in enumerate(pieces, 1) if number in picked]
    kept = [one for number, one in enumerate(pieces, 1) if number not in picked]
    if not kept:
        return KeptContent()
    return KeptContent(
        facts=frozenset(number for one in kept for number in one.facts),
        erased_messages=frozenset(one.location for one in going if one.kind == "message"),
        messages=frozenset(one.location for one in kept if one.kind == "message"),
        keeps_unlisted_messages=not any(one.kind == "messages" for one in going),
        keeps_records=any(one.kind == "held" for one in kept),
    )


def count_messages(pieces: Sequence[ErasureItem], said: int, picked: Collection[int]) -> int:
    """Return how many messages the picked pieces are, of so many in all."""
    listed = sum(one.kind == "message" for one in pieces)
    going = [one.kind for number, one in enumerate(pieces, 1) if number in picked]
    return going.count("message") + (said - listed) * going.count("messages")
