"""Facts into long-term memory, as text.

Rule 1: lines that no fact touches are kept byte for byte, headings and blank lines too.
Rule 2: a newer value stands where the older one stood; a new fact is added at the end.
Rule 3: nothing stands twice, and merging twice equals merging once.
Rule 4: where there is a bound on the size, nothing that exists is dropped: adding stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.llm.offline.lines import Line, bare, conflicts, parse
from bot.llm.offline.words import key, terms


@dataclass(frozen=True, slots=True)
class Merged:
    """Memory after a merge.

    Attributes:
        text: The whole long-term memory.
        added: Facts that were not there before, without bullets.
        replaced: Lines that were dropped or replaced, exactly as they stood.
    """

    text: str
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


def _is_fact(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _settle(facts: Iterable[str]) -> list[str]:
    """Return the facts that stand after all were said, in order."""
    standing: list[Line] = []
    for fact in facts:
        new = parse(fact)
        if key(new.text):
            standing = [old for old in standing if not conflicts(new, old)]
            standing.append(new)
    return [line.text for line in standing]


def merge(current: str, facts: Sequence[str], limit: int | None = None) -> Merged:
    """Return memory with the facts in it.

    Args:
        current: Long-term memory as it stands.
        facts: Sentences in the third person, oldest first.
        limit: Size in bytes of UTF-8 that the text must stay under by not adding more.
    """
    lines = current.rstrip().split("\n") if current.strip() else []
    parsed = [parse(line) if _is_fact(line) else None for line in lines]
    added: list[str] = []
    replaced: list[str] = []
    for fact in _settle(facts):
        new = parse(fact)
        if any(old is not None and key(old.text) == key(fact) for old in parsed):
            continue
        hits = [at for at, old in enumerate(parsed) if old is not None and conflicts(new, old)]
        changed = list(lines)
        changed[hits[0] if hits else len(lines) :] = [
            f"- {fact}",
            *[line for at, line in enumerate(lines) if hits and at > hits[0] and at not in hits],
        ]
        if limit is not None and len("\n".join(changed).encode()) >= limit:
            continue
        replaced.extend(lines[at] for at in hits)
        added.append(fact)
        lines = changed
        parsed = [parse(line) if _is_fact(line) else None for line in lines]
    return Merged("\n".join(lines), tuple(added), tuple(replaced))


def matching(current: str, topic: str) -> tuple[str, ...]:
    """Return the lines of memory that speak of a topic, exactly as they stand."""
    wanted = set(terms(topic))
    if not wanted:
        return ()
    return tuple(
        line
        for line in current.split("\n")
        if _is_fact(line) and wanted <= parse(line).terms | set(terms(line))
    )


def forget(current: str, topic: str) -> Merged:
    """Return memory without the lines that speak of a topic."""
    gone = set(matching(current, topic))
    kept = [line for line in current.split("\n") if line not in gone]
    return Merged(
        "\n".join(kept).strip("\n"), (), tuple(line for line in current.split("\n") if line in gone)
    )


def facts_of(current: str) -> tuple[str, ...]:
    """Return the sentences of memory, without bullets and headings."""
    return tuple(bare(line) for line in current.split("\n") if _is_fact(line) and bare(line))


def holds(current: str, said: str) -> bool:
    """Return whether a line of memory already holds what was said."""
    sought = key(said)
    third = key(parse(said).text)
    lines = [key(line) for line in facts_of(current)]
    return bool(sought) and any(sought in line or third == line for line in lines)
