"""Cite what people said as evidence for proposals: the rules that all writers of facts share. Pure.

Rule 1: a quote must occur in the cited entry; the whole sentences around it are the evidence.
Rule 2: words that are not a person's own keep their true origin, so the gate does not believe them.
Rule 3: in a group the text starts with the speaker's name, so that "I" is unambiguous.
Rule 4: in a group, instructions to the assistant need an owner; from others they wait for review.
Rule 5: words that end a fact speak about it, and do not confirm it. Words that only ask, suppose or
    report others end nothing, unless they ask to forget.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.language.clauses import parse_clauses
from bot.language.folding import fold_text
from bot.language.names import extract_names
from bot.memory.gate.claim_support import (
    is_statement,
    sentences_with_quote,
    unsupported_reason,
    word_overlap,
)
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.records.evidence import (
    cite,
    cite_third_party,
    entry_origin,
    may_learn_from,
    sender_text,
    third_party_texts,
)
from bot.memory.records.fact import LONGEST_QUOTE, Evidence, Fact
from bot.memory.records.fact_slot import same_slot
from bot.memory.records.proposals import Proposal
from bot.memory.records.transcript import is_owner
from bot.tape.entries import TapeEntry

_NAME_SLOT = "user: name"
_NAME_GIVEN = LazyPattern(r"(?:the user's|my) name is ", re.IGNORECASE)
_NAMING = LazyPattern(
    r"\b(?:name is|names are|named|called|goes by|known as|hei(?:ß|ss)t|genannt|name ist|nombre es|llam\w{1,6}|appelle|appel[ée]e?|nom est"
    r"|chiam\w{1,5}|nome è|cham\w{1,5}|nome é|зовут|звать|зва[лт]\w?)\s+",
    re.IGNORECASE,
)
_DENIED = LazyPattern(r"\b(?:not|never|nicht|kein\w*|no|pas|non|não|не)\W+$", re.IGNORECASE)
_LONGEST_NAME = 4
"""Maximum number of words of a user's name."""
_LOOKED_AT = 400
"""Characters behind words that name the user in which the name is."""

INSTRUCTION_REFUSED = Reason("order")


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """Sentences of an entry that a proposal cites, with their evidence."""

    entry: TapeEntry
    evidence: Evidence
    sentence: str


def cite_quote(tape: str, entry: TapeEntry, quote: str) -> CitedSentence | None:
    """Return the sentences of an entry around a quote; None if it may not be cited for them.

    Args:
        tape: Name of the tape that holds the entry.
        entry: The entry.
        quote: The quoted words.
    """
    said = sentences_with_quote(quote, sender_text(entry))
    if said is not None:
        evidence = cite(tape, entry, said)
        learned = may_learn_from(entry) or not evidence.is_own_words
        return CitedSentence(entry, evidence, said) if learned else None
    for text in third_party_texts(entry):
        if (said := sentences_with_quote(quote, text)) is not None:
            return CitedSentence(entry, cite_third_party(tape, entry, quote), said)
    return None


def resting_on(proposal: Proposal, cited: Iterable[CitedSentence]) -> Proposal:
    """Return a proposal with these sentences as its evidence."""
    return replace(proposal, evidence=tuple(cited_sentence.evidence for cited_sentence in cited))


def propose_remembered_line(
    tape: str, entry: TapeEntry, line: str, quote: str | None = None
) -> Proposal:
    """Return the proposal for a line that a person asks to remember.

    Args:
        tape: Name of the tape that holds the request.
        entry: The message or command.
        line: The text to remember.
        quote: The words of the entry to cite; by default all.
    """
    evidence = cite(tape, entry, quote)
    suspect = INSTRUCTION_REFUSED if needs_owner(line, [entry]) else ""
    return Proposal(
        "add", name_speaker(line, evidence), evidence=(evidence,), review_reason=suspect
    )


def name_speaker(text: str, evidence: Evidence) -> str:
    """Return a text that starts with its speaker's name if it comes from a group."""
    named = evidence.origin != "member" or text.startswith(evidence.who)
    return text if named else f"{evidence.who}: {text}"


def user_names(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Return what verified facts call the user: full and first names; nothing in a group.

    "Nora works in Leeds" is then about the user, though "root" wrote "I work in Leeds".

    Args:
        facts: The active facts of the session.
    """
    names: list[str] = []
    for fact in facts:
        if not fact.unverified and fact.origin == "person":
            names += names_given(fact.text, fact.slot)
    return tuple(dict.fromkeys(names))


def names_given(text: str, slot: str) -> tuple[str, ...]:
    """Return the full and first names that a fact gives the user; empty if it gives none."""
    if not (same_slot(slot, _NAME_SLOT) or _NAME_GIVEN.match(text)):
        return ()
    parts = extract_names(text)
    called = [_names_at(text, hit.end(), parts) for hit in _NAMING.finditer(text)]
    full = " ".join(parts)
    # Where nothing says which name it is, other words between names make them names of several people.
    if not any(called) and parts and full in text and not _DENIED.search(text[: text.index(full)]):
        called = [parts]
    return tuple(
        name
        for names in called
        if 0 < len(names) <= _LONGEST_NAME
        # A last name alone may be that of a relative.
        for name in dict.fromkeys((" ".join(names), names[0]))
    )


def _names_at(text: str, place: int, parts: Collection[str]) -> list[str]:
    """Return the names at a place of a text."""
    found = []
    # No further: a text without end may have as many places.
    for word in text[place : place + _LOOKED_AT].split(" "):
        bare = word.strip("\"'“”„«».,;:!?()")
        if bare not in parts:
            break
        found.append(bare)
        if not word.endswith(bare):
            break
    return found


def may_instruct(entry: TapeEntry) -> bool:
    """Say whether an entry's author may instruct the assistant: a person in private, or an owner."""
    return entry_origin(entry) == "person" or is_owner(entry)


def needs_owner(text: str, entries: Iterable[TapeEntry]) -> bool:
    """Say whether a text gives orders that the authors of these entries may not give."""
    return not all(map(may_instruct, entries)) and contains_instructions(text)


def is_quotable(sentence: str) -> bool:
    """Say whether a person's sentence may be kept as a quotation: a statement without orders."""
    return is_statement(sentence) and not contains_instructions(sentence)


def join_quotable(sentences: Sequence[str]) -> str:
    """Return a person's sentences as one quotation; empty if it is one word, or too long."""
    words = " ".join(dict.fromkeys(" ".join(sentence.split()) for sentence in sentences))
    return words if " " in words and len(words) <= LONGEST_QUOTE else ""


_FORGET = LazyPattern(
    r"\b(?:forget|delete|remove|erase|drop|vergiss|vergessen|losch\w*|entfern\w*|oublie\w*|efface\w*|supprime\w*"
    r"|olvid\w*|borra\w*|elimin\w*|dimentica\w*|cancella\w*|esquec\w*|apag\w*|забуд\w*|удали\w*)\b"
    r"|忘|删|刪|削除|消して|잊|지워"
)


def retraction_refusal(fact: str, said: str, when: date | None = None) -> str | None:
    """Return why a person's words do not end a fact; None if they do.

    Args:
        fact: Text of the fact.
        said: The person's words.
        when: Date of the words.
    """
    asks_to_forget = _FORGET.search(fold_text(said)) is not None
    told = [clause.text for clause in parse_clauses(said) if asks_to_forget or not clause.mood]
    if word_overlap(fact, ", ".join(told)) == 0:
        return Reason("words_say_nothing")
    if not asks_to_forget and unsupported_reason(fact, said, when=when) is None:
        return Reason("words_say_it_holds")
    return None
