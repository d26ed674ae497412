"""Cuts out of a message the words about what is erased, so that the rest stays as evidence. Pure.

Rule 1: a clause that says what goes is replaced as a whole; one that also says what stays loses single words.
Rule 2: nothing is cut on a guess: where no word tells the two apart, nothing is.
Rule 3: cutting what was cut already changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.memory.forgetting.text_matcher import TextMatcher
from bot.memory.forgetting.tombstones import ERASED_TEXT

_AND = r"(?:and|but|or|while|und|aber|oder|et|mais|ou|y|pero|e|ma|mas|oraz|ale|и|но)\s+"
# A run of white space is matched from its beginning only, so that no text takes long.
_BETWEEN = re.compile(rf"([.!?…;:\n]+\s*|,\s+(?:{_AND})?|[。！？；，、]|(?<!\s)\s+{_AND})")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MessageRedactor:
    """Knows which words of a message go, and which stay.

    Attributes:
        erased_texts: Texts of the facts that go.
        kept_texts: Texts of the facts that stay and rest on the same messages.
        requested_words: Words and phrases that were asked for.
    """

    erased_texts: tuple[str, ...]
    kept_texts: tuple[str, ...] = ()
    requested_words: TextMatcher = field(default_factory=TextMatcher)
    _going: TextMatcher = field(init=False, repr=False)
    _staying: TextMatcher = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Take in what tells the two apart."""
        object.__setattr__(
            self, "_going", _told(self.erased_texts, self.kept_texts, self.requested_words)
        )
        asked = self.requested_words.all_texts()
        object.__setattr__(
            self, "_staying", _told(self.kept_texts, (*self.erased_texts, *asked), TextMatcher())
        )

    def redact(self, text: str) -> str | None:
        """Return what is left of a text; None where no words of its own are."""
        pieces = self._pieces(text)
        told = "".join(pieces)
        return told if any(map(str.isalnum, told.replace(ERASED_TEXT, ""))) else None

    def redact_quote(self, text: str) -> str:
        """Return the longest part of a quotation that is left, as it stands in what is left of its message."""
        runs: list[list[str]] = [[]]
        for place, piece in enumerate(self._pieces(text)):
            if ERASED_TEXT in piece:
                runs.append([])
            # What stands between two clauses belongs to a run that goes on behind it.
            elif place % 2 == 0 or runs[-1]:
                runs[-1].append(piece)
        told = ["".join(run[: len(run) - (len(run) % 2 == 0)]).strip() for run in runs]
        return max(told, key=len)

    def _pieces(self, text: str) -> list[str]:
        """Return clauses and what stands between them in turn, those that go as a mark, once in a row."""
        found = [
            self._clause(piece) if place % 2 == 0 else piece
            for place, piece in enumerate(_BETWEEN.split(text))
        ]
        pieces = found[:1]
        for between, clause in zip(found[1::2], found[2::2], strict=True):
            if not (clause == ERASED_TEXT and pieces[-1] == ERASED_TEXT):
                pieces += [between, clause]
        return pieces

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
    found = more.copy()
    for text in texts:
        found.add_text(text)
    for text in others:
        found.remove_text(text)
    return found
