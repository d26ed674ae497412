"""List what would be erased as numbered items, of which a person can pick some. Pure.

Rule 1: an item is identified by fact numbers or entry ids, never by text.
Rule 2: first stands what goes unless the person picks; then, under the next numbers, what stays unless
    it is picked: facts from the same messages, and messages that a search found near.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.memory.erasure.erasure_candidates import ErasurePreview
from bot.memory.erasure.erasure_query import EntryLocation, PickedContent

ErasureItemKind = Literal["fact", "facts", "message", "messages", "held", "same", "near"]
_MAX_LISTED_FACTS = 15
_MAX_SAME = 10


@dataclass(frozen=True, slots=True)
class ErasureItem:
    """One item that a person may erase or keep."""

    kind: ErasureItemKind
    facts: tuple[int, ...] = ()
    location: EntryLocation = ("", 0)

    @property
    def is_kept(self) -> bool:
        """Whether the item stays unless the person picks it."""
        return self.kind in ("same", "near")


def list_items(preview: ErasurePreview) -> list[ErasureItem]:
    """Return the items of a preview, in the order in which they are shown: last what is kept."""
    numbers = [fact.id for fact in preview.facts]
    items = [ErasureItem("fact", (number,)) for number in numbers[:_MAX_LISTED_FACTS]]
    if more := tuple(numbers[_MAX_LISTED_FACTS:]):
        items.append(ErasureItem("facts", more))
    items += [ErasureItem("message", location=place) for place in preview.listed_messages]
    if preview.message_count > len(preview.listed_messages):
        items.append(ErasureItem("messages"))
    if any(preview.affected_records):
        items.append(ErasureItem("held"))
    items += [ErasureItem("same", (one.id,)) for one in preview.facts_of_same_message[:_MAX_SAME]]
    return items + [ErasureItem("near", location=place) for place in preview.near]


def picked_content(items: Sequence[ErasureItem], picked: Collection[int]) -> PickedContent:
    """Return what the items with the picked numbers, from 1, stand for."""
    going = [item for number, item in enumerate(items, 1) if number in picked]
    return PickedContent(
        facts=frozenset(number for item in going for number in item.facts),
        entries=frozenset(item.location for item in going if item.kind in ("message", "near")),
        unlisted=any(item.kind == "messages" for item in going),
        listed=frozenset(item.location for item in items if item.kind == "message"),
        records=any(item.kind == "held" for item in going),
        everything=all(item in going for item in items if not item.is_kept),
    )


def count_messages(items: Sequence[ErasureItem], messages: int, picked: Collection[int]) -> int:
    """Return the number of messages in the picked items."""
    listed = sum(item.kind == "message" for item in items)
    going = [item.kind for number, item in enumerate(items, 1) if number in picked]
    single = going.count("message") + going.count("near")
    return single + (messages - listed) * going.count("messages")
