"""What the texts of a save rest on: people's words in view, or the facts that the same call changes.

Rule 1: the first of these that carries a text is cited: a sentence of one message, the facts that are merged, split
    or reworded, all that is being answered.
Rule 2: of a text with words that only other people's texts in view have, one sentence or the facts must carry all.
Rule 3: names, numbers and dates are always checked; the rest is left to the judge where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from bot.agent.tools.registry import ToolContext
from bot.language.clauses import clauses, sentences
from bot.memory.facts.asked import ORDERS
from bot.memory.facts.citing import cite, cite_others, is_own, others_words, words_in
from bot.memory.facts.fact import Evidence, Fact, joined
from bot.memory.facts.proposals import Operation, Proposal
from bot.memory.gate.claims import (
    best_support,
    is_statement,
    is_verbatim,
    missing,
    overlap,
    unsupported,
)
from bot.memory.gate.ending import not_ended
from bot.memory.gate.orders import gives_orders
from bot.memory.transcript import is_owner, said_on, speaker
from bot.memory.words import words_of
from bot.tape.entries import TapeEntry

_LOOKED_AT = 60
"""Messages in view that are looked through, newest first."""
_CARRIED = 0.5
"""Share of a text's words that others' text must have to be where it is from."""
PARTS = re.compile(r"[;.](?=\s|$)|\n")
"""What stands between the parts of a text that say something each."""
_KEPT = 0.6
"""Share of a fact's words that the texts which take its place must have."""
_EARLIER = 3
"""Messages before those that are answered which a text may rest on as well."""
_NAMED = 4
"""Words that a refusal names."""
_OWN_TOOLS = frozenset(
    ("memory_save", "memory_daily", "memory_show", "memory_clear", "memory_forget", "skill_read")
)


@dataclass(frozen=True, slots=True)
class Grounds:
    """What texts may rest on.

    Attributes:
        tape: That holds it.
        timezone: The user's.
        asking: The messages that the turn answers.
        own: People's own messages, newest first, those that the turn answers before all others.
        foreign: Texts in view that are no person's own, each as evidence.
        others: Words that stand in those alone, and in nothing that a person said or that is believed.
        judged: Somebody judges later what rules cannot tell.
        changed: The facts that the same call changes or ends.
    """

    tape: str
    timezone: tzinfo | None
    asking: Sequence[TapeEntry]
    own: Sequence[TapeEntry]
    foreign: Sequence[tuple[str, Evidence]]
    others: frozenset[str]
    judged: bool = False
    changed: tuple[Fact, ...] = ()

    @property
    def known(self) -> str:
        """What those facts say."""
        return " ".join(as_sentence(one.text) for one in self.changed)

    @property
    def said(self) -> str:
        """What the people say whom the turn answers."""
        return " ".join(words_in(one) for one in self.asking if is_own(one))

    @property
    def stated(self) -> str:
        """What of that they state: no questions, suppositions or jokes."""
        return " ".join(filter(is_statement, sentences(self.said)))

    def in_other_words(self, text: str) -> bool:
        """Say whether a judge may find that what is stated now says a text, with no word of it: in another language."""
        return self.judged and bool(self.stated) and not overlap(text, self.said)


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


def grounds_of(context: ToolContext) -> Grounds:
    """Return what the texts of a call may rest on, but for facts that it changes."""
    earlier = context.memory.fold.window.spoken()[-_LOOKED_AT:]
    newest = [*reversed(context.asking), *reversed(earlier)]
    own = [one for one in newest if one.kind == "message" and is_own(one)]
    own = [one for one in {one.id: one for one in own}.values() if one.payload.get("content")]
    foreign = _foreign(earlier, context.tape.name)
    others = {word for text, _ in foreign for word in words_of(text)}
    if others:
        known = [*map(words_in, own), *(one.text for one in context.memory.facts())]
        others -= {word for text in known for word in words_of(text)}
    return Grounds(
        context.tape.name, context.zone.timezone, context.asking, own, foreign, frozenset(others)
    )


def propose(op: Operation, text: str, grounds: Grounds, fact: int | None = None) -> Proposal:
    """Return a text as a proposal, with what it rests on, or why it does not hold or must wait."""
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


def _rest(text: str, grounds: Grounds) -> _Rest:
    """Return what a text rests on: one message, the facts that it is made from, or what is being answered."""
    for entry in grounds.own:
        said_then = said_on(entry, grounds.timezone)
        sentence = best_support(text, words_in(entry), when=said_then, names=(speaker(entry),))
        if sentence is not None:
            unverified = grounds.judged and not is_verbatim(text, sentence)
            return _Rest((cite(grounds.tape, entry, sentence),), unverified=unverified)
    asking = [one for one in grounds.asking if is_own(one)]
    said = grounds.said
    from_others = not grounds.others.isdisjoint(words_of(text))
    if grounds.changed and (not overlap(text, said) or from_others):
        # Nothing of it was said now: the facts are put in order; or it was said in another language.
        ordered = _on_facts(text, grounds)
        if ordered or from_others or not grounds.in_other_words(text):
            return ordered or _Rest(why=_unsaid(text, grounds))
    if not asking or from_others:
        return _Rest(why=_unsaid(text, grounds))
    # In other words, or in another language: names, numbers and dates must be there all the same.
    names = tuple(speaker(one) for one in asking)
    when, known = said_on(asking[-1], grounds.timezone), grounds.known
    told = [one for one in asking if overlap(text, words_in(one)) > 0] or asking
    cited = tuple(cite(grounds.tape, one) for one in told)
    why = unsupported(text, said, when=when, names=names)
    if why is not None and known:
        why = unsupported(text, said, when=when, names=names, known=known) and why
    if why is None or not grounds.judged:
        return _Rest(why=why) if why is not None else _Rest(cited, unverified=grounds.judged)
    earlier = _said_beside(text, f"{said} {known}", grounds)
    said = " ".join([said, known, *map(words_in, earlier)])
    why = missing(text, said, when, names=names, loose=True)
    cited = (*(cite(grounds.tape, one) for one in earlier), *cited)
    if why is None:
        return _Rest(cited, unverified=True)
    return (_on_facts(text, grounds) if grounds.changed else None) or _Rest(why=why)


def _unsaid(text: str, grounds: Grounds) -> str:
    """Return why nothing carries a text, naming the first words that nobody said who may."""
    said = {word for one in map(words_in, grounds.own) for word in words_of(one)}
    said.update(words_of(grounds.known))
    odd = [one for one in text.split() if (made := words_of(one)) and said.isdisjoint(made)]
    named = " ".join(one.strip(".,;:!?()\"'") for one in odd[:_NAMED])
    return f"no words of the user carry it: {named}" if named else "no words of the user carry it"


def _on_facts(text: str, grounds: Grounds) -> _Rest | None:
    """Return how facts that are merged, split or reworded carry a text; None where it says more than they do."""
    known = grounds.known
    parts = [one for one in PARTS.split(text) if one.strip()]
    held = overlap(text, known) == 1.0 and (
        _carries(known, text)
        or all(any(_carries(one.text, part) for one in grounds.changed) for part in parts)
    )
    said = () if held else _said_beside(text, known, grounds)
    loose = False
    if not held and grounds.judged:
        told = " ".join([known, *map(words_in, said)])
        when = said_on(said[-1], grounds.timezone) if said else None
        loose = overlap(text, told) >= _CARRIED and missing(text, told, when, loose=True) is None
    if not held and not loose:
        return None
    evidence: tuple[Evidence, ...] = tuple(cite(grounds.tape, one) for one in said)
    for one in grounds.changed:
        if overlap(text, one.text) > 0:
            evidence = joined(evidence, one.evidence)
    unverified = not held or any(one.unverified for one in grounds.changed)
    return _Rest(evidence, unverified=unverified, merged=not said) if evidence else None


def _said_beside(text: str, known: str, grounds: Grounds) -> tuple[TapeEntry, ...]:
    """Return the person's newest messages in view that say what a text adds to what is known, oldest first."""
    wanted = set(words_of(text)) - set(words_of(known))
    found: list[TapeEntry] = []
    for one in grounds.own:
        said = wanted.intersection(words_of(words_in(one)))
        if said and len(found) < _EARLIER:
            found.insert(0, one)
            wanted -= said
    return tuple(found)


def _carries(fact: str, text: str) -> bool:
    """Say whether what facts say carries a text by the rules, and both deny or neither does."""
    denies = [any(one.negated for one in clauses(said)) for said in (fact, text)]
    return denies[0] == denies[1] and unsupported(text, as_sentence(fact)) is None


def as_sentence(text: str) -> str:
    """Return a text that ends with one full stop."""
    return f"{text.rstrip('. ')}."


def lost(fact: Fact, heir: str) -> str:
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


def propose_end(fact: Fact, grounds: Grounds) -> Proposal:
    """Return the end of a fact: who is answered said that it has ended, or another text is to say what it said."""
    entry, _ = who_ended(fact, grounds)
    if entry is not None:
        return Proposal("retire", fact=fact.id, evidence=(cite(grounds.tape, entry),))
    return Proposal("retire", fact=fact.id, evidence=fact.evidence, merged=True)


def who_ended(fact: Fact, grounds: Grounds) -> tuple[TapeEntry | None, str]:
    """Return the message that is answered which says that a fact has ended, or None and why none does."""
    why = "the user said nothing of it"
    for entry in filter(is_own, grounds.asking):
        found = not_ended(fact.text, words_in(entry))
        if found is None:
            return entry, ""
        why = found
    return None, why
