"""How far words carry what is to be kept beyond a working set. Pure.

Rule 1: the names, numbers and dates of it were said.
Rule 2: what is to be kept as it was said (a shared value, what a policy does) was said, for the most part.
Rule 3: a conclusion may use words of its own, but speaks of something that was spoken of.
Rule 4: what a quotation or a tool's result says, and the evidence says less well, is theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date

from bot.core.errors import MemoryRefused
from bot.language.clauses import split_sentences
from bot.language.lexicon import MONTHS, NUMBERS, WEEKDAYS, content_terms, fold_text, term, words
from bot.memory.facts.evidence import (
    entry_origin,
    may_learn_from,
    sender_text,
    third_party_texts,
)
from bot.memory.facts.fact import ORIGIN_TRUST
from bot.memory.gate.claim_support import (
    MAX_SOURCE_TEXT,
    best_supporting_sentences,
    missing_detail,
    word_overlap,
)
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.transcript import is_owner
from bot.tape.entries import TapeEntry

_THEIRS = 0.5
"""Share of a text's words in one sentence of others that makes it likely to be from there."""

_NEWEST = 20
"""Texts of others in view that are looked at."""

UNGROUNDED_QUALITY = ORIGIN_TRUST["quoted"]
"""What is worth no more than a quotation."""


def may_instruct(entry: TapeEntry) -> bool:
    """Say whether an entry holds words of somebody who may tell the assistant what to do."""
    return may_learn_from(entry) and (entry_origin(entry) == "person" or is_owner(entry))


def third_party_texts_in_view(spoken: Iterable[TapeEntry]) -> list[str]:
    """Return the newest texts in view that no sender said: quoted, of files, or what tools gave."""
    found: list[str] = []
    for entry in spoken:
        found += third_party_texts(entry)
        found += [sender_text(entry)] if entry.kind == "tool_result" else []
    return found[-_NEWEST:]


def mentions_details(text: str, said: str, days: Sequence[date | None] = (None,)) -> bool:
    """Say whether each name, number and date of a text was said, on one of these days."""
    return any(missing_detail(text, said, day) is None for day in days)


def covers_words(text: str, said: Sequence[str], least: float) -> bool:
    """Say whether so much of a text's words was said; where it has none but small ones, it was."""
    # Numbers and days have a check of their own, which knows them in any form.
    bare = " ".join(one for one in words(fold_text(text)) if not _counts(one))
    return not content_terms(bare) or word_overlap(bare, "\n".join(said)) >= least


def _counts(word: str) -> bool:
    known = term(word)
    days = known in NUMBERS or known in MONTHS or known in WEEKDAYS
    return days or any(sign.isdigit() for sign in word)


def is_from_third_party(text: str, said: str, others: Collection[str]) -> bool:
    """Say whether others' text says something that the evidence says less well, or not at all."""
    mine = word_overlap(text, said)
    return mine < 1 and any(
        max(_THEIRS, mine) <= (share := word_overlap(text, sentence)) and share > mine
        for one in others
        for sentence in split_sentences(one[:MAX_SOURCE_TEXT])
    )


def check_instructions(text: str, spoken: Sequence[TapeEntry], *, drafted: bool = False) -> None:
    """Refuse what tells the assistant what to do, and nobody in view said who may.

    Args:
        text: What is to be shown to the model from then on.
        spoken: What is in view.
        drafted: It may be written to others, so it is suspect only where others' text in view gives
            orders too.

    Raises:
        MemoryRefused: It is.
    """
    if not contains_instructions(text) or (
        drafted and not any(map(contains_instructions, third_party_texts_in_view(spoken)))
    ):
        return
    own = [sender_text(entry) for entry in spoken if may_instruct(entry)]
    orders = [one for one in split_sentences(text) if contains_instructions(one)] or [text]
    if not all(any(_asked_for(one, said) for said in own) for one in orders):
        raise MemoryRefused("it tells the assistant what to do, and no words of the user say so")


def _asked_for(order: str, said: str) -> bool:
    """Say whether somebody's words carry an order, or have each of its words in one sentence."""
    whole = any(word_overlap(order, one) == 1 for one in split_sentences(said[:MAX_SOURCE_TEXT]))
    return whole or best_supporting_sentences(order, said) is not None
