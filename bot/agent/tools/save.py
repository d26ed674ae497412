"""Turn the changes of ``memory.save`` into proposals, check daily notes, report the outcome.

Rule 1: a text rests on the evidence that ``evidence.py`` finds for it.
Rule 2: a change without new words of the person must keep everything that the old facts said.
Rule 3: a text that is supported only by other people's text in view (quoted, a file, a tool's
    result) waits for a person's decision.
Rule 4: with a judge, a paraphrase is saved if its names, numbers and dates were said, and is judged
    later; without a judge, rules decide at once.
Rule 5: a daily note also enters the prompt, so it must pass the same rules as a fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.tools.evidence import (
    PART_SEPARATOR,
    AvailableEvidence,
    as_sentence,
    collect_evidence,
    dropped_content,
    find_ending_message,
    propose,
    propose_end,
)
from bot.agent.tools.registry import ToolContext, trim_schema
from bot.core.errors import MemoryRefused
from bot.core.reasons import Reason
from bot.memory.gate.claim_support import missing_detail, word_overlap
from bot.memory.gate.memory_validation import memory_lines
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.fact import MAX_FACT_TEXT, Fact
from bot.memory.records.proposals import (
    BatchOutcome,
    Proposal,
    ProposalBatch,
    ProposalDecision,
    ProposalOperation,
)
from bot.memory.records.save_report import ended_item, held_item, report_line
from bot.memory.records.stemming import stemmed_words

CONCLUSION_OPS = ("conclusion", "heuristic", "policy")

_MOST_CHANGES = 50
"""Maximum changes in one call: each is compared with the messages in view while the user waits."""
_NEW = 2
"""Newly stated words that make a change informative; for a short text, half of its words."""
_SHOWN = 160
"""Maximum characters of a text repeated in a reply."""
_NEAREST = 8
"""Number of facts that an ending fact is compared with."""


class MemoryChange(BaseModel):
    """A change of long-term memory, as the model requests it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    op: Literal["add", "change", "end", "conclusion", "heuristic", "policy"]
    fact: int | None = None
    text: str = Field("", max_length=MAX_FACT_TEXT)
    slot: str = Field("", description="of one value, as 'user: home', 'aspirin: dose'")
    entries: list[int] = Field(
        default_factory=list,
        max_length=24,
        description="for a conclusion",
    )


def make_batch(changes: Sequence[MemoryChange], context: ToolContext) -> ProposalBatch:
    """Return the batch of proposals for changes of facts; conclusions are left out.

    Raises:
        MemoryRefused: There are too many changes, or this person may not change the facts.
    """
    _check_number(len(changes))
    memory_changes = [
        memory_change for memory_change in changes if memory_change.op not in CONCLUSION_OPS
    ]
    if any(memory_change.op != "add" for memory_change in memory_changes):
        context.check_rights("change or end facts: only add some")
    facts = {fact.id: fact for fact in context.memory.facts()}
    touched = {memory_change.fact for memory_change in memory_changes if memory_change.op != "add"}
    grounds = replace(
        collect_evidence(context),
        has_judge=context.has_judge,
        changed_facts=tuple(fact for fact in facts.values() if fact.id in touched),
    )
    proposals = [
        _changed(memory_change, facts.get(memory_change.fact or 0), grounds)
        for memory_change in memory_changes
    ]
    stay = [fact.text for fact in facts.values() if fact.id not in touched]
    return ProposalBatch(context.cause, "assistant", tuple(_kept(proposals, facts, stay, grounds)))


def _changed(change: MemoryChange, fact: Fact | None, grounds: AvailableEvidence) -> Proposal:
    """Return one change as a proposal, with its evidence or an objection."""
    text = " ".join(change.text.split()).lstrip("-*• ")
    if change.op == "add":
        return replace(propose("add", text, grounds), slot=change.slot)
    op: ProposalOperation = "retire" if change.op == "end" else "supersede"
    if fact is None:
        return Proposal(
            op,
            text,
            change.fact,
            objection=Reason("fact_missing", fact=change.fact)
            if change.fact
            else Reason("fact_unnamed"),
        )
    if change.op == "end":
        return propose_end(fact, grounds)
    return replace(propose("supersede", text, grounds, fact.id), slot=change.slot)


def _kept(
    made: Sequence[Proposal],
    facts: Mapping[int, Fact],
    stay: Sequence[str],
    grounds: AvailableEvidence,
) -> list[Proposal]:
    """Return the proposals with an objection to each that drops content of a fact without reason."""
    made = list(made)
    words = [(one, frozenset(stemmed_words(one))) for one in stay]
    carried = {
        proposal.fact
        for proposal in made
        if proposal.op == "retire"
        and proposal.merged
        and _is_carried(facts.get(proposal.fact or 0), words)
    }
    while True:
        # The replacement text: the accepted new texts together.
        new = " ".join(
            as_sentence(proposal.text)
            for proposal in made
            if proposal.op != "retire" and not proposal.obstacle
        )
        proposals = [
            proposal
            if proposal.fact in carried
            else _checked(proposal, facts.get(proposal.fact or 0), new, grounds)
            for proposal in made
        ]
        if proposals == made:
            return made
        made = proposals


def _is_carried(fact: Fact | None, texts: Sequence[tuple[str, frozenset[str]]]) -> bool:
    """Return whether one of the texts, each with its words, says all that a fact does.

    Only those that share most words are compared, for speed.
    """
    if fact is None:
        return False
    words = set(stemmed_words(fact.text))
    nearest = nlargest(_NEAREST, texts, key=lambda one: len(words & one[1]))
    return any(not dropped_content(fact, text) for text, _ in nearest)


def _checked(
    proposal: Proposal, fact: Fact | None, heir: str, grounds: AvailableEvidence
) -> Proposal:
    """Return a proposal, with an objection if its replacement text drops content of the fact."""
    if fact is None or proposal.obstacle:
        return proposal
    if proposal.op == "retire" and proposal.merged and (not heir or dropped_content(fact, heir)):
        return replace(proposal, objection=find_ending_message(fact, grounds)[1])
    if proposal.op != "supersede" or _adds_information(proposal.text, grounds):
        return proposal
    # Dropped content must have been mentioned: asking about a fact, or for tidier facts, removes
    # nothing.
    why = dropped_content(fact, f"{heir} {grounds.answered_text}")
    return replace(proposal, objection=why) if why else proposal


def _adds_information(text: str, grounds: AvailableEvidence) -> bool:
    """Return whether a text says more than the facts that are changed.

    That is a new literal, or enough words that are stated now. A statement in another language
    shares no words with the text; the judge decides on that.
    """
    if missing_detail(
        text, grounds.changed_facts_text, None, loose=True
    ) is not None or grounds.may_be_translation(text):
        return True
    words, known = stemmed_words(text), set(stemmed_words(grounds.changed_facts_text))
    new = [word for word in words if word not in known]
    said = word_overlap(" ".join(new), grounds.stated_text) * len(new)
    return said >= min(_NEW, len(words) / 2)


def check_daily_note(note: str, context: ToolContext) -> str:
    """Return a daily note that passes the rules for facts; in a group with the speaker's name.

    Raises:
        MemoryRefused: A line is not supported; nothing is noted.
    """
    lines: list[str] = []
    _check_number(len(memory_lines(note)))
    grounds = collect_evidence(context)
    for written in note.splitlines():
        for line in memory_lines(written):
            proposal = _by_parts(line, grounds)
            why = proposal.review_reason or proposal.objection
            if not why and (what := detect_secret(line)) is not None:
                why = Reason("secret", kind=what)
            if why:
                raise MemoryRefused(
                    f"{line[:120]!r} is not noted ({why!s}): note only what the user said themselves"
                )
            written = written.replace(line, proposal.text)  # noqa: PLW2901 - bullets stay
        lines.append(written)
    return "\n".join(lines)


def _by_parts(line: str, grounds: AvailableEvidence) -> Proposal:
    """Return a line as one proposal, checked as a whole or part by part."""
    whole = propose("add", line, grounds)
    parts = [one for one in PART_SEPARATOR.split(line) if one.strip()]
    if not whole.obstacle or len(parts) < 2:
        return whole
    proposals = [propose("add", part.strip(), grounds) for part in parts]
    alone = all(proposal.evidence and not proposal.obstacle for proposal in proposals)
    return (
        replace(proposals[0], text=line)
        if alone and proposals[0].text == parts[0].strip()
        else whole
    )


def _check_number(new: int) -> None:
    if new > _MOST_CHANGES:
        raise MemoryRefused(
            f"these are {new} changes: give at most {_MOST_CHANGES} at a time, the most lasting first"
        )


def outcome_text(outcome: BatchOutcome, version: int) -> str:
    """Return the text that reports a save to the model."""
    done = [
        decision
        for decision in outcome.decisions
        if decision.verdict == "approved" or _ended_here(decision, outcome)
    ]
    saved = list(dict.fromkeys(map(_done, done)))
    line = report_line(version, saved) if saved else ""
    parts = []
    if not saved and any(decision.is_rejected for decision in outcome.decisions):
        parts.append("Nothing was changed in long-term memory.")
    left = [decision for decision in outcome.decisions if decision not in done]
    parts += map(_unsaved, left)
    if any(decision.is_rejected for decision in left):
        parts.append(_RETRY_HINT)
    told = "\n".join(filter(None, [line, " ".join(parts)]))
    return told or "Long-term memory already says exactly this."


_RETRY_HINT = (
    "What was not saved you may give once more, closer to the user's own words. Tell the user of it only if they "
    "asked you to save it."
)


def _ended_here(decided: ProposalDecision, outcome: BatchOutcome) -> bool:
    """Return whether a fact that was to end was ended by another change of the same call."""
    fact = decided.fact
    ends = decided.proposal.op == "retire" and decided.verdict == "known" and fact is not None
    return ends and fact is not None and fact.batch == outcome.entry


def _done(decided: ProposalDecision) -> str:
    fact = decided.fact
    if fact is None or fact.status != "active":
        ended = decided.previous or fact
        return ended_item(ended.id) if ended is not None else "done"
    instead = None if decided.ended is None else decided.ended.id
    return held_item(fact.id, _short(fact.text), instead)


def _short(text: str) -> str:
    """Return a text shortened for a reply."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1].rpartition(' ')[0]}…"


def is_settled(outcome: BatchOutcome) -> bool:
    """Return whether a save has an approved or already known fact, or no decisions at all."""
    fine = [
        decision
        for decision in outcome.with_verdict("approved", "known")
        if not is_pending(decision)
    ]
    return bool(fine) or not outcome.decisions


def is_pending(decided: ProposalDecision) -> bool:
    """Return whether the fact is already known but waits for a person's decision."""
    fact = decided.fact
    return decided.verdict == "known" and fact is not None and fact.status == "pending"


def _unsaved(decided: ProposalDecision) -> str:
    text = _short(decided.proposal.text)
    if decided.proposal.op == "retire":
        fact = decided.fact
        ended = f"{_short(fact.text)!r}" if fact is not None else f"fact {decided.proposal.fact}"
        return f"Not ended ({decided.reason!s}): {ended}."
    if is_pending(decided):
        return f"It waits for the user to decide with /memory pending: {text!r}."
    if decided.verdict == "known":
        return f"Known already: {text!r}."
    if decided.verdict == "pending":
        return (
            f"Set aside until the user decides with /memory pending ({decided.reason!s}): {text!r}."
        )
    return f"Not saved ({decided.reason!s}): {text!r}."
