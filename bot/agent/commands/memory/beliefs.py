"""``/memory beliefs``, and ``why``, ``accept`` and ``drop`` for beliefs and facts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from bot.agent.commands.memory.fact_numbers import parse_belief_names
from bot.agent.commands.memory.fact_text import (
    AUTHOR_NAMES,
    age_text,
    author_name,
    bullet_list,
    confidence_text,
    is_today,
    shorten,
    signals_text,
)
from bot.agent.commands.memory.pending import accept_facts as accept_pending
from bot.agent.commands.memory.pending import drop_facts as drop_pending
from bot.agent.commands.memory.why import evidence_line, why_fact
from bot.agent.commands.pagination import paginate, parse_page_number, split_page_number
from bot.agent.commands.registry import CommandContext, CommandReply, idempotency_key
from bot.agent.texts import bold, joined, joined_clauses, local_time
from bot.core.clock import format_time
from bot.core.i18n import N_, _
from bot.core.reasons import reason_text
from bot.core.text import escape_markdown
from bot.memory.gate.belief_updates import is_current, is_unjudged
from bot.memory.records.compartment_records import EpisodeEntry, SynthesizedPattern
from bot.memory.records.episodes import entry_of
from bot.memory.records.evidence import cite
from bot.tape.entries import TapeEntry

_NOTHING = N_("There are no beliefs yet.")
_HINT = N_(
    "`/memory why pN` shows the evidence, `/memory accept pN` confirms a belief, `/memory drop pN` "
    "ends it."
)

_KINDS = {
    "conclusion": N_("conclusion"),
    "fact": N_("fact"),
    "heuristic": N_("heuristic"),
    "policy": N_("policy"),
    "summary": N_("summary"),
}
_STATES = {
    "active": N_("Believed: a {kind}, {state}."),
    "unjudged": N_("Not used yet: a {kind}, {state}."),
    "stale": N_("No longer used: a {kind}, {state}."),
    "retired": N_("Ended: a {kind}, {state}."),
}


async def beliefs(page: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory beliefs``."""
    found = [
        belief for belief in await context.memory.bus.semantic.search() if _is_own(belief, context)
    ]
    if not found:
        return CommandReply(_(_NOTHING))
    lines = [bold(_("Beliefs")), *(_line(belief, context) for belief in found)]
    parts = ["\n".join(lines), _(_HINT)]
    text, buttons = paginate("\n\n".join(parts), parse_page_number(page), "/memory beliefs")
    return CommandReply(text, buttons=buttons)


def _is_own(pattern: SynthesizedPattern, context: CommandContext) -> bool:
    return pattern.id in context.memory.home.compartments.patterns


def _line(belief: SynthesizedPattern, context: CommandContext) -> str:
    kind = joined_clauses([_(_KINDS[belief.pattern_type]), _standing(belief, context)])
    told = f"{_named(belief)} ({kind})"
    if belief.status != "stale":
        return told
    if is_unjudged(belief):
        return _("{belief}: not used yet, {reason}", belief=told, reason=_reason(belief, context))
    return _("{belief}: no longer used, {reason}", belief=told, reason=_reason(belief, context))


def _named(belief: SynthesizedPattern) -> str:
    return f"**{belief.id}.** {escape_markdown(shorten(belief.text))}"


def _standing(belief: SynthesizedPattern, context: CommandContext) -> str:
    """Return a belief's confidence, and how long ago it was last confirmed."""
    zone = context.zone
    stamp = format_time(belief.last_validated)
    if is_today(stamp, zone.today(), zone.timezone):
        since = _("confirmed today")
    else:
        since = _("last confirmed {age} ago", age=age_text(stamp, zone.today(), zone.timezone))
    return joined([confidence_text(belief.confidence_at(zone.now())), since])


def _reason(belief: SynthesizedPattern, context: CommandContext) -> str:
    """Return the reason for a belief's status; entries of this chat without the tape's name."""
    return escape_markdown(f"{belief.reason}".replace(f"{context.tape.name}#", "#"))


async def why(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory why N`` and ``/memory why pN``."""
    word, page = split_page_number(arguments)
    names = parse_belief_names(word)
    if len(names) == 1:
        return await _why_belief(names[0], page, context)
    return await why_fact(arguments, context)


async def _why_belief(name: str, page: int, context: CommandContext) -> CommandReply:
    pattern = await context.memory.bus.semantic.get_pattern(name)
    if pattern is None:
        return CommandReply(_missing(name))
    if not pattern.text or (pattern.status != "retired" and not is_current(pattern)):
        return CommandReply(_("{name} was forgotten and erased.", name=name))
    parts = [part async for part in _told(pattern, context)]
    text, buttons = paginate("\n".join(parts), page, f"/memory why {name} page")
    return CommandReply(text, buttons=buttons)


async def _told(pattern: SynthesizedPattern, context: CommandContext) -> AsyncIterator[str]:
    """Yield the explanation of a belief line by line."""
    semantic = context.memory.bus.semantic
    yield _named(pattern)
    yield _(
        _STATES["unjudged" if is_unjudged(pattern) else pattern.status],
        kind=_(_KINDS[pattern.pattern_type]),
        state=_standing(pattern, context),
    )
    if pattern.reason:
        yield _("Reason: {reason}.", reason=_reason(pattern, context))
    through = [evidence_id for evidence_id in pattern.evidence_ids if "#" not in evidence_id]
    if through:
        yield _("It follows from {names}, which have this evidence.", names=joined(through))
    yield _("Evidence:")
    for episode in await semantic.get_evidence_chain(pattern.id):
        yield f"- {await _evidence(episode, context)}"
    if (entry := await semantic.find_decision_entry(pattern.id)) is not None:
        yield f"\n{_decision(entry, context)}"


async def _evidence(episode: EpisodeEntry, context: CommandContext) -> str:
    place = episode.id.replace(f"{context.tape.name}#", "#")
    read = await entry_of(context.tape.store, episode.id)
    if read is None or episode.content.get("missing") is True:
        return _("entry {entry}, which no longer exists", entry=escape_markdown(place))
    if episode.content.get("erased") is True:
        return _("entry {entry}, whose words were erased", entry=escape_markdown(place))
    return evidence_line(cite(*read), context)


def _decision(entry: TapeEntry, context: CommandContext) -> str:
    """Return the gate's decision in words, with its signals."""
    decision, by = entry.data.get("decision"), str(entry.data.get("by"))
    found: Mapping[str, Any] = decision if isinstance(decision, dict) else {}
    went_by = entry.data.get("signals")
    more = signals_text(went_by) if isinstance(went_by, dict) else ""
    when = local_time(entry.meta.get("ts"), context.zone.timezone)
    who = author_name(by) if by in AUTHOR_NAMES else _("a person asked")
    reason = reason_text(found.get("reason") or {"code": "approved"})
    told = joined_clauses([reason, more]) if more else reason
    return _("Decision of {time} ({author}): {reason}.", time=when, author=who, reason=told)


async def accept(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory accept N`` and ``/memory accept pN``."""
    if names := parse_belief_names(arguments):
        return await _revalidated(names, context, still_valid=True)
    return await accept_pending(arguments, context)


async def drop(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory drop N``, ``/memory drop pN`` and ``/memory drop all``."""
    if names := parse_belief_names(arguments):
        return await _revalidated(names, context, still_valid=False)
    return await drop_pending(arguments, context)


async def _revalidated(
    names: list[str], context: CommandContext, *, still_valid: bool
) -> CommandReply:
    semantic = context.memory.bus.semantic
    told = []
    for name in names:
        pattern = await semantic.get_pattern(name)
        if pattern is None:
            told.append(_missing(name))
            continue
        cause = f"{idempotency_key(context)}:{name}"
        await semantic.revalidate(name, still_valid, cause=cause, asker=context.author.id)
        if still_valid:
            told.append(_("Confirmed: {belief}", belief=_named(pattern)))
        else:
            told.append(_("Ended: {belief}", belief=_named(pattern)))
    return CommandReply(bullet_list(told), zone_edit=context.memory.with_current_facts)


def _missing(name: str) -> str:
    return _("There is no {name}. `/memory beliefs` lists them.", name=name)
