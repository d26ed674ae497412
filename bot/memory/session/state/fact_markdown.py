"""Render facts as Markdown. Pure.

Rule 1: one fact is one line, ``- text``; standing facts come first, uncertain ones last.
Rule 2: if not all fit, those are left out of the text that were said or looked up longest ago; they stay facts.
Rule 3: a standing fact is never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from types import MappingProxyType

from bot.llm.base import estimate_tokens
from bot.memory.records.fact import Fact

FACTS_ROOM = 2_000
"""Tokens of facts in a prompt for a window of 128,000."""

_SHARE, _OF_SMALL, _LEAST, _MOST = 64, 8, 1_000, 4_000
_CERTAIN = 0.7
_BESIDES = 10
"""Tokens of a line besides the fact: its number and its date."""


def facts_room(window: int) -> int:
    """Return how many tokens of facts a prompt may have: a 64th of the window, from 1,000 to 4,000.

    Of a small window it is at most an eighth.
    """
    return min(max(window // _SHARE, _LEAST), _MOST, window // _OF_SMALL)


def render_facts(facts: Iterable[Fact], room: int = FACTS_ROOM) -> str:
    """Render facts as Markdown within a number of tokens; see ``select_facts``."""
    return markdown_lines(select_facts(facts, room))


def markdown_lines(facts: Iterable[Fact], timezone: tzinfo | None = None) -> str:
    """Render facts as Markdown, one line each, with the days of quotations in a time zone."""
    return "\n".join(f"- {fact.told(timezone)}{_mark(fact)}" for fact in facts)


def _mark(fact: Fact) -> str:
    """Return which facts a fact may end, so that a model does not take both for true."""
    named = ", ".join(f"[{number}]" for number in fact.replaces) if fact.proposes_change else ""
    return f" (unchecked yet: it may end {named})" if named else ""  # for the model


def select_facts(
    facts: Iterable[Fact],
    room: int = FACTS_ROOM,
    used: Mapping[int, str] = MappingProxyType({}),
) -> list[Fact]:
    """Return all standing facts and those that fit into ``room`` tokens besides, as they are rendered.

    ``used`` is when facts were last looked up, ISO 8601 in UTC, by number.
    """

    def order(fact: Fact) -> tuple[bool, str, int]:
        said = max((evidence.when for evidence in fact.evidence), default=fact.changed)
        return fact.standing, max(said, used.get(fact.id, "")), fact.id

    kept: list[Fact] = []
    for fact in sorted(facts, key=order, reverse=True):
        size = estimate_tokens(fact.text) + _BESIDES
        if fact.standing or size <= room:
            room -= size
            kept.append(fact)
    return sorted(
        kept, key=lambda other: (not other.standing, other.confidence < _CERTAIN, other.id)
    )


def group_by_subject(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """Group facts by subject, sorted by name; facts without a subject come last."""
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(fact.subject.strip().lower(), []).append(fact)
    return {key: found[key] for key in sorted(found, key=lambda one: (not one, one))}
