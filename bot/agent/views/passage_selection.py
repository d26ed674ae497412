"""Choose which recalled passages a prompt shows, and how much of each. Pure.

Rule 1: a passage is shown for what it adds: a sentence that has a word which the message does not have,
    or all words that a question of the message asks for; and whose words are not all in one sentence
    that is shown already: in view, in memory, or in a better passage.
Rule 2: a sentence that ends in a question mark adds nothing.
Rule 3: a passage far below the best is not shown; the third must come closer to it. ``python -m evals
    recall`` was used to choose the limits.
Rule 4: of a long passage the sentences around the best match are shown.
Rule 5: words are the search's own terms; nothing is known of any language.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from bot.core.patterns import LazyPattern
from bot.memory.session.recall import RecalledPassage
from bot.tape.index.terms import parse_query, tokenize, with_pairs

MOST_PASSAGES = 3
MIN_SCORE = 0.13
"""Weighted share of the question's words that a passage must contain."""
_OF_BEST = (0.5, 0.5, 0.55)
"""Share of the best score that the first, second and third passage need."""

_LONGEST_EXCERPT = 240
"""Characters of a passage above which only a part of it is shown."""

_LONGEST_READ = 20_000
_MOST_SENTENCES = 60
_COMPARED = 4
"""Characters of a word that a text must have before its statements are compared."""
_WORD = LazyPattern(r"\w+")
_SENTENCE = LazyPattern(
    r"(?:[^.!?…。！？؟।;\n]|[.!?…;](?![\s\"')»”\]]|$))++[.!?…。！？؟।;\"')»”\]」』]*+"
)
_QUESTION_END = LazyPattern(r"[?？؟][\s\"')»”\]」』]*$")


def select_passages(
    recalled_passages: Sequence[RecalledPassage], asked: str, shown: Iterable[str] = ()
) -> list[RecalledPassage]:
    """Return the passages that a prompt shows unasked, best first, long ones cut.

    Args:
        recalled_passages: Passages that are not in view, best first.
        asked: The message that they were searched for.
        shown: Other texts of the prompt.
    """
    best = max((passage.score for passage in recalled_passages), default=0.0)
    has = _terms(asked)
    questions = [one for one in _sentences(asked) if _is_question(one)]
    wanted = [frozenset(parse_query(one).terms) for one in questions]
    told = [text.lower() for text in shown] if recalled_passages else []
    chosen: list[RecalledPassage] = []
    for passage in recalled_passages:
        if len(chosen) == MOST_PASSAGES:
            break
        if passage.score < max(MIN_SCORE, _OF_BEST[len(chosen)] * best):
            continue
        sentences = _sentences(passage.text)
        new = [
            at
            for at, one in enumerate(sentences)
            if not _is_question(one) and _adds(_terms(one), has, wanted) and not _is_in(one, told)
        ]
        if new:
            excerpt = _excerpt(passage.text, sentences, new, has)
            chosen.append(replace(passage, text=excerpt))
            told.append(excerpt.lower())
    return chosen


def _adds(words: frozenset[str], has: frozenset[str], wanted: Sequence[frozenset[str]]) -> bool:
    """Return whether words add to those of a message, or are all that one of its questions wants."""
    return not words <= has or any(one and one <= words for one in wanted)


def _is_in(sentence: str, texts: Iterable[str]) -> bool:
    """Return whether one statement of texts in lower case has all words of a sentence."""
    words = _terms(sentence)
    longest = max(_WORD.findall(sentence.lower()), key=len, default="")[:_COMPARED]
    # Only statements with the beginning of its longest word are read: a prompt has thousands.
    return bool(longest) and any(
        longest in one and not _is_question(one) and words <= _terms(one)
        for text in texts
        if longest in text
        for one in _sentences(text)
    )


def _sentences(text: str) -> list[str]:
    """Return the first sentences of a text, cut at punctuation and at the ends of lines."""
    found = (hit.group().strip() for hit in _SENTENCE.finditer(text[:_LONGEST_READ]))
    return list(islice(filter(None, found), _MOST_SENTENCES))


def _is_question(sentence: str) -> bool:
    return _QUESTION_END.search(sentence) is not None


def _terms(text: str) -> frozenset[str]:
    return frozenset(with_pairs(tokenize(text)))


def _excerpt(
    text: str, sentences: Sequence[str], new: Sequence[int], wanted: frozenset[str]
) -> str:
    """Return a passage, or of a long one the sentences around the new one that matches best."""
    if len(text) <= _LONGEST_EXCERPT:
        return text
    first = max(new, key=lambda at: len(wanted & _terms(sentences[at])))
    last, room = first, _LONGEST_EXCERPT - len(sentences[first])
    while last + 1 < len(sentences) and len(sentences[last + 1]) < room:
        last += 1
        room -= len(sentences[last]) + 1
    while first > 0 and len(sentences[first - 1]) < room:
        first -= 1
        room -= len(sentences[first]) + 1
    excerpt = " ".join(sentences[first : last + 1])
    return f"{'… ' * (first > 0)}{excerpt}{' …' * (last + 1 < len(sentences))}"
