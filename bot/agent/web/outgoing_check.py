"""Check that an address or a search does not carry away what memory says. Pure.

A page can tell the model to fetch an address with a secret in it. So a text that goes out may hold a
detail of memory only if a person used it in this conversation.

Rule 1: an address that stands in a person's own words goes out as it is.
Rule 2: an address that stands in text from outside was made before this conversation: it may be
    long or look like a key, but still holds no detail of memory; only hits of a search may.
Rule 3: the check reads words and numbers. It cannot see a paraphrase, a translation, an encoding,
    or what the choice among several addresses tells.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import unquote_plus

from bot.language.claim_terms import content_terms
from bot.language.folding import fold_text
from bot.language.names import NameMatcher, extract_names
from bot.memory.gate.secret_detection import detect_secret

MAX_COMPOSED = 200
"""The most characters of an address that the model made itself: a host can carry words, too."""

_NUMBER = re.compile(r"(?<!\d)\d(?:[ .,/:-]?\d){4,40}(?!\d)")
_SEPARATORS = re.compile(r"[\W_]+")
_LAST_DIGITS = 7
"""Number of last digits by which numbers are compared: telephone numbers begin in several ways."""
_SHARED_TERMS = 2
"""Number of content words of one memory that make a text repeat it."""


@dataclass(frozen=True, slots=True)
class OutgoingCheck:
    """Decides what may go out in one conversation.

    Attributes:
        memory: What memory says, one memory each.
        own_words: People's own words in view.
        outside: Texts from outside in view.
        search_hits: Addresses that searches found.
    """

    memory: Collection[str] = ()
    own_words: Collection[str] = ()
    outside: Collection[str] = ()
    search_hits: Collection[str] = ()

    def address_refusal(self, url: str) -> str | None:
        """Return why an address may not be fetched; None if it may."""
        if any(_stands_in(url, text) for text in self.own_words):
            return None
        if not any(_stands_in(url, text) for text in (*self.outside, *self.search_hits)):
            if len(url) > MAX_COMPOSED:
                return (
                    f"it has more than {MAX_COMPOSED} characters, and it stands neither in the "
                    "user's words nor on a page"
                )
            if (refusal := self._secret(_readable(url))) is not None:
                return refusal
        return None if url in self.search_hits else self._memory_detail(_readable(url))

    def search_refusal(self, query: str) -> str | None:
        """Return why a search may not be sent; None if it may.

        A search goes to the owner's search engine alone. So it may use memory as long as no text
        from outside could have asked for that.
        """
        return self._secret(query) or (self._memory_detail(query) if self.outside else None)

    def _secret(self, text: str) -> str | None:
        kind = detect_secret(text)
        return None if kind is None else f"it holds what looks like {kind}"

    def _memory_detail(self, text: str) -> str | None:
        own = " \n".join(self.own_words)
        said, sent = NameMatcher(own), NameMatcher(text)
        said_terms, sent_terms = _terms(own), _terms(text)
        said_digits, sent_digits = _digits(own), _digits(text)
        for memory in self.memory:
            details = [name for name in extract_names(memory) if len(name) > 1]
            found = next((one for one in details if one in sent and one not in said), None)
            numbers = (_digits(hit)[-_LAST_DIGITS:] for hit in _NUMBER.findall(memory))
            found = found or next(
                (one for one in numbers if one in sent_digits and one not in said_digits), None
            )
            shared = (_terms(memory) & sent_terms) - said_terms
            if found is None and len(shared) >= _SHARED_TERMS:
                found = " ".join(word for word in memory.split() if _terms(word) & shared)
            if found is not None:
                return (
                    f"it holds what memory says ({found[:60]!r}), and the user did not say that "
                    "here; ask the user first"
                )
        return None


def _stands_in(url: str, text: str) -> bool:
    return url in text or url.rstrip("/") in text.split()


def _readable(url: str) -> str:
    """Return an address as words: decoded, with spaces for separators."""
    plain = unquote_plus(unquote_plus(url))
    return " ".join([plain.partition("://")[2], _SEPARATORS.sub(" ", plain)])


def _terms(text: str) -> set[str]:
    return set(content_terms(fold_text(text)))


def _digits(text: str) -> str:
    return "".join(sign for sign in text if sign.isdigit())


def memory_lines(texts: Iterable[str]) -> list[str]:
    """Return the lines of memory's texts, each once."""
    lines = (line.strip(" -*#") for text in texts for line in text.splitlines())
    return list(dict.fromkeys(filter(None, lines)))
