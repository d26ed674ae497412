"""Literal quotations of a message.

Rule 1: a quotation stands in the message exactly as it is given, on one line of it.
Rule 2: a long sentence is quoted in the part that says most of what was learned from it.
"""

from __future__ import annotations

import re

from bot.language.terms import terms

LONGEST = 300
_WORD = re.compile(r"\S+")


def quotations(text: str, wanted: str, learned: str) -> tuple[str, ...]:
    """Return where a text says something: one quotation for each line that it runs over.

    Args:
        text: The message's own words.
        wanted: Words of it, in which white space may differ.
        learned: What was learned from them.
    """
    found = re.search(r"\s+".join(map(re.escape, wanted.split())), text) if wanted.split() else None
    if found is None:
        return ()
    pieces = (_part(piece.strip(), learned) for piece in found.group().split("\n"))
    return tuple(piece for piece in pieces if any(map(str.isalnum, piece)))


def _part(sentence: str, learned: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    sought = set(terms(learned))
    spans = [(found.start(), found.end()) for found in _WORD.finditer(sentence)]
    # Texts are bounded, but a text without spaces is one word.
    parts = [_from(sentence, spans, at) for at in range(min(len(spans), 400))]
    return max(parts, key=lambda part: (len(sought & set(terms(part))), len(part)))


def _from(sentence: str, spans: list[tuple[int, int]], at: int) -> str:
    start = spans[at][0]
    # A word has at least a character and a space.
    ends = [end for _, end in spans[at : at + LONGEST] if end <= start + LONGEST]
    return sentence[start : ends[-1] if ends else start + LONGEST]
