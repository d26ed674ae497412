"""Check whether evidence supports a write beyond the working set. Pure.

Rule 1: its names, numbers and dates must be in the evidence.
Rule 2: most words of verbatim parts (a shared value, a policy's action) must be in the evidence.
Rule 3: a conclusion may use its own words, but must share some with the evidence.
Rule 4: what a quotation or tool result says more fully than the evidence is attributed to that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date

from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.language.claim_terms import content_terms, term
from bot.language.folding import fold_text, words
from bot.language.lexicon import MONTHS, NUMBERS, WEEKDAYS
from bot.language.sentences import split_sentences
from bot.memory.gate.cited_sentences import may_instruct
from bot.memory.gate.claim_support import (
    MAX_SOURCE_TEXT,
    best_supporting_sentences,
    missing_detail,
    word_overlap,
)
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.records.evidence import (
    may_learn_from,
    sender_text,
    third_party_texts,
)
from bot.memory.records.fact import ORIGIN_TRUST
from bot.tape.entries import TapeEntry

_THEIRS = 0.5
"""Share of a text's words in one third-party sentence that makes it the likely source."""

_NEWEST = 20
"""Number of third-party texts in view that are checked."""

UNGROUNDED_QUALITY = ORIGIN_TRUST["quoted"]
"""Source quality of ungrounded text: that of a quotation."""


def third_party_texts_in_view(spoken: Iterable[TapeEntry]) -> list[str]:
    """Return the newest third-party texts in view: quotations, files and tool results."""
    found: list[str] = []
    for entry in spoken:
        found += third_party_texts(entry)
        found += [sender_text(entry)] if entry.kind == "tool_result" else []
    return found[-_NEWEST:]


def mentions_details(text: str, said: str, days: Sequence[date | None] = (None,)) -> bool:
    """Say whether all names, numbers and dates of a text were said on one of these days."""
    return any(missing_detail(text, said, day) is None for day in days)


def covers_words(text: str, said: Sequence[str], least: float) -> bool:
    """Say whether a share of a text's content words was said; true if it has none."""
    # Numbers and dates are checked separately, in any notation.
    bare = " ".join(word for word in words(fold_text(text)) if not _counts(word))
    return not content_terms(bare) or word_overlap(bare, "\n".join(said)) >= least


def _counts(word: str) -> bool:
    known = term(word)
    days = known in NUMBERS or known in MONTHS or known in WEEKDAYS
    return days or any(sign.isdigit() for sign in word)


def is_from_third_party(text: str, said: str, others: Collection[str]) -> bool:
    """Say whether a third-party sentence supports a text better than the evidence does."""
    mine = word_overlap(text, said)
    return mine < 1 and any(
        max(_THEIRS, mine) <= (share := word_overlap(text, sentence)) and share > mine
        for one in others
        for sentence in split_sentences(one[:MAX_SOURCE_TEXT])
    )


def check_instructions(text: str, spoken: Sequence[TapeEntry], *, drafted: bool = False) -> None:
    """Refuse text with instructions to the assistant that no authorised person in view gave.

    Args:
        text: Text that the model will see from then on.
        spoken: Entries in view.
        drafted: The text is a draft, perhaps for others, so it is suspect only if third-party text
            in view gives orders, too.

    Raises:
        MemoryRefused: The text contains such instructions.
    """
    if not contains_instructions(text) or (
        drafted and not any(map(contains_instructions, third_party_texts_in_view(spoken)))
    ):
        return
    own = [sender_text(entry) for entry in spoken if may_learn_from(entry) and may_instruct(entry)]
    orders = [
        sentence for sentence in split_sentences(text) if contains_instructions(sentence)
    ] or [text]
    if not all(any(_asked_for(order, said) for said in own) for order in orders):
        raise MemoryRefused(_("it tells the assistant what to do, and no words of the user say so"))


def _asked_for(order: str, said: str) -> bool:
    """Say whether words support an order, or contain all its words in one sentence."""
    whole = any(
        word_overlap(order, sentence) == 1 for sentence in split_sentences(said[:MAX_SOURCE_TEXT])
    )
    return whole or best_supporting_sentences(order, said) is not None
