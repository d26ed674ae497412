"""Split a text into words in which times are read: folded, with digits, and spelled as the phrases know them. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from bot.core.patterns import LazyPattern
from bot.language.folding import fold_text
from bot.language.lexicon import NUMBERS
from bot.language.time_spelling import respell

_TOKEN = LazyPattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+(?:[:.,]\d+)*|\S")
_SPELLED = {
    word: str(NUMBERS.get(word, 1))
    for word in (
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
        " nineteen twenty thirty forty fifty sixty ninety eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf"
        " dreizehn vierzehn funfzehn sechzehn siebzehn achtzehn neunzehn zwanzig funfundzwanzig dreissig funfunddreissig"
        " vierzig funfundvierzig funfzig sechzig neunzig"
    ).split()
}
_TENS = frozenset(("20", "30", "40", "50"))


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text: folded, with number words as digits, and where they stand in it.

    Attributes:
        text: The text.
        folded: The words with one space between them.
        spans: Where each word begins and ends in the text.
        starts: Where each word begins in ``folded``; one more for the end.
    """

    text: str
    folded: str
    spans: list[tuple[int, int]]
    starts: list[int]

    def word(self, number: int) -> str:
        """Return a word, folded; empty if there is none."""
        if not 0 <= number < len(self.spans):
            return ""
        return self.folded[self.starts[number] : self.starts[number + 1] - 1]

    def word_at(self, place: int) -> int:
        """Return the number of the first word that begins at or after a place in ``folded``."""
        return min(bisect_left(self.starts, place), len(self.spans))

    def text_between(self, first: int, end: int) -> str:
        """Return the text from a word to before another one."""
        if first >= end:
            return ""
        return self.text[self.spans[first][0] : self.spans[end - 1][1]]

    def text_from(self, first: int) -> str:
        """Return the text from a word to the end."""
        return self.text[self.spans[first][0] :] if first < len(self.spans) else ""


def read_words(text: str) -> Words:
    """Return the words of a text."""
    spans: list[tuple[int, int]] = []
    folded: list[str] = []
    for token in _TOKEN.finditer(text):
        raw = token[0]
        word = raw.lower() if raw.isascii() else fold_text(raw).replace(" ", "")
        word = _SPELLED.get(word, word) or "?"
        begins = token.start()
        if len(word) == 1 and word.isdecimal() and word != "0" and not raw.isdecimal() and spans:
            dash = len(spans) > 1 and folded[-1] == "-"
            tens = len(spans) - (2 if dash else 1)
            if folded[tens] in _TENS and not text[spans[tens][0]].isdecimal():
                word, begins = str(int(folded[tens]) + int(word)), spans[tens][0]
                del spans[tens:], folded[tens:]
        spans.append((begins, token.end()))
        folded.append(word)
    respell(folded, [text[begin:end] for begin, end in spans])
    starts = [0]
    for word in folded:
        starts.append(starts[-1] + len(word) + 1)
    return Words(text, " ".join(folded), spans, starts)
