"""Define an entry's labels: problem, layer, tags and name. Pure.

Entries with the same labels share one row of the index, which their documents refer to. Entries
without labels share number 0, which has no row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM, SearchQuery, problem_of


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of an entry.

    Attributes:
        problem: The problem that the entry belongs to.
        layer: The memory layer; empty for none.
        name: Name of an event or anchor; None for other kinds.
        tags: The entry's tags.
    """

    problem: str = GENERAL_PROBLEM
    layer: str = ""
    name: str | None = None
    tags: frozenset[str] = frozenset()


def labels_of(entry: TapeEntry) -> Labels:
    """Return the labels of an entry; malformed ones are left out."""
    layer, tags = entry.meta.get("layer"), entry.meta.get("tags")
    return Labels(
        problem_of(entry),
        layer if isinstance(layer, str) else "",
        entry.name,
        frozenset(tag for tag in tags if isinstance(tag, str))
        if isinstance(tags, list)
        else frozenset(),
    )


def serialize_labels(labels: Labels) -> str:
    """Return labels as text; equal labels give equal texts."""
    parts = [labels.problem, labels.layer, labels.name, sorted(labels.tags)]
    return json.dumps(parts, ensure_ascii=False)


def parse_labels(text: str) -> Labels:
    """Parse labels from the text that ``serialize_labels`` returns; empty text for no labels."""
    if not text:
        return Labels()
    problem, layer, name, tags = json.loads(text)
    return Labels(problem, layer, name, frozenset(tags))


def has_label_filter(query: SearchQuery) -> bool:
    """Return whether a query filters by labels."""
    named = (query.problem, query.layer, query.names)
    return bool(query.tags) or any(one is not None for one in named)


def labels_match(labels: Labels, query: SearchQuery) -> bool:
    """Return whether labels pass a query's filters."""
    return (
        query.problem in (None, labels.problem)
        and query.tags <= labels.tags
        and query.layer in (None, labels.layer)
        and (query.names is None or labels.name in query.names)
    )


def labels_turn(labels: Labels, problem: str) -> bool:
    """Return whether these are the labels of a turn of a problem; turns have no name."""
    return labels.problem == problem and labels.name is None
