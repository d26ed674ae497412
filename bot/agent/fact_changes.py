"""Turn the changes of facts that a model asks for into proposals that rest on people's own words. Pure.

Rule 1: each change quotes a person's own messages; what code finds there verbatim is the evidence.
Rule 2: forwarded, quoted, pasted and fetched text, and what a program or the assistant said, is no evidence.
Rule 3: a sentence of a model is proposed as a quotation; a judge or a person says whether it holds.
Rule 4: orders to the assistant, by somebody who may give none, wait for a person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.core.reasons import Reason
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.gate.write_support import may_instruct
from bot.memory.records.evidence import cite, may_learn_from, sender_text, third_party_texts
from bot.memory.records.fact import (
    LONGEST_CONTEXT,
    LONGEST_QUOTE,
    LONGEST_SUBJECT,
    MAX_FACT_TEXT,
    Evidence,
    Fact,
    merge_evidence,
    speaker_name,
)
from bot.memory.records.proposals import Proposal
from bot.memory.records.quote_spans import (
    LONGEST_SENTENCE,
    find_quote,
    nearest_passage,
    sentence_around,
)
from bot.memory.records.save_report import plain_text
from bot.memory.records.transcript import answer_text
from bot.tape.entries import TapeEntry

_VERY_FEW, _FEW_WORDS, _FEW_SIGNS = 3, 6, 48
"""A message of so few words is kept with what it answers: always, or if that asks something."""
_MOST_QUOTES = 12
_SHOWN = 80
_ASKS = ("?", "？", "؟")


class FactChange(BaseModel):
    """A change of facts, as a model asks for it."""

    model_config = ConfigDict(extra="ignore")

    op: Literal["add", "change", "end"]
    facts: list[int] = Field(
        default_factory=list, max_length=24, description="numbers, of change and end"
    )
    text: str = Field(
        "",
        max_length=MAX_FACT_TEXT,
        description="one short sentence; of change, all that still holds",
    )
    about: str = Field("", max_length=LONGEST_SUBJECT, description="in a word or two")
    quotes: list[str] = Field(
        default_factory=list,
        max_length=_MOST_QUOTES,
        description="the user's words, exactly; none: all of their last message",
    )
    standing: bool = Field(
        False, description="a rule of life or health, or a wish how to be answered"
    )


@dataclass(frozen=True, slots=True)
class OwnWords:
    """The messages that a model may quote.

    Attributes:
        tape: Name of their tape.
        entries: The entries in view, oldest first.
        answered: The messages being answered, one of which is quoted if the model quotes none.
    """

    tape: str
    entries: Sequence[TapeEntry]
    answered: Sequence[TapeEntry] = ()

    def find(self, quote: str) -> Evidence | None:
        """Return the sentence with a quote in the newest message of a person that has it."""
        for entry in reversed(self.entries):
            if not _is_own(entry):
                continue
            said = sender_text(entry)
            if (place := find_quote(quote, said)) is not None:
                words = sentence_around(*place, said)
                if len(words) <= LONGEST_QUOTE:
                    return self._cited(entry, words)
        return None

    def whole_message(self) -> Evidence | None:
        """Return the newest message being answered, if it is short and no question."""
        for entry in reversed(self.answered):
            said = sender_text(entry).strip() if _is_own(entry) else ""
            if said:
                fits = len(said) <= LONGEST_SENTENCE and not said.endswith(_ASKS)
                return self._cited(entry, said) if fits else None
        return None

    def why_missing(self, quote: str) -> Reason:
        """Return why a quote is no evidence, with the nearest words that would be."""
        shown = quote.strip()[:_SHOWN]
        own = [sender_text(entry) for entry in self.entries if _is_own(entry)]
        others = [text for entry in self.entries for text in third_party_texts(entry)]
        if any(find_quote(quote, text) for text in others):
            return Reason("quote_not_own", quote=shown)
        if any(find_quote(quote, text) for text in own):
            return Reason("quote_too_long", limit=LONGEST_QUOTE)
        nearest = nearest_passage(quote, own)
        if nearest:
            return Reason("quote_not_found_near", quote=shown, nearest=nearest)
        return Reason("quote_not_found", quote=shown)

    def may_order(self, evidence: Evidence) -> bool:
        """Return whether who said this may give the assistant orders: in a group only an owner."""
        return all(map(may_instruct, (one for one in self.entries if one.id == evidence.entry)))

    def _cited(self, entry: TapeEntry, words: str) -> Evidence:
        evidence = replace(cite(self.tape, entry), quote=words)
        said = sender_text(entry)
        if len(said.split()) > _FEW_WORDS or len(said) > _FEW_SIGNS:
            return evidence
        context, where = self.before(entry)
        if len(said.split()) > _VERY_FEW and where != entry.id and not _asks(context):
            return evidence
        return replace(evidence, context=context, context_entry=where)

    def before(self, entry: TapeEntry) -> tuple[str, int]:
        """Return what a short message answers, with its entry: what it quotes, or what was said before."""
        quoted = " ".join(" ".join(third_party_texts(entry)).split())
        if quoted:
            return quoted[:LONGEST_CONTEXT], entry.id
        earlier = [
            other
            for other in self.entries
            if other.id < entry.id and other.kind == "message" and answer_text(other).strip()
        ]
        if not earlier:
            return "", 0
        said = " ".join(answer_text(earlier[-1]).split())
        if len(said) > LONGEST_CONTEXT:
            # A question stands at the end.
            said = "…" + said[1 - LONGEST_CONTEXT :].partition(" ")[2]
        return said, earlier[-1].id


def _asks(text: str) -> bool:
    return text.rstrip(' *_"”)').endswith(_ASKS)


def _is_own(entry: TapeEntry) -> bool:
    return entry.kind == "message" and may_learn_from(entry)


def propose_changes(
    changes: Sequence[FactChange], words: OwnWords, facts: Mapping[int, Fact]
) -> list[Proposal]:
    """Return a model's changes as proposals, each with its evidence or an objection.

    Args:
        changes: The changes, in order.
        words: What they may quote.
        facts: The facts that they may name, by number.
    """
    made = [_proposed(change, words, facts) for change in changes]
    lacking = {n for one in made if one.objection and one.op == "supersede" for n in one.facts}
    # If a part of what replaces a fact is missing, the other parts stand beside it.
    return [
        replace(one, op="add", fact=None, others=())
        if one.op == "supersede" and not one.objection and lacking.intersection(one.facts)
        else one
        for one in made
    ]


def _proposed(change: FactChange, words: OwnWords, facts: Mapping[int, Fact]) -> Proposal:
    text = plain_text(change.text)
    op = {"add": "add", "change": "supersede", "end": "retire"}[change.op]
    named = tuple(dict.fromkeys(change.facts)) if change.op != "add" else ()
    proposal = Proposal(
        op,  # type: ignore[arg-type]
        "" if op == "retire" else text,
        named[0] if named else None,
        change.about,
        quoted=True,
        others=named[1:],
        standing=change.standing,
    )
    if op != "add" and not named:
        return replace(proposal, objection=Reason("fact_unnamed"))
    if missing := [number for number in named if number not in facts]:
        return replace(proposal, objection=Reason("fact_missing", fact=missing[0]))
    if op != "retire" and not text:
        return replace(proposal, objection=Reason("no_text"))
    evidence, why = _evidence(change.quotes, words, [facts[number] for number in named])
    if why:
        return replace(proposal, objection=why)
    ordered = gives_orders([text, *(one.quote for one in evidence)], evidence, words)
    return replace(
        proposal,
        text=name_speaker(proposal.text, evidence[0]),
        evidence=merge_evidence((), evidence),
        review_reason=Reason("order") if ordered else "",
    )


def gives_orders(texts: Sequence[str], evidence: Sequence[Evidence], words: OwnWords) -> bool:
    """Return whether texts tell the assistant what to do, and somebody said so who may not."""
    return not all(map(words.may_order, evidence)) and any(map(contains_instructions, texts))


def _evidence(
    quotes: Sequence[str], words: OwnWords, named: Sequence[Fact]
) -> tuple[list[Evidence], str]:
    """Return the evidence that quotes name, or the reason why one of them names none."""
    quotes = [quote for quote in quotes if quote.strip()]
    if not quotes:
        whole = words.whole_message()
        return ([whole], "") if whole is not None else ([], Reason("cites_nothing"))
    found: list[Evidence] = []
    for quote in quotes:
        # What facts rest on was a person's own words already.
        known = (
            piece
            for fact in named
            for piece in fact.evidence
            if piece.is_own_words and find_quote(quote, piece.quote)
        )
        evidence = words.find(quote) or next(known, None)
        if evidence is None:
            return [], words.why_missing(quote)
        found.append(evidence)
    return found, ""


def name_speaker(text: str, evidence: Evidence) -> str:
    """Return a text that starts with its speaker's name if it comes from a group."""
    named = evidence.origin != "member" or not text or text.startswith(evidence.who)
    return text if named else f"{speaker_name(evidence.who)}: {text}"
