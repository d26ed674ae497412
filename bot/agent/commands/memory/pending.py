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
from bot.agent.texts import capitalized, joined_clauses, local_day
from bot.bus import Button
from bot.core.i18n import N_, _, ngettext
from bot.core.text import escape_markdown
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.imports import assistant_of
from bot.memory.records.proposals import (
    Proposal,
    ProposalDecision,
    ProposalOperation,
    find_fact_decision,
)

_A_PAGE = 4
_QUOTED = 160
_HINT = N_(
    "`/memory accept N` accepts a fact, `accept 2-9` or `accept all` several; `/memory drop N` or "
    "`drop all` rejects it."
)
_ORIGINS = {
    "import": N_("from an import"),
    "assistant": N_("in the assistant's words"),
    "tool": N_("from a tool's result"),
    "quoted": N_("from quoted text"),
}


async def pending(page: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory pending``."""
    waiting = context.memory.home.fold.pending()
    if not waiting:
        return CommandReply(_("Nothing is pending."))
    facts, at = paginate_items(waiting, parse_page_number(page), _A_PAGE, "/memory pending")
    head = ngettext("{n} pending", "{n} pending", len(waiting))
    parts = [f"**{head}**"]
    parts += [await _item(fact, context) for fact in facts]
    parts.append(f"{_(_HINT)} {at.note}".rstrip())
    buttons = [button for fact in facts for button in _buttons(fact)]
    if len(facts) > 1:
        listed = " ".join(str(fact.id) for fact in facts)
        buttons += [
            Button(_("Accept these"), f"/memory accept {listed}"),
            Button(_("Drop these"), f"/memory drop {listed}"),
        ]
    return CommandReply("\n\n".join(parts), buttons=(*buttons, *at.buttons))


async def _item(fact: Fact, context: CommandContext) -> str:
    entry = await context.memory.home.find_batch(fact.admitted)
    decided = find_fact_decision(entry, fact.id) if entry is not None else None
    why = [f"{decided.reason}"] if decided is not None else []
    if fact.ends:
        over = [context.memory.home.fold.get(number) for number in fact.replaces]
        zone = context.zone.timezone
        ends = [
            _("It may end {fact}", fact=fact_line(other, zone))
            for other in over
            if other is not None
        ]
        return "\n".join([fact_line(fact, zone), *ends])
    quotes = [_quote(one, context) for one in fact.evidence[-1:] if assistant_of(one.tape)]
    if fact.origin == "client":
        # A program's words are shown as its words, not as a statement.
        words = escape_markdown(shorten(fact.gloss))
        told = joined_clauses(why or [_("{who} proposes it", who=fact.evidence[-1].who)])
        return f"{fact_label(fact)} “{words}”\n({escape_markdown(told)})"
    return "\n".join([_pending_line(fact), *quotes, f"({joined_clauses([_origin(fact), *why])})"])


def _pending_line(fact: Fact) -> str:
    """Return a fact as it would be if a person accepted it."""
    return f"{fact_label(fact)} {escape_markdown(shorten(fact.gloss))}"


def _quote(evidence: Evidence, context: CommandContext) -> str:
    """Return the words of an imported message that a fact rests on, with their day and source."""
    day = local_day(evidence.when, context.zone.timezone) or _("an unknown day")
    where = assistant_of(evidence.tape)
    if not evidence.is_own_words:
        return _("(kept by {assistant}, {day})", assistant=where, day=day)
    words = escape_markdown(shorten(evidence.quote, _QUOTED)) or _("[erased]")
    return _("“{words}” (you to {assistant}, {day})", words=words, assistant=where, day=day)


def _origin(fact: Fact) -> str:
    if not fact.evidence:
        return _("no person said it")
    if fact.origin in _ORIGINS:
        return _(_ORIGINS[fact.origin])
    return _("{who} said it", who=fact.evidence[-1].who)


def _buttons(fact: Fact) -> tuple[Button, Button]:
    return (
        Button(_("Accept {number}", number=fact.id), f"/memory accept {fact.id}"),
        Button(_("Drop {number}", number=fact.id), f"/memory drop {fact.id}"),
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
            return CommandReply(_("Nothing is pending."))
    elif not numbers or any(fact_number.shared for fact_number in numbers):
        example = f"`/memory {op} 3`"
        return CommandReply(
            _("Which one? For example: {example}. See `/memory pending`.", example=example)
        )
    proposals = (Proposal(op, fact=fact_number.id) for fact_number in numbers)
    outcome = await context.memory.apply(person_batch(context, *proposals))
    told = bullet_list(_decided(decision) for decision in outcome.decisions)
    return CommandReply(told or _(ALREADY_DONE), zone_edit=context.memory.with_current_facts)


def _decided(decided: ProposalDecision) -> str:
    fact = decided.fact
    if decided.verdict != "approved" or fact is None:
        return capitalized(f"{decided.reason}")
    if fact.ends and decided.ended is not None:
        return _("Ended: {fact}", fact=fact_line(decided.ended))
    if fact.status == "dropped":
        return _("Dropped: {fact}", fact=fact_line(fact))
    accepted = _("Accepted: {fact}", fact=fact_line(fact))
    if decided.ended is None:
        return accepted
    instead = _("(instead of {fact})", fact=fact_line(decided.ended))
    return f"{accepted} {instead}"


async def pause(arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 - a form
    """Answer ``/memory pause``."""
    await context.memory.home.pause(paused=True)
    return CommandReply(
        _(
            "Memory is paused. I learn nothing from what is said here, neither now nor later. What I "
            "know stays, and `/memory add` still works. `/memory resume` ends the pause."
        )
    )


async def resume(arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 - a form
    """Answer ``/memory resume``."""
    await context.memory.home.pause(paused=False)
    return CommandReply(_("Memory is on again. I do not learn what was said during the pause."))
