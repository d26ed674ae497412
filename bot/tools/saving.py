"""``memory.save``: single changes of long-term memory, each with what it rests on.

Rule 1: a text rests on the person's own words in the turn that saves it, or earlier in view; or, where facts are
    merged, split or reworded, on the facts that the same call changes or ends.
Rule 2: what is changed without new words of the person keeps all that the facts said.
Rule 3: where other people's text is in view (quoted, a file, a tool's result), a text that it carries
    and no person's words do waits for a person.
Rule 4: where there is a judge, a text that puts something in words of its own is saved if its names, numbers and
    dates were said, and is judged afterwards; else rules decide at once.
Rule 5: a daily note is in the prompt as well: what would not be believed is not noted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from heapq import nlargest
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.errors import MemoryRefused
from bot.memory.facts.asked import ORDERS
from bot.memory.facts.citing import cite, cite_others, is_own, others_words, words_in
from bot.memory.facts.fact import LONGEST_TEXT, Evidence, Fact, joined
from bot.memory.facts.proposals import Batch, Decided, Operation, Outcome, Proposal
from bot.memory.gate.claims import best_support, is_verbatim, missing, overlap, unsupported
from bot.memory.gate.clauses import clauses
from bot.memory.gate.ending import not_ended
from bot.memory.gate.orders import gives_orders
from bot.memory.gate.secrets import looks_secret
from bot.memory.guards import lines_of
from bot.memory.transcript import is_owner, said_on, speaker
from bot.memory.words import words_of
from bot.tape.entries import TapeEntry
from bot.tools.registry import ToolContext, trimmed

CONCLUSIONS = ("conclusion", "heuristic", "policy")

_LOOKED_AT = 60
_MOST_CHANGES = 50
"""In one call: each is compared with all that was said, while everybody waits."""
_CARRIED = 0.5
_PARTS = re.compile(r"[;.](?=\s|$)|\n")
_KEPT = 0.6
"""Share of a fact's words that the texts which take its place must have."""
_NEAREST = 8
"""Facts that are compared with one that ends."""
_EARLIER = 3
"""Messages before those that are answered which a text may rest on as well."""
_OWN_TOOLS = frozenset(
    ("memory_save", "memory_daily", "memory_show", "memory_clear", "memory_forget", "skill_read")
)


class Change(BaseModel):
    """A change of long-term memory, as a model asks for it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trimmed)

    op: Literal["add", "change", "end", "conclusion", "heuristic", "policy"]
    fact: int | None = Field(None, description="number, to change or end")
    text: str = Field("", max_length=LONGEST_TEXT)
    entries: list[int] = Field(
        default_factory=list,
        max_length=24,
        description="numbers, for a conclusion",
    )


def saving(changes: Sequence[Change], context: ToolContext) -> Batch:
    """Return the batch that makes changes of facts; conclusions are left out.

    Args:
        changes: Of one call.
        context: Of the call.

    Raises:
        MemoryRefused: There are too many, or the facts are not for this person to change.
    """
    _check_number(len(changes))
    wanted = [one for one in changes if one.op not in CONCLUSIONS]
    if not context.may_clear and any(one.op != "add" for one in wanted):
        raise MemoryRefused("in a group only an owner may change or end facts: only add some")
    facts = {one.id: one for one in context.memory.facts()}
    touched = {one.fact for one in wanted if one.op != "add"}
    grounds = replace(
        _grounds(context),
        judged=context.judged,
        changed=tuple(one for one in facts.values() if one.id in touched),
    )
    made = [_changed(one, facts.get(one.fact or 0), grounds) for one in wanted]
    stay = [one.text for one in facts.values() if one.id not in touched]
    return Batch(f"call:{context.call}", "assistant", tuple(_kept(made, facts, stay, grounds)))


def _changed(change: Change, fact: Fact | None, grounds: _Grounds) -> Proposal:
    """Return one change as a proposal, with what it rests on or why it does not hold."""
    text = " ".join(change.text.split()).lstrip("-*• ")
    if change.op == "add":
        return _proposed("add", text, grounds)
    op: Operation = "retire" if change.op == "end" else "supersede"
    if fact is None:
        return Proposal(op, text, change.fact, why=f"there is no fact {change.fact or ''}".rstrip())
    if change.op == "end":
        return _ended(fact, grounds)
    return _proposed("supersede", text, grounds, fact.id)


def _kept(
    made: Sequence[Proposal], facts: Mapping[int, Fact], stay: Sequence[str], grounds: _Grounds
) -> list[Proposal]:
    """Return proposals with word against those that drop what a fact said, which nobody said anything new of.

    Args:
        made: The proposals of one call.
        facts: All that are believed, by number.
        stay: Texts of those that the call does not touch.
        grounds: What they rest on.
    """
    made = list(made)
    words = [(one, frozenset(words_of(one))) for one in stay]
    carried = {
        one.fact
        for one in made
        if one.op == "retire" and one.merged and _is_carried(facts.get(one.fact or 0), words)
    }
    while True:
        # What says from now on what a fact said: the new texts that hold, together, or one that stays.
        new = " ".join(_sentence(one.text) for one in made if one.op != "retire" and _holds(one))
        kept = [
            one if one.fact in carried else _checked(one, facts.get(one.fact or 0), new, grounds)
            for one in made
        ]
        if kept == made:
            return made
        made = kept


def _is_carried(fact: Fact | None, texts: Sequence[tuple[str, frozenset[str]]]) -> bool:
    """Say whether one of the texts, each with its words, says all that a fact does.

    Only those with most of its words are compared: of many facts that would hold everybody up.
    """
    if fact is None:
        return False
    words = set(words_of(fact.text))
    nearest = nlargest(_NEAREST, texts, key=lambda one: len(words & one[1]))
    return any(not _lost(fact, text) for text, _ in nearest)


def _checked(made: Proposal, fact: Fact | None, heir: str, grounds: _Grounds) -> Proposal:
    """Return a proposal with word against it if it drops what a fact said, and the text in its place does not say."""
    if fact is None or not _holds(made):
        return made
    if made.op == "retire" and made.merged and (not heir or _lost(fact, heir)):
        return replace(made, why=_not_ended(fact, grounds)[1])
    if made.op != "supersede" or _says_new(made.text, grounds):
        return made
    # What is dropped must have been spoken of: asking for a fact, or for order among facts, takes nothing from it.
    why = _lost(fact, f"{heir} {grounds.said}")
    return replace(made, why=why) if why else made


def _says_new(text: str, grounds: _Grounds) -> bool:
    """Say whether a text says what the facts do not that are changed: a literal, or half its words."""
    if missing(text, grounds.known, None, loose=True) is not None:
        return True
    words, known = words_of(text), set(words_of(grounds.known))
    new = [one for one in words if one not in known]
    said = overlap(" ".join(new), grounds.said) * len(new)
    return said * 2 >= len(words)


def _holds(made: Proposal) -> bool:
    return not (made.why or made.suspect)


def noted(note: str, context: ToolContext) -> str:
    """Return a daily note, in a group with who said it, by the rules for texts of memory.

    Raises:
        MemoryRefused: A line of it does not hold; nothing is noted.
    """
    lines: list[str] = []
    _check_number(len(lines_of(note)))
    grounds = _grounds(context)
    for written in note.splitlines():
        for line in lines_of(written):
            proposal = _proposed("add", line, grounds)
            why = proposal.suspect or proposal.why
            if not why and (what := looks_secret(line)) is not None:
                why = f"it looks like {what}"
            if why:
                raise MemoryRefused(
                    f"{line[:120]!r} is not noted ({why}): note only what the user said themselves"
                )
            written = written.replace(line, proposal.text)  # noqa: PLW2901 - bullets stay
        lines.append(written)
    return "\n".join(lines)


def _check_number(new: int) -> None:
    if new > _MOST_CHANGES:
        raise MemoryRefused(
            f"these are {new} changes: give at most {_MOST_CHANGES} at a time, the most lasting first"
        )


def told(outcome: Outcome, version: int) -> str:
    """Return what the model is told of its save."""
    done = [
        one for one in outcome.decided if one.verdict == "approved" or _ended_here(one, outcome)
    ]
    saved = list(dict.fromkeys(map(_done, done)))
    parts = []
    if saved:
        parts.append(f"Saved to long-term memory (version {version}): {'; '.join(saved)}.")
    elif any(one.verdict in ("refused", "logged") for one in outcome.decided):
        parts.append("Nothing was changed in long-term memory.")
    left = [one for one in outcome.decided if one not in done]
    parts += map(_unsaved, left)
    if any(one.verdict in ("refused", "logged") for one in left):
        parts.append(_MENDED)
    return " ".join(parts) or "Long-term memory already says exactly this."


_MENDED = (
    "You may mend what was not saved once, with the user's own words; tell the user of it only if they asked "
    "you to save it."
)


def _ended_here(decided: Decided, outcome: Outcome) -> bool:
    """Say whether a fact that was to end was ended by another change of the same call."""
    fact = decided.fact
    ends = decided.proposal.op == "retire" and decided.verdict == "known" and fact is not None
    return ends and fact is not None and fact.batch == outcome.entry


def _done(decided: Decided) -> str:
    fact = decided.fact
    if fact is None or fact.status != "active":
        ended = decided.was or fact
        return f"[{ended.id}] has ended" if ended is not None else "done"
    return f"[{fact.id}] {fact.text[:120]}"


def is_settled(outcome: Outcome) -> bool:
    """Say whether something of a save is believed now, or was before, or nothing was asked."""
    fine = [one for one in outcome.of("approved", "known") if not waits(one)]
    return bool(fine) or not outcome.decided


def waits(decided: Decided) -> bool:
    """Say whether what is known already waits for a person."""
    fact = decided.fact
    return decided.verdict == "known" and fact is not None and fact.status == "pending"


def _unsaved(decided: Decided) -> str:
    text = decided.proposal.text[:120]
    if decided.proposal.op == "retire":
        fact = decided.fact
        ended = f"{fact.text[:120]!r}" if fact is not None else f"fact {decided.proposal.fact}"
        return f"Not ended ({decided.reason}): {ended}."
    if waits(decided):
        return f"It waits for the user to decide with /memory pending: {text!r}."
    if decided.verdict == "known":
        return f"Known already: {text!r}."
    if decided.verdict == "pending":
        return (
            f"Set aside until the user decides with /memory pending ({decided.reason}): {text!r}."
        )
    return f"Not saved ({decided.reason}): {text!r}."


@dataclass(frozen=True, slots=True)
class _Grounds:
    """What texts may rest on.

    Attributes:
        tape: That holds it.
        timezone: The user's.
        asking: The messages that the turn answers.
        own: People's own messages, newest first, those that the turn answers before all others.
        foreign: Texts in view that are no person's own, each as evidence.
        judged: Somebody judges later what rules cannot tell.
        changed: The facts that the same call changes or ends.
    """

    tape: str
    timezone: tzinfo | None
    asking: Sequence[TapeEntry]
    own: Sequence[TapeEntry]
    foreign: Sequence[tuple[str, Evidence]]
    judged: bool = False
    changed: tuple[Fact, ...] = ()

    @property
    def known(self) -> str:
        """What those facts say."""
        return " ".join(_sentence(one.text) for one in self.changed)

    @property
    def said(self) -> str:
        """What the people say whom the turn answers."""
        return " ".join(words_in(one) for one in self.asking if is_own(one))


@dataclass(frozen=True, slots=True)
class _Rest:
    """What a text rests on.

    Attributes:
        evidence: Where it was said.
        why: Why nothing carries it; empty where something does.
        unverified: A judge is still to say whether it does.
        merged: It rests on the facts that the call changes or ends, and on no other words.
    """

    evidence: tuple[Evidence, ...] = ()
    why: str = ""
    unverified: bool = False
    merged: bool = False


def _grounds(context: ToolContext) -> _Grounds:
    earlier = context.memory.fold.window.spoken()[-_LOOKED_AT:]
    newest = [*reversed(context.asking), *reversed(earlier)]
    own = [one for one in newest if one.kind == "message" and is_own(one)]
    return _Grounds(
        context.tape.name,
        context.zone.timezone,
        context.asking,
        [one for one in {one.id: one for one in own}.values() if one.payload.get("content")],
        _foreign(earlier, context.tape.name),
    )


def _proposed(op: Operation, text: str, grounds: _Grounds, fact: int | None = None) -> Proposal:
    rest = _rest(text, grounds)
    evidence = rest.evidence
    foreign = [one for other, one in grounds.foreign if overlap(text, other) >= _CARRIED]
    suspect = ""
    if not evidence and foreign:
        evidence = (foreign[-1],)
        suspect = "it is from quoted or fetched text, and no words of a person say it"
    elif gives_orders(text) and not all(_may_order(one) for one in grounds.asking):
        evidence = evidence or tuple(cite(grounds.tape, one) for one in grounds.asking)
        suspect = ORDERS
    if suspect:
        return Proposal(op, text, fact, evidence=evidence, suspect=suspect)
    return Proposal(
        op,
        _attributed(text, evidence),
        fact,
        evidence=evidence,
        why=rest.why,
        unverified=rest.unverified,
        merged=rest.merged,
    )


def _may_order(entry: TapeEntry) -> bool:
    return entry.meta.get("private", True) is not False or is_owner(entry)


def _attributed(text: str, evidence: Sequence[Evidence]) -> str:
    """Return a text of a group with who said it: "I" is whoever speaks."""
    who = evidence[0].who if evidence and evidence[0].origin == "member" else ""
    return text if not who or who in text else f"{who}: {text}"


def _rest(text: str, grounds: _Grounds) -> _Rest:
    """Return what a text rests on: one message, the facts that it is made from, or what is being answered."""
    for entry in grounds.own:
        said_then = said_on(entry, grounds.timezone)
        sentence = best_support(text, words_in(entry), when=said_then, names=(speaker(entry),))
        if sentence is not None:
            unverified = grounds.judged and not is_verbatim(text, sentence)
            return _Rest((cite(grounds.tape, entry, sentence),), unverified=unverified)
    asking = [one for one in grounds.asking if is_own(one)]
    said = grounds.said
    if grounds.changed and (not overlap(text, said) or grounds.foreign):
        # Nothing of it was said now: the facts are put in order.
        return _on_facts(text, grounds) or _Rest(why="no words of the user carry it")
    if not asking or grounds.foreign:
        return _Rest(why="no words of the user carry it")
    # In other words, or in another language: names, numbers and dates must be there all the same.
    names = tuple(speaker(one) for one in asking)
    when, known = said_on(asking[-1], grounds.timezone), grounds.known
    cited = tuple(cite(grounds.tape, one) for one in asking)
    why = unsupported(text, said, when=when, names=names)
    if why is not None and known:
        why = unsupported(text, said, when=when, names=names, known=known) and why
    if why is None or not grounds.judged:
        return _Rest(why=why) if why is not None else _Rest(cited, unverified=grounds.judged)
    earlier = [one for one in grounds.own if one not in asking and overlap(text, words_in(one)) > 0]
    earlier = earlier[:_EARLIER]
    said = " ".join([said, known, *map(words_in, earlier)])
    why = missing(text, said, when, names=names, loose=True)
    cited = (*(cite(grounds.tape, one) for one in reversed(earlier)), *cited)
    if why is None:
        return _Rest(cited, unverified=True)
    return (_on_facts(text, grounds) if grounds.changed else None) or _Rest(why=why)


def _on_facts(text: str, grounds: _Grounds) -> _Rest | None:
    """Return how facts that are merged, split or reworded carry a text; None where it says more than they do."""
    known = grounds.known
    parts = [one for one in _PARTS.split(text) if one.strip()]
    held = overlap(text, known) == 1.0 and (
        _carries(known, text)
        or all(any(_carries(one.text, part) for one in grounds.changed) for part in parts)
    )
    loose = grounds.judged and overlap(text, known) >= _CARRIED
    if not held and (not loose or missing(text, known, None, loose=True) is not None):
        return None
    evidence: tuple[Evidence, ...] = ()
    for one in grounds.changed:
        if overlap(text, one.text) > 0:
            evidence = joined(evidence, one.evidence)
    unverified = not held or any(one.unverified for one in grounds.changed)
    return _Rest(evidence, unverified=unverified, merged=True) if evidence else None


def _carries(fact: str, text: str) -> bool:
    """Say whether what facts say carries a text by the rules, and both deny or neither does."""
    denies = [any(one.negated for one in clauses(said)) for said in (fact, text)]
    return denies[0] == denies[1] and unsupported(text, _sentence(fact)) is None


def _sentence(text: str) -> str:
    return f"{text.rstrip('. ')}."


def _lost(fact: Fact, heir: str) -> str:
    """Return what of a fact a text does not say that takes its place; empty where it says all of it."""
    if (literal := missing(fact.text, heir, None, loose=True)) is not None:
        return f"of fact {fact.id} it drops something that the user said: {literal}"
    if overlap(fact.text, heir) < _KEPT:
        return f"it drops most of what fact {fact.id} says"
    return ""


def _foreign(entries: Sequence[TapeEntry], tape: str) -> list[tuple[str, Evidence]]:
    """Return the texts among entries that are no person's own, each as evidence."""
    found = []
    for entry in entries:
        if entry.kind == "tool_result" and entry.payload.get("name") not in _OWN_TOOLS:
            text = str(entry.payload.get("content", ""))
            found.append((text, cite(tape, entry)))
        found += [(text, cite_others(tape, entry, text)) for text in others_words(entry)]
    return found


def _ended(fact: Fact, grounds: _Grounds) -> Proposal:
    """Return the end of a fact: who is answered said that it has ended, or another text is to say what it said."""
    entry, _ = _not_ended(fact, grounds)
    if entry is not None:
        return Proposal("retire", fact=fact.id, evidence=(cite(grounds.tape, entry),))
    return Proposal("retire", fact=fact.id, evidence=fact.evidence, merged=True)


def _not_ended(fact: Fact, grounds: _Grounds) -> tuple[TapeEntry | None, str]:
    """Return the message that is answered which says that a fact has ended, or None and why none does."""
    why = "the user said nothing of it"
    for entry in filter(is_own, grounds.asking):
        found = not_ended(fact.text, words_in(entry))
        if found is None:
            return entry, ""
        why = found
    return None, why
