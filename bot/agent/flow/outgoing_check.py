"""Check that what goes out carries away neither secrets nor what memory and the tape say. Pure.

A page can tell the model to fetch an address, or to call a tool, with a secret in it. So what goes out
may hold a detail of memory only if a person used it in this conversation; otherwise a person is asked.

Rule 1: an address that stands in a person's own words goes out as it is, and so does one that a
    search found.
Rule 2: with text from outside in view, any other address must be a link that was read there, on a
    site that a person named: whoever wrote the text may have chosen it, or had it made up.
Rule 3: the check reads words and numbers. It cannot see a paraphrase, a translation, an encoding,
    or what the choice among several addresses tells.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_plus, urlsplit

from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.language.claim_terms import content_terms
from bot.language.folding import fold_text
from bot.language.names import NameMatcher, extract_names
from bot.memory.gate.secret_detection import detect_secret

MAX_COMPOSED = 200
"""The most characters of an address that the model made itself: a host can carry words, too."""

# Many tools add the scheme themselves.
_ADDRESS = LazyPattern(
    r"[a-z][a-z0-9+.-]{1,20}://\S{1,2000}|www\.\S{1,2000}|(?<![\w.-])[\w-]{1,63}\.[\w.-]{1,253}[/:?#]\S{1,2000}",
    re.IGNORECASE,
)
_MOST_ADDRESSES = 20
_GOES_ON = LazyPattern(r"[\w%&=@:+~/?#$*-]|[.,;!'](?=\w)")
_AROUND = ".,;:!?()[]{}<>\"'"
_NUMBER = LazyPattern(r"(?<!\d)\d(?:[ .,/:-]?\d){4,40}(?!\d)")
_SEPARATORS = LazyPattern(r"[\W_]+")
_LAST_DIGITS = 7
"""Number of last digits by which numbers are compared: telephone numbers begin in several ways."""
_SHARED_TERMS = 2
"""Number of content words of one memory that make a text repeat it."""


@dataclass(frozen=True, slots=True)
class OutgoingCheck:
    """Decides what may go out in one conversation without a person's yes.

    Attributes:
        memory: What memory and the tape say, one memory each.
        own_words: People's own words in view.
        outside: Whether text from outside could have shaped what goes out.
        links_in: Texts from outside in view.
        search_hits: Addresses that searches found.
    """

    memory: Collection[str] = ()
    own_words: Collection[str] = ()
    outside: bool = False
    links_in: Collection[str] = ()
    search_hits: Collection[str] = ()

    def address_objection(self, url: str) -> Reason | None:
        """Return why an address may not be fetched unasked; None if it may."""
        if any(_stands_in(url, text) for text in self.own_words):
            return None
        if url in self.search_hits:
            return None
        carried = self._secret(_readable(url)) or self._memory_detail(_readable(url))
        if carried is not None:
            return carried
        if self.outside and not self._is_link_of_named_site(url):
            return Reason("address_unnamed")
        if not self.outside and len(url) > MAX_COMPOSED:
            return Reason("address_composed", most=MAX_COMPOSED)
        return None

    def search_objection(self, query: str) -> Reason | None:
        """Return why a search may not be sent unasked; None if it may.

        A search goes to the owner's search engine alone. So it may use memory as long as no text
        from outside could have asked for that.
        """
        return self._secret(query) or (self._memory_detail(query) if self.outside else None)

    def text_objection(self, text: str, named: Sequence[str] = ()) -> Reason | None:
        """Return why a text may not go to another system unasked; None if it may.

        Args:
            text: The text.
            named: What it states to be addresses, whatever they look like.
        """
        addresses = [*named, *_ADDRESS.findall(text)]
        found = (self.address_objection(one) for one in addresses[:_MOST_ADDRESSES])
        if (objection := next(filter(None, found), None)) is not None:
            return objection
        if len(addresses) > _MOST_ADDRESSES:
            return Reason("many_addresses")
        return self._secret(text) or self._memory_detail(text)

    def _is_link_of_named_site(self, url: str) -> bool:
        if not any(_stands_in(url, text) for text in self.links_in):
            return False
        site = _site(url)
        named = (word.strip(_AROUND) for text in self.own_words for word in text.split())
        return bool(site) and any(_site(word) == site for word in named if "." in word)

    def _secret(self, text: str) -> Reason | None:
        kind = detect_secret(text)
        return None if kind is None else Reason("holds_secret", kind=kind)

    def _memory_detail(self, text: str) -> Reason | None:
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
                return Reason("holds_memory", detail=found[:60])
        return None


def _stands_in(url: str, text: str) -> bool:
    """Return whether an address stands in a text, and not as the beginning of another one."""
    at = text.find(url)
    while at >= 0:
        rest = text[at + len(url) : at + len(url) + 2]
        if not _GOES_ON.match(rest):
            return True
        at = text.find(url, at + len(url))
    return url.rstrip("/") in text.split()


def _site(url: str) -> str:
    """Return the host and port of an address, or of a word that names a site; empty if there is none."""
    try:
        named = urlsplit(url if "://" in url else f"//{url}").netloc
    except ValueError:
        return ""
    return "" if "@" in named else named.lower().removeprefix("www.")


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
