"""Turn the changes of ``memory.save`` into proposals, daily notes into quotations, report the outcome.

Rule 1: a change rests on a person's own words in view; see ``fact_changes.py``.
Rule 2: a daily note enters the prompt, too, and no judge reads it: it is in a person's own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from pydantic import ConfigDict

from bot.agent.fact_changes import (
    FactChange,
    OwnWords,
    gives_orders,
    name_speaker,
    propose_changes,
)
from bot.agent.tools.registry import ToolContext, trim_schema
from bot.core.errors import MemoryRefused
from bot.core.reasons import Reason
from bot.memory.gate.memory_validation import memory_lines
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.fact import Fact
from bot.memory.records.proposals import BatchOutcome, ProposalBatch, ProposalDecision
from bot.memory.records.save_report import ended_item, held_item, plain_text, report_line, worded

_MOST_CHANGES = 50
"""Maximum changes in one call: each is looked for in the messages in view while the user waits."""
_LOOKED_AT = 60
"""Maximum number of messages in view to search, newest first."""
_SHOWN = 160
"""Maximum characters of a text repeated in a reply."""


class MemoryChange(FactChange):
    """A change of long-term memory, as the model requests it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)


def own_words(context: ToolContext) -> OwnWords:
    """Return what a call may quote: the messages that the turn answers, and those in view."""
    earlier = context.memory.fold.window.conversation()[-_LOOKED_AT:]
    entries = {entry.id: entry for entry in (*earlier, *context.answered_messages)}
    ordered = [entries[number] for number in sorted(entries)]
    return OwnWords(context.tape.name, ordered, context.answered_messages)


def make_batch(changes: Sequence[MemoryChange], context: ToolContext) -> ProposalBatch:
    """Return the batch of proposals for changes of facts.

    Raises:
        MemoryRefused: There are too many changes, or this person may not change the facts.
    """
    _check_number(len(changes))
    if any(change.op != "add" for change in changes):
        context.check_rights("change or end facts: only add some")
    facts = {fact.id: fact for fact in context.memory.home.active()}
    proposals = propose_changes(changes, own_words(context), facts)
    return ProposalBatch(context.cause, "assistant", tuple(proposals))


def quoted_note(note: str, quote: str, context: ToolContext) -> str:
    """Return a daily note in a person's own words: its lines that they said, else what they said.

    Raises:
        MemoryRefused: No words of a person carry it, it is an order that they may not give, or it looks
            like a secret.
    """
    words = own_words(context)
    lines = memory_lines(note)
    _check_number(len(lines))
    cited = [found for line in lines if (found := words.find(line)) is not None]
    if not lines or len(cited) < len(lines):
        said = words.find(quote) if quote.strip() else words.whole_message()
        if said is None:
            why = words.why_missing(quote) if quote.strip() else Reason("cites_nothing")
            raise MemoryRefused(f"it is not noted ({why!s}): quote what the user said")
        quoted = f'"{" ".join(said.quote.split())}"'
        note, cited = quoted, [said]
    note = name_speaker(note, cited[0])
    if gives_orders([note], cited, words):
        raise MemoryRefused(f"it is not noted ({Reason('order')!s})")
    if (kind := detect_secret(note)) is not None:
        raise MemoryRefused(f"it is not noted ({Reason('secret', kind=kind)!s})")
    return note


def _check_number(new: int) -> None:
    if new > _MOST_CHANGES:
        raise MemoryRefused(
            f"these are {new} changes: give at most {_MOST_CHANGES} at a time, the most lasting first"
        )


def outcome_text(
    outcome: BatchOutcome,
    changes: Sequence[FactChange],
    timezone: tzinfo | None,
    *,
    has_judge: bool,
) -> str:
    """Return the text that reports a save to the model.

    With a judge it points to the model's own sentences: memory then says the same as soon as they are checked.
    """
    given = [plain_text(change.text) for change in changes]
    saved, parts = [], []
    for number, (decision, text) in enumerate(zip(outcome.decisions, given, strict=True), 1):
        if decision.verdict == "approved" and not _is_proposed(decision.fact):
            saved.append(_done(number, text, decision, timezone, has_judge=has_judge))
        else:
            parts.append(_unsaved(number, text, decision, timezone, has_judge=has_judge))
    saved = list(dict.fromkeys(saved))
    if any(decision.is_rejected for decision in outcome.decisions):
        parts.append(_RETRY_HINT)
    if not saved and any(decision.is_rejected for decision in outcome.decisions):
        parts.insert(0, "Nothing was changed in long-term memory.")
    line = report_line(saved) if saved else ""
    told = "\n".join(filter(None, [line, " ".join(parts)]))
    return told or "Long-term memory already says exactly this."


_RETRY_HINT = "What was not saved you may give once more, with the user's words exactly as quotes."


def _is_proposed(fact: Fact | None) -> bool:
    """Return whether a fact is no more yet than the wish to replace or end others."""
    return fact is not None and fact.proposes_change


def _done(
    number: int, given: str, decided: ProposalDecision, timezone: tzinfo | None, *, has_judge: bool
) -> str:
    """Return what became of the change with this number, to which the call gave this text."""
    fact = decided.fact
    if fact is None or fact.status != "active":
        ended = decided.previous or fact
        return ended_item(ended.id) if ended is not None else "done"
    instead = None if decided.ended is None else decided.ended.id
    text = fact.gloss if has_judge and fact.awaits_judge else fact.told(timezone)
    return held_item(fact.id, worded(number) if text == given else _short(text), instead)


def _short(text: str) -> str:
    """Return a text shortened for a reply."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1].rpartition(' ')[0]}…"


def is_settled(outcome: BatchOutcome, *, whole: bool = False) -> bool:
    """Return whether a save has an approved or already known fact, or no decisions at all.

    Args:
        outcome: What became of it.
        whole: Whether each must be approved or known.
    """
    fine = [
        decision
        for decision in outcome.with_verdict("approved", "known")
        if not is_pending(decision)
    ]
    if whole:
        return len(fine) == len(outcome.decisions)
    return bool(fine) or not outcome.decisions


def is_pending(decided: ProposalDecision) -> bool:
    """Return whether the fact is already known but waits for a person's decision."""
    fact = decided.fact
    return decided.verdict == "known" and fact is not None and fact.status == "pending"


def _unsaved(
    number: int, given: str, decided: ProposalDecision, timezone: tzinfo | None, *, has_judge: bool
) -> str:
    fact, text = decided.fact, _short(decided.proposal.text)
    if fact is not None and decided.verdict == "approved":
        numbers = ", ".join(f"[{number}]" for number in fact.replaces)
        if fact.ends:
            return f"{numbers} stays until it is checked that the user ended it."
        as_worded = has_judge and fact.gloss == given
        told = held_item(fact.id, worded(number) if as_worded else _short(fact.told(timezone)))
        return f"Noted: {told}; {numbers} stays until that is checked."
    if is_pending(decided):
        return f"It waits for the user to decide with /memory pending: {text!r}."
    if decided.verdict == "known":
        return f"Known already ({decided.reason!s}): {text!r}."
    if decided.verdict == "pending":
        return (
            f"Set aside until the user decides with /memory pending ({decided.reason!s}): {text!r}."
        )
    if decided.proposal.op == "retire":
        return f"Not ended ({decided.reason!s}): fact {decided.proposal.fact}."
    return f"Not saved ({decided.reason!s}): {text!r}."
