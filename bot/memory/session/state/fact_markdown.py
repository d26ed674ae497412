"""Render facts as Markdown. Pure.

Rule 1: one fact is one line, ``- text``; uncertain facts come last.
Rule 2: if not all fit, the lowest-ranked are left out of the text; they stay facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from types import MappingProxyType

from bot.memory.records.fact import Fact
from bot.memory.session.state.zone_snapshot import MAX_LONG_TERM_BYTES

MAX_RENDERED_BYTES = MAX_LONG_TERM_BYTES
_CERTAIN = 0.7


def render_facts(
    facts: Iterable[Fact],
    most_bytes: int = MAX_RENDERED_BYTES,
    ranks: Mapping[int, float] = MappingProxyType({}),
) -> str:
    """Render facts as Markdown within a byte limit; see ``select_facts``."""
    return markdown_lines(select_facts(facts, most_bytes, ranks))


def markdown_lines(facts: Iterable[Fact], timezone: tzinfo | None = None) -> str:
    """Render facts as Markdown, one line each, with the days of quotations in a time zone."""
    return "\n".join(f"- {fact.told(timezone)}" for fact in facts)


def select_facts(
    facts: Iterable[Fact],
    most_bytes: int = MAX_RENDERED_BYTES,
    ranks: Mapping[int, float] = MappingProxyType({}),
) -> list[Fact]:
    """Return the facts that fit into a byte limit, in the order of rendering.

    Args:
        facts: Facts that are believed.
        most_bytes: Size limit in UTF-8 bytes.
        ranks: Confidence after decay, by fact number; by default the fact's own confidence.
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
    return sorted(kept, key=lambda other: (other.confidence < _CERTAIN, other.id))


def group_by_subject(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """Group facts by subject, sorted by name; facts without a subject come last."""
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(fact.subject.strip().lower(), []).append(fact)
    return {key: found[key] for key in sorted(found, key=lambda one: (not one, one))}
