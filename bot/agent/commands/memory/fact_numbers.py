"""Facts by the numbers, and beliefs by the names, that people call them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.agent.commands.registry import CommandContext
from bot.memory.facts.fact import Fact
from bot.memory.scope_memory import ScopeMemory

_BELIEF = re.compile(r"#?(p\d{1,9})\.?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"#?(w?)(\d{1,9})\.?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class FactNumber:
    """What somebody calls a fact.

    Attributes:
        id: Its number.
        shared: It is one that everybody reads.
    """

    id: int
    shared: bool = False

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{'w' * self.shared}{self.id}"


def parse_fact_number(word: str) -> FactNumber | None:
    """Return the number that a word is: ``3``, ``#3``, ``w3``; None where it is none."""
    found = _NUMBER.fullmatch(word)
    return None if found is None else FactNumber(int(found[2]), bool(found[1]))


def parse_fact_numbers(text: str) -> list[FactNumber] | None:
    """Return all numbers of a text, each once; None where a word of it is none."""
    found = [parse_fact_number(word) for word in text.replace(",", " ").split()]
    numbers = [one for one in found if one is not None]
    return list(dict.fromkeys(numbers)) if len(numbers) == len(found) else None


def parse_belief_names(text: str) -> list[str]:
    """Return the names of beliefs, such as ``p3``, that a text is a list of; empty where it is none."""
    found = [_BELIEF.fullmatch(word) for word in text.replace(",", " ").split()]
    names = [one[1].lower() for one in found if one is not None]
    return list(dict.fromkeys(names)) if len(names) == len(found) else []


def scope_of(number: FactNumber, context: CommandContext) -> ScopeMemory:
    """Return the scope that a number belongs to."""
    return context.memory.workspace if number.shared else context.memory.home


def find_fact(number: FactNumber, context: CommandContext) -> Fact | None:
    """Return the fact that a number names, whatever became of it; None where there is none."""
    return scope_of(number, context).fold.get(number.id)


def unknown_number_text(number: FactNumber, context: CommandContext) -> str:
    """Return that there is no such fact."""
    if number.id in scope_of(number, context).fold.facts:
        return f"Number {number} was forgotten: its words are gone."
    return f"There is no number {number}. `/memory` lists them."


def idempotency_key(context: CommandContext) -> str:
    """Return the key of what a command changes: the same when it is given to us again after a kill."""
    # A platform's ids of messages are unique in a chat only, and a scope has several.
    return f"command:{context.tape.name}:{context.command_entry.id}"
