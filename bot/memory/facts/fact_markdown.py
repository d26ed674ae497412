"""Facts as Markdown. Pure.

Rule 1: one fact is one line, ``- text``; the least certain stand last.
Rule 2: what does not fit is left out, first what is least certain after all the time since somebody said
    it; it stays a fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from bot.memory.facts.fact import Fact
from bot.memory.zone_snapshot import MAX_LONG_TERM_BYTES

MAX_RENDERED_BYTES = MAX_LONG_TERM_BYTES
_CERTAIN = 0.7


def render_facts(
    facts: Iterable[Fact],
    most_bytes: int = MAX_RENDERED_BYTES,
    ranks: Mapping[int, float] = MappingProxyType({}),
) -> str:
    """Return facts as Markdown within a number of bytes; see ``chosen``."""
    return markdown_lines(select_facts(facts, most_bytes, ranks))


def markdown_lines(facts: Iterable[Fact]) -> str:
    """Return facts as Markdown, a line each."""
    return "\n".join(f"- {fact.text}" for fact in facts)


def select_facts(
    facts: Iterable[Fact],
    most_bytes: int = MAX_RENDERED_BYTES,
    ranks: Mapping[int, float] = MappingProxyType({}),
) -> list[Fact]:
    """Return the facts that are rendered within a number of bytes, in the order shown.

    Args:
        facts: That are believed.
        most_bytes: Room there is.
        ranks: By number, what time has left of their confidence; by default all of it.
    """
    room = most_bytes
    kept: list[Fact] = []

    def rank(fact: Fact) -> tuple[float, str, int]:
        return ranks.get(fact.id, fact.confidence), fact.changed, fact.id

    for fact in sorted(facts, key=rank, reverse=True):
        size = len(fact.text.encode("utf-8", "replace")) + 3
        if size <= room:
            room -= size
            kept.append(fact)
    return sorted(kept, key=lambda one: (one.confidence < _CERTAIN, one.id))


def group_by_subject(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """Return facts under what they are about, subjects by name, those without one last."""
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(fact.subject.strip().lower(), []).append(fact)
    return {key: found[key] for key in sorted(found, key=lambda one: (not one, one))}
