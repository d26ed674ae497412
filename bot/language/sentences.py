"""Split text into sentences, and recognise questions and code. Pure.

Rule 1: a full stop after an abbreviation or a list number, or before a month, ends no sentence.
Rule 2: in chat each line and each semicolon ends a sentence, too (``chat_sentences``); evidence may
    be wrapped text, in which they do not (``split_sentences``).
Rule 3: code is recognised, so that it is not read as a statement.
Rule 4: the work is bounded: at most sixty chat sentences of a text are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from bot.core.folding import fold_text
from bot.core.patterns import LazyPattern
from bot.language.lexicon import MONTHS

_MAX_SENTENCES = 60
_MAX_TEXT = 100_000
_MAX_LINE_OF_CODE = 2_000
_ENDING = LazyPattern(
    r"(?<![.!?…])[.!?…]++[\"')»”\]]*+(?=\s|$)|[。！？؟।]+[」』”]?|\n\s*\n\s*|\n(?=\s*(?:[-*•>]|\d+[.)])\s)"
)
_ABBREVIATION = LazyPattern(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|mt|jr|sr|sra|vs|esp|incl|dept|e\.g|i\.e|z\.b|d\.h|bzw)|(?<!['’])\b(?-i:[A-HJ-Z]))\.$",
    re.IGNORECASE,
)
_BEFORE_NUMBER = LazyPattern(r"\b(?:no|nr|apt)\.$", re.IGNORECASE)
_BEFORE_SMALL_LETTER = LazyPattern(r"\b(?:ca|approx|etc|max|min|a\.m|p\.m)\.$", re.IGNORECASE)
_ORDINAL = LazyPattern(r"\b\d{1,2}\.$")
_LONGEST_ABBREVIATION = 8
_CHAT_ENDING = LazyPattern(
    r"(?<![.!?…])[.!?…]++[\"')»”\]]*+(?:\s*\n|(?=\s|$))|[。！？؟।]+[」』”]?|\n+|(?<=;)\s+"
)
_FENCED = LazyPattern(r"```.*?(?:```|$)", re.DOTALL)
_CODE = LazyPattern(
    r"__\w+__|[=!]==?\s|=>|&&|\|\||\+=|</?\w+>|^\s*[{}]"
    r"|\w\((?:\)|[^()]{0,200}[\"'=,][^()]{0,200}\))"
    r"|^\s*(?:def|class|elif|function|public|private|static|const|let|var|import|return|#include)\b[^.]*[(:;={]"
    r"|^\s*(?:if|for|while|else|try|except|with)\b[^.,]*[:{]$"
)
_ASSIGNS = LazyPattern(r"[\w)\"']\s*=")
_QUESTION_END = LazyPattern(r"[?？؟]\s*[)\"'”]*$")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as written, in order."""
    return list(_split(text, _ENDING))


def chat_sentences(text: str) -> list[str]:
    """Return the first sixty sentences of a text in which a line or a semicolon also ends one."""
    return list(islice(_split(text[:_MAX_TEXT], _CHAT_ENDING), _MAX_SENTENCES))


def _split(text: str, endings: LazyPattern) -> Iterator[str]:
    start = 0
    for ending in endings.finditer(text):
        if not _ends_abbreviation(text, start, ending):
            if sentence := text[start : ending.end()].strip():
                yield sentence
            start = ending.end()
    if rest := text[start:].strip():
        yield rest


def _ends_abbreviation(text: str, start: int, ending: re.Match[str]) -> bool:
    """Return whether a full stop belongs to an abbreviation or an ordinal number."""
    if ending.group().rstrip() != ".":
        return False
    before = text[max(start, ending.start() - _LONGEST_ABBREVIATION) : ending.start() + 1]
    following = text[ending.end() : ending.end() + 30].lstrip()
    if not following:
        return False
    if _BEFORE_NUMBER.search(before):
        return following[0].isdigit()
    if _BEFORE_SMALL_LETTER.search(before):
        return following[0].isdigit() or following[0].islower()
    if _ABBREVIATION.search(before):
        return True
    if not _ORDINAL.search(before):
        return False
    first_word = re.match(r"[^\W\d_]+", following)
    is_list_number = len(before) <= _LONGEST_ABBREVIATION and before.strip(". \n").isdecimal()
    return is_list_number or bool(first_word and fold_text(first_word.group()) in MONTHS)


def is_code(text: str) -> bool:
    """Return whether a sentence looks like a line of code."""
    if len(text) > _MAX_LINE_OF_CODE:
        return False
    if _CODE.search(text):
        return True
    line = text.removesuffix("\n")
    return line.endswith(";") and bool(_ASSIGNS.search(line[:-1].rpartition(";")[2]))


def is_question(text: str) -> bool:
    """Return whether a sentence ends in a question mark of any script."""
    return bool(_QUESTION_END.search(text))
