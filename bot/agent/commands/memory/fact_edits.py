"""Commands that add, edit, pin, share and unshare facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from bot.agent.commands.memory.fact_numbers import (
    FactNumber,
    find_fact,
    parse_fact_number,
    scope_of,
    unknown_number_text,
)
from bot.agent.commands.memory.fact_text import fact_line, shorten
from bot.agent.commands.memory.permissions import OWNER_ONLY_TEXT, is_other_person, may_edit
from bot.agent.commands.parser import split_word
from bot.agent.commands.registry import (
    CommandContext,
    CommandReply,
    idempotency_key,
    person_batch,
)
from bot.core.i18n import N_, _
from bot.core.reasons import Reason
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.gate.memory_validation import memory_line
from bot.memory.gate.write_support import may_instruct
from bot.memory.records.evidence import cite
from bot.memory.records.fact import MAX_FACT_TEXT, Fact, speaker_name
from bot.memory.records.proposals import (
    BatchOutcome,
    Proposal,
    ProposalDecision,
)

ALREADY_DONE = N_("Already done.")


async def add(text: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory add TEXT``."""
    line = _as_line(text)
    if line is None:
        example = _("What should I add? For example: `/memory add I prefer tea`.")
        return CommandReply(_unusable(text, example))
    proposal = _asked(line, text.strip(), context)
    outcome = await context.memory.apply(person_batch(context, proposal))
    return CommandReply(_added(outcome), zone_edit=context.memory.with_current_facts)


def _as_line(text: str) -> str | None:
    """Return a text as one line of memory; None if nothing is left, or too much."""
    line = memory_line(text)
    return line[0].upper() + line[1:] if line and len(line) <= MAX_FACT_TEXT else None


def _asked(line: str, words: str, context: CommandContext) -> Proposal:
    """Return the proposal to remember a line; orders of somebody who may give none wait for a person."""
    entry = context.command_entry
    evidence = cite(context.tape.name, entry, words)
    if evidence.origin == "member" and not line.startswith(evidence.who):
        line = f"{speaker_name(evidence.who)}: {line}"
    if is_other_person(context.author.id, context):
        # An owner may write into another person's memory, but not as that person.
        evidence = replace(evidence, origin="member")
    ordered = not may_instruct(entry) and contains_instructions(line)
    reason = Reason("order") if ordered else ""
    return Proposal("add", line, evidence=(evidence,), review_reason=reason)


def _added(outcome: BatchOutcome) -> str:
    if not outcome.decisions:
        return _(ALREADY_DONE)
    decided, *ended = outcome.decisions
    fact = decided.fact
    if fact is None or decided.is_rejected:
        return _("Not added: {reason}.", reason=decided.reason)
    if decided.verdict == "pending":
        return _set_aside(decided, fact)
    if decided.verdict == "known" and fact.status == "pending":
        return _("Already pending: {fact}\n`/memory pending` shows it.", fact=fact_line(fact))
    if fact.admitted != outcome.entry:
        return _("I have that already: {fact}", fact=fact_line(fact))
    told = _("Added to memory: {fact}", fact=fact_line(fact))
    facts = [
        replaced
        for replaced in (decided.ended, *(decision.fact for decision in ended))
        if replaced is not None
    ]
    also = [_("It replaces {fact}", fact=fact_line(replaced)) for replaced in facts]
    return "\n".join([told, *also])


async def edit(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory edit N TEXT``."""
    word, text = split_word(arguments)
    number = parse_fact_number(word)
    line = _as_line(text)
    if number is None:
        return CommandReply(
            _(
                "Which one? For example: `/memory edit 3 I prefer coffee`. `/memory` lists the numbers."
            )
        )
    if line is None:
        example = _(
            "What should it say? For example: `/memory edit 3 I prefer coffee`. `/memory` lists the "
            "numbers."
        )
        return CommandReply(_unusable(text, example))
    scope = scope_of(number, context)
    fact = find_fact(number, context)
    if fact is None:
        return CommandReply(unknown_number_text(number, context))
    if not may_edit(fact, context.author, shared=number.shared):
        return CommandReply(_(OWNER_ONLY_TEXT) if number.shared else _(_OTHERS))
    key = idempotency_key(context)
    if key not in scope.fold.decided_keys and fact.status != "active":
        return CommandReply(_ended(number, fact))
    proposal = _asked(line, text.strip(), context)
    proposal = replace(proposal, op="supersede", fact=fact.id, text=_attributed(line, fact))
    outcome = await scope.apply(person_batch(context, proposal))
    told = _edited(outcome, fact, shared=number.shared)
    return CommandReply(told, zone_edit=context.memory.with_current_facts)


_OTHERS = N_("In a group only an owner may change what somebody else said.")


def _edited(outcome: BatchOutcome, old: Fact, *, shared: bool) -> str:
    if not outcome.decisions:
        return _(ALREADY_DONE)
    decided = outcome.decisions[0]  # The other decisions are facts that it ended.
    new = decided.fact
    if new is None or decided.is_rejected:
        return _("Not changed: {reason}.", reason=decided.reason)
    if decided.verdict == "pending":
        return _set_aside(decided, new)
    line = fact_line(new, shared=shared)
    if new.admitted != outcome.entry:
        return _("I have that already: {fact}", fact=line)
    changed = _("Changed: {fact}", fact=fact_line(old, shared=shared))
    return f"{changed}\n→ {line}"


def _attributed(line: str, fact: Fact) -> str:
    """Return an edited text with the speaker's name of the old one, as facts of groups have."""
    said = (f"{evidence.who}: " for evidence in fact.evidence)
    prefix = next((one for one in said if fact.gloss.startswith(one)), "")
    return line if line.startswith(prefix) else prefix + line


def _set_aside(decided: ProposalDecision, fact: Fact) -> str:
    return _(
        "Pending ({reason}): {fact}\n`/memory pending` shows it.",
        reason=decided.reason,
        fact=fact_line(fact),
    )


def _ended(number: FactNumber, fact: Fact) -> str:
    if fact.status == "pending":
        return _(
            "It is pending: `/memory accept {number}` or `/memory drop {number}`.", number=fact.id
        )
    return _(
        "It is no longer valid: {fact}\n`/memory why {number}` explains why.",
        fact=fact_line(fact, shared=number.shared),
        number=number,
    )


def _unusable(text: str, otherwise: str) -> str:
    length = len(" ".join(text.split()))
    if length <= MAX_FACT_TEXT:
        return otherwise
    return _(
        "That is too long: {length} characters, {text}. A fact has at most {most}.",
        length=length,
        text=repr(shorten(text, 40)),
        most=MAX_FACT_TEXT,
    )


async def pin(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory pin N``."""
    return await _pinned("pin", arguments, context)


async def unpin(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory unpin N``."""
    return await _pinned("unpin", arguments, context)


async def _pinned(
    op: Literal["pin", "unpin"], arguments: str, context: CommandContext
) -> CommandReply:
    number = parse_fact_number(arguments.strip())
    if number is None:
        return CommandReply(
            _("Which one? For example: `/memory pin 3`. `/memory` lists the numbers.")
        )
    fact = find_fact(number, context)
    if fact is None:
        return CommandReply(unknown_number_text(number, context))
    if not may_edit(fact, context.author, shared=number.shared):
        return CommandReply(_(OWNER_ONLY_TEXT) if number.shared else _(_OTHERS))
    scope = scope_of(number, context)
    if idempotency_key(context) not in scope.fold.decided_keys and fact.status != "active":
        return CommandReply(_ended(number, fact))
    outcome = await scope.apply(person_batch(context, Proposal(op, fact=fact.id)))
    if not outcome.decisions:
        return CommandReply(_(ALREADY_DONE), zone_edit=context.memory.with_current_facts)
    line = fact_line(fact, shared=number.shared)
    told = (
        _("In every prompt from now on: {fact}", fact=line)
        if op == "pin"
        else _("Not kept in every prompt any more: {fact}", fact=line)
    )
    return CommandReply(told, zone_edit=context.memory.with_current_facts)


async def share(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory share N``."""
    if context.author.role != "owner":
        return CommandReply(_(OWNER_ONLY_TEXT))
    number = parse_fact_number(arguments.strip())
    if number is None:
        return CommandReply(_("Which one? For example: `/memory share 3`."))
    fact = find_fact(number, context)
    if fact is None:
        return CommandReply(unknown_number_text(number, context))
    if number.shared:
        line = fact_line(fact, shared=True)
        if fact.status == "active":
            return CommandReply(_("It is shared already: {fact}", fact=line))
        return CommandReply(_("It is shared no longer: {fact}", fact=line))
    workspace, key = context.memory.workspace, idempotency_key(context)
    if fact.status != "active" and key not in workspace.fold.decided_keys:
        line = fact_line(fact)
        return CommandReply(_("Not shared, because it is not believed here: {fact}", fact=line))
    proposal = Proposal(
        "add",
        fact.gloss,
        subject=fact.subject,
        evidence=fact.evidence,
        standing=fact.standing,
    )
    outcome = await workspace.apply(person_batch(context, proposal))
    if not outcome.decisions:
        return CommandReply(_(ALREADY_DONE), zone_edit=context.memory.with_current_facts)
    decided = outcome.decisions[0]  # The other decisions are facts that it ended.
    if decided.fact is None or decided.is_rejected:
        return CommandReply(_("Not shared: {reason}.", reason=decided.reason))
    copy = fact_line(decided.fact, shared=True)
    told = _("Already shared: {fact}", fact=copy)
    if decided.fact.admitted == outcome.entry:
        told = _(
            "Shared: {line}\nEveryone who uses this bot will see it, in every chat. {command} stops it.",
            line=copy,
            command=f"`/memory unshare w{decided.fact.id}`",
        )
    return CommandReply(told, zone_edit=context.memory.with_current_facts)


async def unshare(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory unshare wN``."""
    if context.author.role != "owner":
        return CommandReply(_(OWNER_ONLY_TEXT))
    number = parse_fact_number(arguments.strip())
    if number is None or not number.shared:
        return CommandReply(
            _("Which one? For example: `/memory unshare w3`. `/memory` lists them.")
        )
    if find_fact(number, context) is None:
        return CommandReply(unknown_number_text(number, context))
    batch = person_batch(context, Proposal("retire", fact=number.id))
    outcome = await context.memory.workspace.apply(batch)
    told = _(ALREADY_DONE)
    for decision in outcome.decisions:
        if decision.fact is None:
            continue
        line = fact_line(decision.fact, shared=True)
        if decision.verdict == "approved":
            told = _("No longer shared: {fact}", fact=line)
        else:
            told = _("It was not shared: {fact}", fact=line)
    return CommandReply(told, zone_edit=context.memory.with_current_facts)
