"""Facts as Markdown, and Markdown read back as a change of facts. Pure.

Rule 1: one fact is one line, ``- text``; the least certain stand last.
Rule 2: what does not fit is left out, first what is least certain after all the time since somebody said
    it; it stays a fact.
Rule 3: text that is given back is a difference: a line that is missing ends a fact, a line that is new is
    one, and a line that takes the place of another continues its chain.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from bot.memory.facts.fact import LONGEST_TEXT, Fact
from bot.memory.gate.likeness import contradicts, folded
from bot.memory.guards import lines_of
from bot.memory.snapshot import MAX_LONG_TERM

MOST_BYTES = MAX_LONG_TERM
_CERTAIN = 0.7
_NUMBERED = re.compile(r"^(?:\d{1,4}[.)]|\[\d{1,4}\])\s+")


def render(
    facts: Iterable[Fact],
    most_bytes: int = MOST_BYTES,
    ranks: Mapping[int, float] = MappingProxyType({}),
) -> str:
    """Return facts as Markdown within a number of bytes; see ``chosen``."""
    return "\n".join(f"- {fact.text}" for fact in chosen(facts, most_bytes, ranks))


def chosen(
    facts: Iterable[Fact],
    most_bytes: int = MOST_BYTES,
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


@dataclass(frozen=True, slots=True)
class Difference:
    """What a text changes of the facts that it was made from.

    Attributes:
        added: New lines.
        replaced: New lines with the number of the fact whose place each takes.
        removed: Numbers of facts whose lines are gone.
    """

    added: tuple[str, ...] = ()
    replaced: tuple[tuple[str, int], ...] = ()
    removed: tuple[int, ...] = ()


def difference(facts: Sequence[Fact], shown: str, content: str) -> Difference:
    """Return what a text changes.

    Args:
        facts: That are believed.
        shown: The rendering that the text was made from: what it did not show is not removed.
        content: The text.
    """
    seen = {folded(line) for line in lines_of(shown)}
    known = {folded(fact.text): fact for fact in facts}
    lines = [_unnumbered(line, known) for line in lines_of(content)]
    given = {folded(line): line for line in lines}
    gone = [fact for key, fact in known.items() if key in seen and key not in given]
    new = [line[:LONGEST_TEXT] for key, line in given.items() if key not in known]
    replaced: list[tuple[str, int]] = []
    for line in new:
        heir = next((one for one in gone if contradicts(line, one.text)), None)
        if heir is not None:
            gone.remove(heir)
            replaced.append((line, heir.id))
    taken = {line for line, _ in replaced}
    return Difference(
        tuple(line for line in new if line not in taken),
        tuple(replaced),
        tuple(fact.id for fact in gone),
    )


def _unnumbered(line: str, known: Container[str]) -> str:
    """Return a line of a numbered list without its number, where a fact says the rest."""
    rest = _NUMBERED.sub("", line)
    return rest if folded(line) not in known and folded(rest) in known else line


def by_subject(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """Return facts under what they are about, subjects by name, those without one last."""
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(fact.subject.strip().lower(), []).append(fact)
    return {key: found[key] for key in sorted(found, key=lambda one: (not one, one))}
