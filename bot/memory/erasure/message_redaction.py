"""Redact the sentences of a message that repeat an erased fact, and keep the rest as evidence. Pure.

Rule 1: a sentence about an erased fact is replaced whole; of one that is also about a kept fact only
    clauses; of a clause about both only single words.
Rule 2: nothing is redacted on a guess: if no word separates the two, the text stays as it is.
Rule 3: redaction is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.core.patterns import LazyPattern
from bot.language.forget_requests import asks_to_forget
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.tombstones import ERASED_TEXT

_AND = r"(?:and|but|or|while|und|aber|oder|et|mais|ou|y|pero|e|ma|mas|oraz|ale|и|но)\s+"
# The lookbehind lets a run of white space match only at its start, which keeps the search linear.
_SENTENCE_END = LazyPattern(r"([.!?…\n]+\s*|[。！？])")
_BETWEEN = LazyPattern(rf"([.!?…;:\n]+\s*|,\s+(?:{_AND})?|[。！？；，、]|(?<!\s)\s+{_AND})")
_WORD = LazyPattern(r"\w+")


@dataclass(frozen=True, slots=True)
class MessageRedactor:
    """Replace the words of a message that are about erased facts.

    Attributes:
        erased_texts: Texts of the erased facts.
        kept_texts: Texts of the facts that stay and cite the same messages.
        requested_words: Words and phrases of the query.
    """

    erased_texts: tuple[str, ...]
    kept_texts: tuple[str, ...] = ()
    requested_words: TextMatcher = field(default_factory=TextMatcher)
    _going: TextMatcher = field(init=False, repr=False)
    _staying: TextMatcher = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Build the matchers of words that occur on one side only."""
        object.__setattr__(
            self, "_going", _told(self.erased_texts, self.kept_texts, self.requested_words)
        )
        asked = self.requested_words.all_texts()
        object.__setattr__(
            self, "_staying", _told(self.kept_texts, (*self.erased_texts, *asked), TextMatcher())
        )

    def redact(self, text: str, *, asking: bool = False) -> str | None:
        """Return the redacted text; None if no word remains.

        Args:
            text: A message.
            asking: It asks for the erasure, so its sentences that ask to forget go, too.
        """
        pieces = self._pieces(text, asking=asking)
        told = "".join(pieces)
        return told if any(map(str.isalnum, told.replace(ERASED_TEXT, ""))) else None

    def mentions(self, text: str) -> bool:
        """Return whether a text has words that only erased facts have."""
        return self._going.matches(text)

    def redact_quote(self, text: str, left: str) -> str:
        """Return the longest run of a quotation that is left of its message.

        Args:
            text: The quotation.
            left: The redacted message.
        """
        runs: list[list[str]] = [[]]
        for place, piece in enumerate(self._pieces(text)):
            if ERASED_TEXT in piece or piece.strip() not in left:
                runs.append([])
            # A separator belongs to a run only if the run continues behind it.
            elif place % 2 == 0 or runs[-1]:
                runs[-1].append(piece)
        told = ["".join(run[: len(run) - (len(run) % 2 == 0)]).strip() for run in runs]
        return max(told, key=len)

    def _pieces(self, text: str, *, asking: bool = False) -> list[str]:
        """Return clauses and separators in turn; one mark replaces consecutive redacted clauses."""
        found: list[str] = []
        for place, piece in enumerate(_SENTENCE_END.split(text)):
            found += [piece] if place % 2 else self._sentence(piece, asking=asking)
        pieces = found[:1]
        for between, clause in zip(found[1::2], found[2::2], strict=True):
            if not (clause == ERASED_TEXT and pieces[-1] == ERASED_TEXT):
                pieces += [between, clause]
        return pieces

    def _sentence(self, sentence: str, *, asking: bool) -> list[str]:
        """Return the clauses and separators of a sentence, or one mark if it goes whole."""
        if asking and asks_to_forget(sentence):
            return [ERASED_TEXT]
        if not self._going.matches(sentence):
            return [sentence]
        if not self._staying.matches(sentence):
            return [ERASED_TEXT]
        return [
            self._clause(piece) if place % 2 == 0 else piece
            for place, piece in enumerate(_BETWEEN.split(sentence))
        ]

    def _clause(self, clause: str) -> str:
        if not self._going.matches(clause):
            return clause
        if self._staying.matches(clause):
            told = _WORD.sub(
                lambda hit: ERASED_TEXT if self._going.matches(hit[0]) else hit[0], clause
            )
            if not self._going.matches(told.replace(ERASED_TEXT, " ")):
                return told
        return ERASED_TEXT


def _told(texts: Iterable[str], others: Iterable[str], more: TextMatcher) -> TextMatcher:
    text_matcher = more.copy()
    for text in texts:
        text_matcher.add_text(text)
    for text in others:
        text_matcher.remove_text(text)
    return text_matcher
