"""``/memory add`` and ``/memory edit``: what people say of themselves in so many words."""

from __future__ import annotations

from dataclasses import replace

from bot.agent.commands.memory.numbers import (
    Number,
    fact_of,
    key_of,
    missing,
    number_in,
    scope_of,
)
from bot.agent.commands.memory.rights import OWNERS_ONLY, is_elsewhere, may_edit
from bot.agent.commands.memory.wording import line as shown
from bot.agent.commands.memory.wording import short
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.memory.asks import as_line
from bot.memory.facts.asked import asked
from bot.memory.facts.fact import LONGEST_TEXT, Fact
from bot.memory.facts.proposals import Batch, Decided, Outcome, Proposal

_EXAMPLE = "For example: `/memory add I prefer tea`."
_EDIT_EXAMPLE = "For example: `/memory edit 3 I prefer coffee`. `/memory` lists the numbers."
DONE = "That was done already."


async def add(text: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory add TEXT``."""
    line = as_line(text)
    if line is None:
        return CommandReply(_unusable(text, f"What shall I add? {_EXAMPLE}"))
    proposal = _asked(line, context)
    batch = Batch(key_of(context), "person", (proposal,), asker=context.asker.id)
    outcome = await context.memory.apply(batch)
    return CommandReply(_added(outcome), change=context.memory.current)


def _asked(line: str, context: CommandContext) -> Proposal:
    proposal = asked(context.tape.name, context.heard, line, line)
    if not is_elsewhere(context.asker.id, context):
        return proposal
    # Owners may write into anybody's memory, and not in their name.
    evidence = tuple(replace(one, origin="member") for one in proposal.evidence)
    return replace(proposal, evidence=evidence)


def _added(outcome: Outcome) -> str:
    if not outcome.decided:
        return DONE
    decided, *ended = outcome.decided
    fact = decided.fact
    if fact is None or decided.verdict in ("refused", "logged"):
        return f"Not added: {decided.reason}."
    if decided.verdict == "pending":
        return _set_aside(decided, fact)
    if decided.verdict == "known" and fact.status == "pending":
        return f"It waits already: {shown(fact)}\n`/memory pending` shows it."
    if fact.admitted != outcome.entry:
        return f"I have that already: {shown(fact)}"
    told = f"Added to memory: {shown(fact)}"
    gone = [one for one in (decided.closed, *(other.fact for other in ended)) if one is not None]
    return "\n".join([told, *(f"It takes the place of {shown(one)}" for one in gone)])


async def edit(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory edit N TEXT``."""
    word, _, text = arguments.partition(" ")
    number = number_in(word)
    line = as_line(text)
    if number is None:
        return CommandReply(f"Which one? {_EDIT_EXAMPLE}")
    if line is None:
        return CommandReply(_unusable(text, f"What shall it say? {_EDIT_EXAMPLE}"))
    scope = scope_of(number, context)
    fact = fact_of(number, context)
    if fact is None:
        return CommandReply(missing(number, context))
    if not may_edit(fact, context.asker, shared=number.shared):
        return CommandReply(OWNERS_ONLY if number.shared else _OTHERS)
    key = key_of(context)
    if key not in scope.fold.keys and fact.status != "active":
        return CommandReply(_ended(number, fact))
    proposal = _asked(line, context)
    proposal = replace(proposal, op="supersede", fact=fact.id, text=_attributed(line, fact))
    outcome = await scope.apply(Batch(key, "person", (proposal,), asker=context.asker.id))
    told = _edited(outcome, fact, shared=number.shared)
    return CommandReply(told, change=context.memory.current)


_OTHERS = "In a group only an owner may change what somebody else said."


def _edited(outcome: Outcome, old: Fact, *, shared: bool) -> str:
    if not outcome.decided:
        return DONE
    decided = outcome.decided[0]  # Behind it is what else it ended.
    new = decided.fact
    if new is None or decided.verdict in ("refused", "logged"):
        return f"Not changed: {decided.reason}."
    if decided.verdict == "pending":
        return _set_aside(decided, new)
    if new.admitted != outcome.entry:
        return f"I have that already: {shown(new, shared=shared)}"
    return f"Changed: {shown(old, shared=shared)}\n→ {shown(new, shared=shared)}"


def _attributed(line: str, fact: Fact) -> str:
    """Return new words of a fact of a group, which begin with who said the old ones."""
    said = (f"{one.who}: " for one in fact.evidence)
    prefix = next((one for one in said if fact.text.startswith(one)), "")
    return line if line.startswith(prefix) else prefix + line


def _set_aside(decided: Decided, fact: Fact) -> str:
    return f"Set aside, since {decided.reason}: {shown(fact)}\n`/memory pending` shows it."


def _ended(number: Number, fact: Fact) -> str:
    if fact.status == "pending":
        return f"It waits for a decision: `/memory accept {fact.id}` or `/memory drop {fact.id}`."
    told = shown(fact, shared=number.shared)
    return f"It holds no longer: {told}\n`/memory why {number}` tells more."


def _unusable(text: str, otherwise: str) -> str:
    length = len(" ".join(text.split()))
    if length <= LONGEST_TEXT:
        return otherwise
    return f"That is too long: {length} characters, {short(text, 40)!r}. A fact has at most {LONGEST_TEXT}."
