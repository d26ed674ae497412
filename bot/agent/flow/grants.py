"""Decide what may leave without a press: in an address, a search, a call's arguments, an answer. Pure.

Rule 1: what permits is data: a person's own words, byte for byte; a choice that the tool's schema
    offers; an address among the links that code took out of a successful search or page; what a
    person's yes let the same system have. Nothing is read out of a result's text, an error, a name
    or a repetition.
Rule 2: with text from outside in view, all else asks: whoever wrote the text may have had it made up.
    A search goes to the owner's engine alone, so it asks only for what memory says.
Rule 3: without such text nobody hostile had a say, and only secrets, details of memory and long
    addresses ask. This check reads words and numbers; it sees no paraphrase and no encoding.
Rule 4: which links are followed tells their site something, and so does each choice in a row of
    calls: a turn follows few links of each site, and makes few differing calls of a tool, each with
    few choices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log2
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from bot.agent.flow.labels import DEEPEST, argument_texts, number_text
from bot.agent.flow.spoken import SpokenWords, plain_number
from bot.agent.grammar_words import grammar_terms
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.memory.gate.secret_detection import detect_secret
from bot.tape.index.terms import telling_terms

MAX_COMPOSED = 200
"""The most characters of an address that the model made itself: a host can carry words, too."""

MOST_FOLLOWED = 3
"""The most links of one site that a turn follows unasked, calls of one tool that differ, values in
a list, and images in an answer."""

_MOST_CHOSEN = 40
"""The most bits that the choices in a call carry unasked: which fields, which choices, which words."""
_SAID_BITS = 3
"""What it counts that a field has these said words and no others."""

_NUMBER = LazyPattern(r"(?<!\d)\d(?:[ .,/:-]?\d){4,40}(?!\d)")
_NAME = LazyPattern(r"[\w '’&-]{1,80}")
"""A value that names no host and no address, whichever field it stands in."""
_SEPARATORS = LazyPattern(r"[\W_]+")
_LAST_DIGITS = 7
"""Number of last digits by which numbers are compared: telephone numbers begin in several ways."""
_SHARED_TERMS = 2
"""Number of telling words of one memory that make a text repeat it."""
_WORD = LazyPattern(r"[\w'’-]+")
_INSIDE = LazyPattern(r"(?<=[\w,;'’)] )[^\W\d_][\w'’-]*")


@dataclass(frozen=True)
class Grants:
    """What one conversation permits.

    Attributes:
        words: People's own words in view.
        links: Addresses that code recorded beside successful results in view.
        outside: Whether text from outside could have shaped what goes out.
        memory: What memory and the tape say, one memory each.
        followed: What the turn called before, by which links are counted.
        approved: Arguments that the turn's askers let the same system have, each with its name.
    """

    words: Sequence[SpokenWords] = ()
    links: Collection[str] = frozenset()
    outside: bool = False
    memory: Sequence[str] = ()
    followed: Collection[str] = ()
    approved: Sequence[tuple[str, Any]] = ()

    def permits(self, address: str) -> bool:
        """Return whether an address is a person's own, or a recorded link or its site."""
        return address in self.links or self._names(address) or address in self._sites

    @cached_property
    def _sites(self) -> frozenset[str]:
        return frozenset(map(site_of, self.links)) - {""}

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
        chosen = 0.0
        for name, value in given.items():
            if self._is_sent_before(name, value):
                continue
            chosen += _chosen_bits({name: value}, schema)
            if chosen > _MOST_CHOSEN or not self._permitted({name: value}, schema, 0):
                return Reason("argument_unsaid", name=name, origin=Reason("origin_outside"))
        followed = (self._too_many(one) for one in texts if one in self.links)
        return next(filter(None, followed), None)

    def _is_sent_before(self, name: str, value: Any) -> bool:
        """Return whether an approved call sent this value: in this field, or as names in another."""
        if (name, value) in self.approved:
            return True
        wanted = _items(value)
        if not wanted or not all(isinstance(one, str) and _NAME.fullmatch(one) for one in wanted):
            return False
        sent = (_items(one) for _, one in self.approved)
        return any(
            wanted == items or (len(wanted) <= MOST_FOLLOWED and _follow(wanted, items))
            for items in sent
        )

    def _permitted(self, value: Any, schema: Any, depth: int) -> bool:
        """Return whether a value of a schema's field is one of its choices, or permitted data."""
        schema = schema if isinstance(schema, Mapping) else {}
        if value in (None, "", [], {}) or isinstance(value, bool) or _is_choice(value, schema):
            return True
        if isinstance(value, Mapping):
            fields = schema.get("properties")
            fields = fields if isinstance(fields, Mapping) and depth < DEEPEST else {}
            return all(
                name in fields and self._permitted(inner, fields[name], depth + 1)
                for name, inner in value.items()
            )
        if isinstance(value, list):
            return self._is_short_list(value, schema.get("items"))
        return self._is_data(value)

    def _is_short_list(self, values: Sequence[Any], schema: Any) -> bool:
        """Return whether a list has few values and each once, as more of them would spell a text."""
        if len(values) > MOST_FOLLOWED or any(isinstance(one, (list, dict)) for one in values):
            return False
        schema = schema if isinstance(schema, Mapping) else {}
        said = [one for one in values if not _is_choice(one, schema)]
        texts = [one if isinstance(one, str) else number_text(one) for one in said if _is_text(one)]
        if len(texts) < len(said) or len(set(map(str, values))) < len(values):
            return False
        if not all(map(self._is_data, texts)):
            return False
        words = [one for one in texts if one not in self.links]
        return any(_in_order(words, one.text) for one in self.words) or not words

    def _is_data(self, value: str | float) -> bool:
        text = value if isinstance(value, str) else number_text(value)
        return text in self.links or self.says(text)

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
        """Return what a text repeats of a memory: a name, a long number, or two telling words."""
        own = " \n".join(one.text for one in self.words)
        sent, sent_digits, said_digits = _terms(text) - _terms(own), _digits(text), _digits(own)
        for memory in self.memory:
            numbers = (_digits(hit)[-_LAST_DIGITS:] for hit in _NUMBER.findall(memory))
            found = [one for one in numbers if one in sent_digits and one not in said_digits]
            if not found and sent.isdisjoint(_terms(memory)):
                continue
            words = [hit.group() for hit in _WORD.finditer(memory) if _terms(hit.group()) & sent]
            names = (hit.group() for hit in _INSIDE.finditer(memory))
            found += [one for one in names if one[0].isupper() and one in words]
            found += [" ".join(words)] if len(_terms(memory) & sent) >= _SHARED_TERMS else []
            if found:
                return Reason("holds_memory", detail=found[0][:60])
        return None


def _is_choice(value: Any, schema: Mapping[str, Any]) -> bool:
    listed = schema.get("enum")
    choices = [*(listed if isinstance(listed, list) else ())]
    return value in [*choices, *(schema[key] for key in ("const", "default") if key in schema)]


def _chosen_bits(value: Any, schema: Any) -> float:
    """Return how many bits the choices in a value carry, down to the depth that is permitted."""
    schema = schema if isinstance(schema, Mapping) else {}
    if isinstance(value, Mapping) and isinstance(fields := schema.get("properties"), Mapping):
        return sum(1 + _chosen_bits(inner, fields.get(name)) for name, inner in value.items())
    if isinstance(value, list):
        return sum(_chosen_bits(one, schema.get("items")) for one in value[:_MOST_CHOSEN])
    listed = schema.get("enum")
    return log2(len(listed) or 1) if isinstance(listed, list) else _SAID_BITS


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _follow(wanted: Iterable[Any], items: Iterable[Any]) -> bool:
    """Return whether all stand among items, in their order."""
    left = iter(items)
    return all(one in left for one in wanted)


def _in_order(values: Iterable[str], text: str) -> bool:
    at = 0
    for value in values:
        found = text.find(value, at)
        if found < 0:
            return False
        at = found + len(value)
    return True


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


@lru_cache(maxsize=8192)
def _terms(text: str) -> frozenset[str]:
    """Return the terms by which the search would find a text, without words of grammar."""
    return frozenset(telling_terms(text)) - grammar_terms()


def _digits(text: str) -> str:
    return "".join(sign for sign in text if sign.isdigit())
