"""Merge facts into long-term memory as Markdown text, and search or remove lines of it.

Rule 1: lines that no fact changes are kept byte for byte, including headings and blank lines.
Rule 2: a newer value replaces the older one in place, and the rest of the older line stays; a new
        fact is added at the end.
Rule 3: no fact occurs twice, and merging is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import comparison_key, fact_terms
from bot.language.forget_requests import topic_readings
from bot.language.parsed_facts import ParsedFact, conflicts, parse_fact, strip_bullet
from bot.language.remaining_facts import remaining_text

_NAME = LazyPattern(
    r"The user(?:'s name is|(?P<called> wants to be called)) (?P<name>[^\W\d_][\w'’ .-]{0,38}?)\.?"
)


@dataclass(frozen=True, slots=True)
class MergedMemory:
    """Memory after a merge.

    Attributes:
        text: The whole long-term memory.
        added: New facts, without bullets.
        replaced: Dropped or replaced lines, exactly as they were.
    """

    text: str
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


def _is_fact(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _without_superseded(facts: Iterable[str]) -> list[str]:
    """Return the facts that remain once later ones have replaced earlier ones, in order."""
    standing: list[ParsedFact] = []
    for fact in facts:
        new = parse_fact(fact)
        if new.key:
            standing = [rest for old in standing if (rest := remaining_fact(new, old)) is not None]
            standing.append(new)
    return [line.text for line in standing]


def remaining_fact(new: ParsedFact, old: ParsedFact) -> ParsedFact | None:
    """Return what remains of an older fact next to a newer one; None if nothing does."""
    if not conflicts(new, old):
        return old
    rest = "" if new.key == old.key else remaining_text(new, old)
    return parse_fact(rest) if rest else None


def _insert_fact(
    new: ParsedFact, lines: Sequence[str], parsed: Sequence[ParsedFact | None]
) -> list[str]:
    """Return the lines of memory with a new fact in place of those it replaces, or at the end."""
    bullet = f"- {new.text}"
    changed: list[str] = []
    for line, old in zip(lines, parsed, strict=True):
        rest = remaining_fact(new, old) if old is not None else None
        if old is None or rest is old:
            changed.append(line)
            continue
        if bullet not in changed:
            changed.append(bullet)
        if rest is not None:
            changed.append(line if rest.text == old.text else f"- {rest.text}")
    return changed if bullet in changed else [*changed, bullet]


def merge_facts(current: str, facts: Sequence[str]) -> MergedMemory:
    """Merge facts into memory.

    Args:
        current: Present long-term memory.
        facts: Sentences in the third person, oldest first.
    """
    lines = current.rstrip().split("\n") if current.strip() else []
    parsed = [parse_fact(line) if _is_fact(line) else None for line in lines]
    added: list[str] = []
    replaced: list[str] = []
    for fact in _without_superseded(facts):
        new = parse_fact(fact)
        if any(old and old.key == new.key for old in parsed):
            continue
        changed = _insert_fact(new, lines, parsed)
        replaced.extend(line for line in lines if line not in changed)
        added.append(fact)
        lines = changed
        parsed = [parse_fact(line) if _is_fact(line) else None for line in lines]
    return MergedMemory("\n".join(lines), tuple(added), tuple(replaced))


def matching_lines(current: str, topic: str) -> tuple[str, ...]:
    """Return the lines of memory about a topic, exactly as they are."""
    topic_terms = _topic_terms(topic)
    lines = [line for line in current.split("\n") if _is_fact(line)]
    return tuple(line for line in lines if _is_about(line, topic_terms))


def mentions_topic(line: str, topic: str) -> bool:
    """Return whether a line of memory holds all terms of a topic or of its translation."""
    return _is_about(line, _topic_terms(topic))


def _topic_terms(topic: str) -> list[set[str]]:
    return [
        topic_terms
        for reading in topic_readings(topic)
        if (topic_terms := set(fact_terms(reading)))
    ]


def _is_about(line: str, topics: list[set[str]]) -> bool:
    return any(topic_terms <= _line_terms(line) for topic_terms in topics)


@lru_cache(maxsize=4096)
def _line_terms(line: str) -> frozenset[str]:
    return parse_fact(line).terms | frozenset(fact_terms(line))


def remove_topic(current: str, topic: str) -> MergedMemory:
    """Return memory without the lines about a topic."""
    removed = set(matching_lines(current, topic))
    remaining = [line for line in current.split("\n") if line not in removed]
    return MergedMemory(
        "\n".join(remaining).strip("\n"),
        (),
        tuple(line for line in current.split("\n") if line in removed),
    )


def fact_lines(current: str) -> tuple[str, ...]:
    """Return the sentences of memory, without bullets and headings."""
    return tuple(
        strip_bullet(line) for line in current.split("\n") if _is_fact(line) and strip_bullet(line)
    )


def contains_statement(current: str, said: str) -> bool:
    """Return whether a line of memory already contains a statement."""
    sought = comparison_key(said)
    third = comparison_key(parse_fact(said).text)
    lines = [comparison_key(line) for line in fact_lines(current)]
    return bool(sought) and any(sought in line or third == line for line in lines)


def user_name(current: str) -> str:
    """Return the user's name from memory, best what they want to be called; empty if unknown."""
    matches = [hit for line in fact_lines(current) if (hit := _NAME.fullmatch(line))]
    return next((hit["name"] for hit in sorted(matches, key=lambda hit: not hit["called"])), "")
