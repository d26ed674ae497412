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
from bot.language.clauses import sentences
from bot.language.lexicon import MONTHS, NUMBERS, WEEKDAYS, content, fold, term, words
from bot.memory.facts.citing import is_own, origin_of, others_words, words_in
from bot.memory.facts.fact import TRUST
from bot.memory.gate.claims import MAX_SAID, best_support, missing, overlap
from bot.memory.gate.orders import gives_orders
from bot.memory.transcript import is_owner
from bot.tape.entries import TapeEntry

_THEIRS = 0.5
"""Share of a text's words in one sentence of others that makes it likely to be from there."""

_NEWEST = 20
"""Texts of others in view that are looked at."""

UNGROUNDED = TRUST["quoted"]
"""What is worth no more than a quotation."""


def may_tell(entry: TapeEntry) -> bool:
    """Say whether an entry holds words of somebody who may tell the assistant what to do."""
    return is_own(entry) and (origin_of(entry) == "person" or is_owner(entry))


def others_in(spoken: Iterable[TapeEntry]) -> list[str]:
    """Return the newest texts in view that no sender said: quoted, of files, or what tools gave."""
    found: list[str] = []
    for entry in spoken:
        found += others_words(entry)
        found += [words_in(entry)] if entry.kind == "tool_result" else []
    return found[-_NEWEST:]


def is_said(text: str, said: str, days: Sequence[date | None] = (None,)) -> bool:
    """Say whether each name, number and date of a text was said, on one of these days."""
    return any(missing(text, said, day) is None for day in days)


def is_told(text: str, said: Sequence[str], least: float) -> bool:
    """Say whether so much of a text's words was said; where it has none but small ones, it was."""
    # Numbers and days have a check of their own, which knows them in any form.
    bare = " ".join(one for one in words(fold(text)) if not _counts(one))
    return not content(bare) or overlap(bare, "\n".join(said)) >= least


def _counts(word: str) -> bool:
    known = term(word)
    days = known in NUMBERS or known in MONTHS or known in WEEKDAYS
    return days or any(sign.isdigit() for sign in word)


def is_theirs(text: str, said: str, others: Collection[str]) -> bool:
    """Say whether others' text says something that the evidence says less well, or not at all."""
    mine = overlap(text, said)
    return mine < 1 and any(
        max(_THEIRS, mine) <= (share := overlap(text, sentence)) and share > mine
        for one in others
        for sentence in sentences(one[:MAX_SAID])
    )


def refuse_orders(text: str, spoken: Sequence[TapeEntry], *, drafted: bool = False) -> None:
    """Refuse what tells the assistant what to do, and nobody in view said who may.

    Args:
        text: What is to be shown to the model from then on.
        spoken: What is in view.
        drafted: It may be written to others, so it is suspect only where others' text in view gives
            orders too.

    Raises:
        MemoryRefused: It is.
    """
    if not gives_orders(text) or (drafted and not any(map(gives_orders, others_in(spoken)))):
        return
    own = [words_in(entry) for entry in spoken if may_tell(entry)]
    orders = [one for one in sentences(text) if gives_orders(one)] or [text]
    if not all(any(_asked_for(one, said) for said in own) for one in orders):
        raise MemoryRefused("it tells the assistant what to do, and no words of the user say so")


def _asked_for(order: str, said: str) -> bool:
    """Say whether somebody's words carry an order, or have each of its words in one sentence."""
    whole = any(overlap(order, one) == 1 for one in sentences(said[:MAX_SAID]))
    return whole or best_support(order, said) is not None
