"""Parse fact numbers and belief names in command arguments, and find facts by number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.agent.commands.registry import CommandContext
from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.memory.records.fact import Fact
from bot.memory.session.scope.scope_memory import ScopeMemory

_BELIEF = LazyPattern(r"#?(p\d{1,9})\.?", re.IGNORECASE | re.ASCII)
_NUMBER = LazyPattern(r"#?(w?)(\d{1,9})\.?", re.IGNORECASE | re.ASCII)
_RANGE = LazyPattern(r"#?(\d{1,9})\s{0,3}[-\u2013]\s{0,3}#?(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class FactNumber:
    """A fact's number as people write it.

    Attributes:
        id: The number.
        shared: Whether it is a fact shared with everyone (``w3``).
    """

    id: int
    shared: bool = False

    def __str__(self) -> str:
        """Return the number as people write it."""
        return f"{'w' * self.shared}{self.id}"


def parse_fact_number(word: str) -> FactNumber | None:
    """Parse a fact number: ``3``, ``#3``, ``w3``; None if the word is none."""
    found = _NUMBER.fullmatch(word)
    return None if found is None else FactNumber(int(found[2]), bool(found[1]))


def parse_fact_numbers(text: str) -> list[FactNumber] | None:
    """Parse a list of fact numbers, each returned once; None if a word is not a number."""
    found = [parse_fact_number(word) for word in text.replace(",", " ").split()]
    numbers = [fact_number for fact_number in found if fact_number is not None]
    return list(dict.fromkeys(numbers)) if len(numbers) == len(found) else None


def parse_range(text: str) -> range | None:
    """Parse a range of fact numbers, ``1-20``, both ends included; None if the text is none."""
    found = _RANGE.fullmatch(text.strip())
    return None if found is None else range(int(found[1]), int(found[2]) + 1)


def parse_belief_names(text: str) -> list[str]:
    """Parse a list of belief names such as ``p3``; empty if a word is not a name."""
    found = [_BELIEF.fullmatch(word) for word in text.replace(",", " ").split()]
    names = [one[1].lower() for one in found if one is not None]
    return list(dict.fromkeys(names)) if len(names) == len(found) else []


def scope_of(number: FactNumber, context: CommandContext) -> ScopeMemory:
    """Return the scope that a number refers to."""
    return context.memory.workspace if number.shared else context.memory.home


def find_fact(number: FactNumber, context: CommandContext) -> Fact | None:
    """Return the fact with this number, whatever its status; None if there is none."""
    return scope_of(number, context).fold.get(number.id)


def unknown_number_text(number: FactNumber, context: CommandContext) -> str:
    """Return the reply to a number without a fact."""
    if number.id in scope_of(number, context).fold.facts:
        return _("Fact {number} was forgotten and erased.", number=number)
    return _("There is no fact {number}. `/memory` lists the facts.", number=number)
