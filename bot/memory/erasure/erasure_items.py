"""List what would be erased as numbered items, of which a person can pick some. Pure.

Rule 1: an item is identified by fact numbers or message ids, never by text.
Rule 2: a kept fact stays active; a kept message loses only the words about what is erased.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bot.memory.erasure.erasure_candidates import ErasurePreview
from bot.memory.erasure.erasure_query import KeptContent

ErasureItemKind = Literal["fact", "facts", "message", "messages", "held"]
MAX_LISTED_FACTS = 15
"""Number of facts that are items of their own; all others share one item."""


@dataclass(frozen=True, slots=True)
class ErasureItem:
    """One item that a person may erase or keep.

    Attributes:
        kind: ``fact``, ``facts`` (the rest), ``message``, ``messages`` (all unlisted ones), or
            ``held`` (records of the memory bus).
        facts: Numbers of the facts, for the first two kinds.
        location: Tape and id, for ``message``.
    """

    kind: ErasureItemKind
    facts: tuple[int, ...] = ()
    location: tuple[str, int] = ("", 0)

    def as_json(self) -> list[Any]:
        """Return the item as JSON."""
        return [self.kind, list(self.facts), list(self.location)]

    @classmethod
    def from_json(cls, record: object) -> ErasureItem | None:
        """Parse ``as_json`` output; return None for anything else."""
        match record:
            case [told, [*facts], [str(tape), int(entry)]]:
                kind: ErasureItemKind | None = next(
                    (get_arg for get_arg in get_args(ErasureItemKind) if get_arg == told), None
                )
                numbers = tuple(fact for fact in facts if type(fact) is int)
                return cls(kind, numbers, (tape, entry)) if kind is not None else None
        return None


def list_items(survey: ErasurePreview) -> list[ErasureItem]:
    """Return the items of a preview, in the order in which they are shown."""
    numbers = [fact.id for fact in survey.facts]
    items = [ErasureItem("fact", (number,)) for number in numbers[:MAX_LISTED_FACTS]]
    if more := tuple(numbers[MAX_LISTED_FACTS:]):
        items.append(ErasureItem("facts", more))
    items += [ErasureItem("message", location=place) for place in survey.message_locations]
    if survey.message_count > len(survey.message_locations):
        items.append(ErasureItem("messages"))
    if survey.affected_records:
        items.append(ErasureItem("held"))
    return items


def items_to_keep(pieces: Sequence[ErasureItem], picked: Collection[int]) -> KeptContent:
    """Return what is kept if only the items with the picked numbers, from 1, are erased."""
    going = [item for number, item in enumerate(pieces, 1) if number in picked]
    items = [item for number, item in enumerate(pieces, 1) if number not in picked]
    if not items:
        return KeptContent()
    return KeptContent(
        facts=frozenset(number for item in items for number in item.facts),
        erased_messages=frozenset(item.location for item in going if item.kind == "message"),
        messages=frozenset(item.location for item in items if item.kind == "message"),
        keeps_unlisted_messages=not any(item.kind == "messages" for item in going),
        keeps_records=any(item.kind == "held" for item in items),
    )


def count_messages(pieces: Sequence[ErasureItem], said: int, picked: Collection[int]) -> int:
    """Return the number of messages in the picked items.

    Args:
        pieces: All items.
        said: Number of messages in all items.
        picked: Numbers of the picked items, from 1.
    """
    listed = sum(item.kind == "message" for item in pieces)
    going = [item.kind for number, item in enumerate(pieces, 1) if number in picked]
    return going.count("message") + (said - listed) * going.count("messages")
