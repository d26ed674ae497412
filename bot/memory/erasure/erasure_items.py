"""List what would be erased as numbered items, of which a person can pick some. Pure.

Rule 1: an item is identified by fact numbers or message ids, never by text.
Rule 2: a kept fact stays active; a kept message loses only the sentences about what is erased.
Rule 3: first stands what goes unless the person picks; then, under the next numbers, what only shares
    a message with it, which stays unless it is picked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bot.memory.erasure.erasure_candidates import ErasurePreview
from bot.memory.erasure.erasure_query import KeptContent

ErasureItemKind = Literal["fact", "facts", "message", "messages", "held", "same", "rest"]
_KEPT_KINDS = frozenset({"same", "rest"})
_MAX_SAME = 10
MAX_LISTED_FACTS = 15
"""Number of facts that are items of their own; all others share one item."""


@dataclass(frozen=True, slots=True)
class ErasureItem:
    """One item that a person may erase or keep.

    Attributes:
        kind: ``fact``, ``facts`` (the rest), ``message`` (whole), ``messages`` (all that is said in
            unlisted ones), ``held`` (records of the memory bus); and of what is kept ``same`` (a
            fact from the same message) or ``rest`` (what is left of a message).
        facts: Numbers of the facts, for ``fact``, ``facts`` and ``same``.
        location: Tape and id, for ``message`` and ``rest``.
    """

    kind: ErasureItemKind
    facts: tuple[int, ...] = ()
    location: tuple[str, int] = ("", 0)

    @property
    def is_kept(self) -> bool:
        """Whether the item stays unless the person picks it."""
        return self.kind in _KEPT_KINDS

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
    """Return the items of a preview, in the order in which they are shown: last what is kept."""
    numbers = [fact.id for fact in survey.facts]
    items = [ErasureItem("fact", (number,)) for number in numbers[:MAX_LISTED_FACTS]]
    if more := tuple(numbers[MAX_LISTED_FACTS:]):
        items.append(ErasureItem("facts", more))
    items += [ErasureItem("message", location=place) for place in survey.message_locations]
    if survey.message_count > len(survey.message_locations) or survey.redacted_by_words:
        items.append(ErasureItem("messages"))
    if survey.affected_records:
        items.append(ErasureItem("held"))
    items += [ErasureItem("same", (one.id,)) for one in survey.facts_of_same_message[:_MAX_SAME]]
    items += [ErasureItem("rest", location=place) for place in survey.redacted_messages]
    return items


def items_to_keep(pieces: Sequence[ErasureItem], picked: Collection[int]) -> KeptContent:
    """Return what is kept if only the items with the picked numbers, from 1, are erased."""
    going = [item for number, item in enumerate(pieces, 1) if number in picked]
    items = [item for number, item in enumerate(pieces, 1) if number not in picked]
    if not items:
        return KeptContent()
    return KeptContent(
        facts=frozenset(number for item in items for number in item.facts),
        erased_messages=frozenset(
            item.location for item in going if item.kind in ("message", "rest")
        ),
        messages=frozenset(item.location for item in items if item.kind == "message"),
        redacts_messages=True,
        keeps_unlisted_messages=not any(item.kind == "messages" for item in going),
        keeps_records=any(item.kind == "held" for item in items),
    )


def picked_facts(pieces: Sequence[ErasureItem], picked: Collection[int]) -> frozenset[int]:
    """Return the numbers of the facts in the picked items, from 1."""
    going = [item for number, item in enumerate(pieces, 1) if number in picked]
    return frozenset(number for item in going for number in item.facts)


def count_messages(pieces: Sequence[ErasureItem], said: int, picked: Collection[int]) -> int:
    """Return the number of whole messages in the picked items.

    Args:
        pieces: All items.
        said: Number of messages in all items.
        picked: Numbers of the picked items, from 1.
    """
    listed = sum(item.kind == "message" for item in pieces)
    going = [item.kind for number, item in enumerate(pieces, 1) if number in picked]
    return going.count("message") + going.count("rest") + (said - listed) * going.count("messages")
