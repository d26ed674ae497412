"""Group entries of a tape by all that a search filters by: kind, sender, problem, layer, name, tags. Pure.

Each group has one row of the index, which its documents refer to.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM, SearchQuery, problem_of

ASSISTANT_SENDER = "assistant"


class Group(NamedTuple):
    """What the entries of a group have in common.

    Attributes:
        kind: Their kind.
        sender: Platform id and display name of the sender; both empty if there is none.
        problem: The problem that they belong to.
        layer: The memory layer; empty for none.
        name: Name of an event or anchor; None for other kinds.
        tags: Their tags.
    """

    kind: str
    sender: tuple[str, str] = ("", "")
    problem: str = GENERAL_PROBLEM
    layer: str = ""
    name: str | None = None
    tags: frozenset[str] = frozenset()

    @property
    def by_assistant(self) -> bool:
        """Whether the assistant sent them."""
        return self.sender[0] == ASSISTANT_SENDER

    def encode(self) -> bytes:
        """Return the group as bytes, since SQLite's text cannot hold lone surrogates."""
        told = json.dumps([*self[:-1], sorted(self.tags)], ensure_ascii=False)
        return told.encode("utf-8", "surrogatepass")

    def passes(self, query: SearchQuery) -> bool:
        """Return whether these entries pass a query's filters, but for time and place."""
        if self.kind not in query.kinds if query.kinds is not None else self.kind == "system":
            return False
        return (
            query.problem in (None, self.problem)
            and query.layer in (None, self.layer)
            and (query.names is None or self.name in query.names)
            and query.tags <= self.tags
            and (query.senders is None or self._is_sent_by(query.senders))
        )

    def _is_sent_by(self, senders: frozenset[str]) -> bool:
        uid, name = self.sender
        if not uid and not name:
            return False
        known = {one.casefold() for one in senders}
        return uid in senders or (bool(name) and name.casefold() in known)


@lru_cache(maxsize=10_000)
def decode_group(told: bytes) -> Group:
    """Return the group that ``Group.encode`` made bytes of."""
    kind, sender, problem, layer, name, tags = json.loads(told.decode("utf-8", "surrogatepass"))
    return Group(kind, (sender[0], sender[1]), problem, layer, name, frozenset(tags))


def group_of(entry: TapeEntry) -> Group:
    """Return the group of an entry; malformed labels are left out."""
    layer, tags = entry.meta.get("layer"), entry.meta.get("tags")
    return Group(
        entry.kind,
        sender_of(entry),
        problem_of(entry),
        layer if isinstance(layer, str) else "",
        entry.name,
        frozenset(tag for tag in tags if isinstance(tag, str))
        if isinstance(tags, list)
        else frozenset(),
    )


def sender_of(entry: TapeEntry) -> tuple[str, str]:
    """Return the platform id and display name of an entry's sender."""
    if entry.kind != "message":
        return ("", "")
    if entry.payload.get("role") in ("assistant", "automation"):
        return (ASSISTANT_SENDER, "")
    sender = entry.meta.get("sender")
    if isinstance(sender, dict):
        return (_clean(sender.get("id")), _clean(sender.get("name")))
    return (_clean(sender), "")


def _clean(value: Any) -> str:
    """Return text that can be compared with a query's."""
    return str(value).encode("utf-8", "replace").decode() if value is not None else ""
