"""Check whether a person's words may end a fact. Pure.

Rule 1: they speak about the fact, and do not confirm it.
Rule 2: words that only ask, suppose or report others end nothing, unless they ask to forget.
"""

from __future__ import annotations

import re
from datetime import date

from bot.language.clauses import parse_clauses
from bot.language.lexicon import fold_text
from bot.memory.gate.claim_support import unsupported_reason, word_overlap

_FORGET = re.compile(
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
    told = [one.text for one in parse_clauses(said) if asks_to_forget or not one.mood]
    if word_overlap(fact, ", ".join(told)) == 0:
        return "the words say nothing of it"
    if not asks_to_forget and unsupported_reason(fact, said, when=when) is None:
        return "the words say that it holds"
    return None
