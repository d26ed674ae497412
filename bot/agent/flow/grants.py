"""Decide what may leave without a press: in an address, a search, a call's arguments, an answer. Pure.

Rule 1: what permits is data: a person's own words, byte for byte; a choice that the tool's schema
    offers; an address among the links that code took out of a successful search or page. Nothing is
    read out of a result's text, an error, a name or a repetition.
Rule 2: with text from outside in view, all else asks: whoever wrote the text may have had it made up.
    A search goes to the owner's engine alone, so it asks only for what memory says.
Rule 3: without such text nobody hostile had a say, and only secrets, details of memory and long
    addresses ask. This check reads words and numbers; it sees no paraphrase and no encoding.
Rule 4: which links are followed tells their site something, so a turn follows few of each site.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from bot.agent.flow.labels import DEEPEST, MOST_VALUES, argument_texts, number_text
from bot.agent.flow.spoken import SpokenWords, plain_number
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.language.claim_terms import content_terms
from bot.language.folding import fold_text
from bot.language.names import NameMatcher, extract_names
from bot.memory.gate.secret_detection import detect_secret

MAX_COMPOSED = 200
"""The most characters of an address that the model made itself: a host can carry words, too."""

MOST_FOLLOWED = 3
"""The most links of one site that a turn follows unasked."""

_NUMBER = LazyPattern(r"(?<!\d)\d(?:[ .,/:-]?\d){4,40}(?!\d)")
_SEPARATORS = LazyPattern(r"[\W_]+")
_LAST_DIGITS = 7
"""Number of last digits by which numbers are compared: telephone numbers begin in several ways."""
_SHARED_TERMS = 2
"""Number of content words of one memory that make a text repeat it."""


@dataclass(frozen=True, slots=True)
class Grants:
    """What one conversation permits.

    Attributes:
        words: People's own words in view.
        links: Addresses that code recorded beside successful results in view.
        outside: Whether text from outside could have shaped what goes out.
        memory: What memory and the tape say, one memory each.
        followed: What the turn called before, by which links are counted.
    """

    words: Sequence[SpokenWords] = ()
    links: Collection[str] = frozenset()
    outside: bool = False
    memory: Sequence[str] = ()
    followed: Collection[str] = ()

    def permits(self, address: str) -> bool:
        """Return whether an address is a person's own, or a recorded link."""
        return address in self.links or self._names(address)

    def address_objection(self, url: str) -> Reason | None:
        """Return why an address may not be fetched unasked; None if it may."""
        if self._names(url):
            return None
        if url in self.links:
            return self._too_many(url)
        if (carried := self._carried(_readable(url))) is not None:
            return carried
        if self.outside:
            return Reason("address_unnamed")
        return Reason("address_composed", most=MAX_COMPOSED) if len(url) > MAX_COMPOSED else None

    def search_objection(self, query: str) -> Reason | None:
        """Return why a search may not be sent unasked; None if it may."""
        return self._carried(query) if self.outside else _secret(query)

    def arguments_objection(
        self, given: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> Reason | None:
        """Return why a call's arguments may not go to another system unasked; None if they may."""
        texts = argument_texts(given)
        if (carried := self._carried("\n".join(texts))) is not None or not self.outside:
            return carried
        fields = schema.get("properties")
        fields = fields if isinstance(fields, Mapping) else {}
        for name, value in given.items():
            known = name in fields or self.says(name)
            unsaid = self._unpermitted(value, fields.get(name), 0)
            if len(texts) > MOST_VALUES or not known or any(unsaid):
                return Reason("argument_unsaid", name=name, origin=Reason("origin_outside"))
        followed = (self._too_many(one) for one in texts if one in self.links)
        return next(filter(None, followed), None)

    def _unpermitted(self, value: Any, schema: Any, depth: int) -> Iterator[bool]:
        """Yield whether each part of a value is neither a choice of the schema nor permitted data."""
        schema = schema if isinstance(schema, Mapping) else {}
        listed = schema.get("enum")
        choices = [*(listed if isinstance(listed, list) else ())]
        choices += [schema[key] for key in ("const", "default") if key in schema]
        if value is None or isinstance(value, bool) or value == "" or value in choices:
            return
        if depth > DEEPEST:
            yield True
        elif isinstance(value, Mapping):
            fields = schema.get("properties")
            fields = fields if isinstance(fields, Mapping) else {}
            for name, inner in value.items():
                yield not (name in fields or self.says(name))
                yield from self._unpermitted(inner, fields.get(name), depth + 1)
        elif isinstance(value, list):
            for inner in value:
                yield from self._unpermitted(inner, schema.get("items"), depth + 1)
        elif isinstance(value, str):
            yield not (self.says(value) or value in self.links)
        else:
            yield not self.says(number_text(value))

    def says(self, value: str) -> bool:
        """Return whether a value stands in a person's own words, to the letter."""
        number = plain_number(value) == value
        return any((number or value in one.text) and one.holds(value) for one in self.words)

    def _names(self, url: str) -> bool:
        """Return whether a person wrote an address: whole, or without its scheme but with a path.

        A word with a dot names no site: it may be a file, or a version.
        """
        scheme, mark, rest = url.partition("://")
        spellings = [url]
        if mark and scheme in ("http", "https"):
            host, slash, _ = rest.partition("/")
            spellings += [rest] if host.startswith("www.") or ("." in host and slash) else []
            # A browser adds the last slash itself.
            spellings += [one[:-1] for one in spellings if rest == f"{host}/" and one != rest]
            spellings += [host] if host.startswith("www.") and rest == f"{host}/" else []
        return any(map(self.says, spellings))

    def _too_many(self, url: str) -> Reason | None:
        """Return why another link of a site is not followed unasked in this turn."""
        site = site_of(url)
        others = {one for one in self.followed if one in self.links and site_of(one) == site}
        others -= {url, *filter(self._names, others)}
        return Reason("many_links", most=MOST_FOLLOWED) if len(others) >= MOST_FOLLOWED else None

    def _carried(self, text: str) -> Reason | None:
        return _secret(text) or self._memory_detail(text)

    def _memory_detail(self, text: str) -> Reason | None:
        own = " \n".join(one.text for one in self.words)
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


def site_of(url: str) -> str:
    """Return the host and port of an address; empty if it has none, or a user's name before it."""
    try:
        named = urlsplit(url).netloc
    except ValueError:
        return ""
    return "" if "@" in named else named.lower().removeprefix("www.")


def memory_lines(texts: Iterable[str]) -> list[str]:
    """Return the lines of memory's texts, each once."""
    lines = (line.strip(" -*#") for text in texts for line in text.splitlines())
    return list(dict.fromkeys(filter(None, lines)))


def _secret(text: str) -> Reason | None:
    kind = detect_secret(text)
    return None if kind is None else Reason("holds_secret", kind=kind)


def _readable(url: str) -> str:
    """Return an address as words: decoded, with spaces for separators."""
    plain = unquote_plus(unquote_plus(url))
    return " ".join([plain.partition("://")[2], _SEPARATORS.sub(" ", plain)])


def _terms(text: str) -> set[str]:
    return set(content_terms(fold_text(text)))


def _digits(text: str) -> str:
    return "".join(sign for sign in text if sign.isdigit())
