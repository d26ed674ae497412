"""Pending facts and pausing: ``/memory pending``, ``accept``, ``drop``, ``pause``, ``resume``."""

from __future__ import annotations

from bot.agent.commands.memory.fact_edits import ALREADY_DONE
from bot.agent.commands.memory.fact_numbers import (
    FactNumber,
    parse_fact_numbers,
    parse_range,
)
from bot.agent.commands.memory.fact_text import (
    bullet_list,
    escape_markdown,
    fact_label,
    fact_line,
    shorten,
)
from bot.agent.commands.pagination import paginate_items, parse_page_number
from bot.agent.commands.registry import (
    CommandContext,
    CommandReply,
    idempotency_key,
    person_batch,
)
from bot.bus import Button
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.imports import assistant_of
from bot.memory.records.proposals import (
    Proposal,
    ProposalDecision,
    ProposalOperation,
    find_fact_decision,
)
from bot.memory.records.transcript import format_timestamp_day

_A_PAGE = 4
_QUOTED = 160
_ORIGINS = {
    "import": "from an import",
    "assistant": "in the assistant's words",
    "tool": "from a tool's result",
    "quoted": "from quoted text",
}


async def pending(page: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory pending``."""
    waiting = context.memory.home.fold.pending()
    if not waiting:
        return CommandReply("Nothing is pending.")
    facts, at = paginate_items(waiting, parse_page_number(page), _A_PAGE, "/memory pending")
    parts = [f"**{len(waiting)} pending**"]
    parts += [await _item(fact, context) for fact in facts]
    hint = (
        "`/memory accept N` accepts a fact, `accept 2-9` or `accept all` several; `/memory drop N` or "
        "`drop all` rejects it."
    )
    parts.append(f"{hint} {at.note}".rstrip())
    buttons = [button for fact in facts for button in _buttons(fact)]
    if len(facts) > 1:
        listed = " ".join(str(fact.id) for fact in facts)
        buttons += [
            Button("Accept these", f"/memory accept {listed}"),
            Button("Drop these", f"/memory drop {listed}"),
        ]
    return CommandReply("\n\n".join(parts), buttons=(*buttons, *at.buttons))


async def _item(fact: Fact, context: CommandContext) -> str:
    entry = await context.memory.home.find_batch(fact.admitted)
    decided = find_fact_decision(entry, fact.id) if entry is not None else None
    why = f"; {decided.reason}" if decided is not None else ""
    quotes = [_quote(one, context) for one in fact.evidence[-1:] if assistant_of(one.tape)]
    if fact.origin == "client":
        # A program's words are shown as its words, not as a statement.
        words = escape_markdown(shorten(fact.text))
        told = why.removeprefix("; ") or f"{fact.evidence[-1].who} proposes it"
        return f"{fact_label(fact)} “{words}”\n({escape_markdown(told)})"
    return "\n".join([fact_line(fact), *quotes, f"({_origin(fact)}{why})"])


def _quote(evidence: Evidence, context: CommandContext) -> str:
    """Return the words of an imported message that a fact rests on, with their day and source."""
    day = format_timestamp_day(evidence.when, context.zone.timezone) or "an unknown day"
    where = assistant_of(evidence.tape)
    if not evidence.is_own_words:
        return f"(kept by {where}, {day})"
    words = escape_markdown(shorten(evidence.quote, _QUOTED)) or "[erased]"
    return f"“{words}” (you to {where}, {day})"


def _origin(fact: Fact) -> str:
    if not fact.evidence:
        return "no person said it"
    evidence = fact.evidence[-1]
    return _ORIGINS.get(fact.origin) or f"{evidence.who} said it"


def _buttons(fact: Fact) -> tuple[Button, Button]:
    return (
        Button(f"Accept {fact.id}", f"/memory accept {fact.id}"),
        Button(f"Drop {fact.id}", f"/memory drop {fact.id}"),
    )


async def accept_facts(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory accept N``, ``accept 2-9`` and ``accept all``."""
    return await _decide("accept", arguments, context)


async def drop_facts(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory drop N``, ``drop 2-9`` and ``drop all``."""
    return await _decide("drop", arguments, context)


async def _decide(op: ProposalOperation, arguments: str, context: CommandContext) -> CommandReply:
    numbers = parse_fact_numbers(arguments)
    span = parse_range(arguments)
    if span is not None or arguments.strip().lower() == "all":
        waiting = context.memory.home.fold.pending()
        numbers = [FactNumber(fact.id) for fact in waiting if span is None or fact.id in span]
        if not numbers and idempotency_key(context) not in context.memory.home.fold.decided_keys:
            return CommandReply("Nothing is pending.")
    elif not numbers or any(fact_number.shared for fact_number in numbers):
        return CommandReply(f"Which one? For example: `/memory {op} 3`. See `/memory pending`.")
    proposals = (Proposal(op, fact=fact_number.id) for fact_number in numbers)
    outcome = await context.memory.apply(person_batch(context, *proposals))
    told = bullet_list(_decided(decision) for decision in outcome.decisions)
    return CommandReply(told or ALREADY_DONE, zone_edit=context.memory.with_current_facts)


def _decided(decided: ProposalDecision) -> str:
    fact = decided.fact
    if decided.verdict != "approved" or fact is None:
        return f"{decided.reason[:1].upper()}{decided.reason[1:]}"
    if fact.status == "dropped":
        return f"Dropped: {fact_line(fact)}"
    closed = decided.ended
    instead = f" (instead of {fact_line(closed)})" if closed is not None else ""
    return f"Accepted: {fact_line(fact)}{instead}"


async def pause(_: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory pause``."""
    await context.memory.home.pause(paused=True)
    return CommandReply(
        "Memory is paused. I learn nothing from what is said here, neither now nor later. What I "
        "know stays, and `/memory add` still works. `/memory resume` ends the pause."
    )


async def resume(_: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory resume``."""
    await context.memory.home.pause(paused=False)
    return CommandReply("Memory is on again. I do not learn what was said during the pause.")
