"""Find the time at the start or the end of what a person writes, in each language of the program. Pure.

Rule 1: a time at the start is when, and the rest is text; one at the end is read if there is none at the start, or only a day.
Rule 2: the language that reads most of a text reads it; if two read as much and not the same, there is no time.
Rule 3: what stands beside a time and makes it another one ("or ten", "until Friday") leaves no time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from bot.agent.schedules.times.meaning import rule_of
from bot.agent.schedules.times.phrases import SPAN, TimePhrase, amount_of, read_phrase
from bot.agent.schedules.times.tokens import Scan, Token
from bot.agent.schedules.times.words import WORDS
from bot.core.i18n import current_language
from bot.core.patterns import LazyPattern
from bot.core.recurrence import Once, Rule

_LONGEST = 4_000
_MOST = 8
"""The most times of a text that are compared."""
_AT_EACH_END = 250
_LAST_TOKENS = 40
"""Tokens before the end of a text among which a time at its end begins."""
_GOES_ON = LazyPattern(
    rf"[sN,]{{0,2}}(?:L|g|G[sNOai]{{0,2}}[nK04tywrE]|[ewWvrFXm]|l(?:[yn]|[sNO]{{0,2}}{SPAN}))"
)
_GOES_BEFORE = LazyPattern("[eFwWvrD][sNOai,]{0,2}$")
_MAY_FOLLOW = LazyPattern(r"[g,sSNOai]{0,4}")
_OF_THE_TEXT = LazyPattern("[LGgl]|N(?![n0][qj]|[oQJ])")  # "the Friday meeting"
_LINKS_BEFORE = "NLGgl"
"""Classes of words before a time at the end that make it a part of the text: "by Friday"."""
_BESIDE_ELSE = LazyPattern(r"[uMCDZYOhE][Ll]")  # "10 minutes before the meeting at 15:00"
_LIMIT = LazyPattern(
    rf"[LlG][sNOai]{{0,3}}(?:(?P<day>[wWrdm]|[n0][qj]?[sN]?m)|(?P<clock>t|[n0][Pc]|T)|(?P<for>{SPAN}))|(?P<long>{SPAN})L"
)
_SURE = "eirvwm"
"""Classes whose words are no mere link."""
_CLOSING = " .!?…。！？"
_EDGES = " \t\r\n,;:–—-、，。"
_CLOCK = {"clock", "part", "zone"}
_SECONDS = {
    "minutes": 60,
    "hours": 3_600,
    "days": 86_400,
    "weeks": 604_800,
    "months": 2_592_000,
    "years": 31_536_000,
}


@dataclass(frozen=True, slots=True)
class SpokenTime:
    """A time that a text says.

    Attributes:
        rule: When it is.
        rest: The text without it.
        zone: IANA name of the zone that it names; empty if it names none, or if no later occurrence depends on it.
    """

    rule: Rule
    rest: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a text says no time.

    Attributes:
        why: "none", if nothing in it is a time; "unclear"; "two_days"; "no_day"; "past"; "zone", if it is not sure which.
        words: The words that would be the time, or the zone.
    """

    why: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    phrase: TimePhrase
    spans: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        return sum(end - start for start, end in self.spans)


def read_time(text: str, now: datetime, zone: tzinfo) -> SpokenTime | Unread:
    """Read the time at the start or the end of a text, in the current language or any other.

    Args:
        text: What a person writes, of at most 4,000 characters.
        now: When, aware.
        zone: The person's zone.
    """
    text = unicodedata.normalize("NFC", text).strip()
    if len(text) > _LONGEST:
        return Unread("none")
    own = current_language()
    head, tail = _ends_of(text)
    scans = Scan(head), Scan(tail)
    tokens = {
        language: _joined(scans, len(text) - len(tail), language, own=language == own)
        for language in WORDS
    }
    found = {
        language: one
        for language in WORDS
        if (one := _found_in(text, tokens[language])) is not None
    }
    if not found:
        return Unread("none")
    longest = max(one.length for one in found.values())
    best = {language: one for language, one in found.items() if one.length == longest}
    best = {own: best[own]} if own in best else best
    read = [_spoken(one, text, now, zone) for one in best.values()]
    same = all(one == read[0] for one in read)
    if same and any(
        own in best or not _differ(tokens[own], tokens[language], one)
        for language, one in best.items()
    ):
        return read[0]
    return Unread("unclear", text[slice(*next(iter(best.values())).spans[0])])


def _ends_of(text: str) -> tuple[str, str]:
    """Return the start and the end of a text, in which a time may stand."""
    if len(text) <= 2 * _AT_EACH_END:
        return text, ""
    head, tail = text[:_AT_EACH_END], text[-_AT_EACH_END:]
    return head.rpartition(" ")[0] or head, tail.partition(" ")[2] or tail


def _joined(scans: tuple[Scan, Scan], shift: int, language: str, *, own: bool) -> list[Token]:
    head, tail = (scan.tokens(language, own=own) for scan in scans)
    if tail:
        head.append(Token("x", None, tail[0].start + shift, tail[0].start + shift))
    return head + [replace(one, start=one.start + shift, end=one.end + shift) for one in tail]


def _differ(own: list[Token], other: list[Token], found: _Found) -> bool:
    """Return whether the words of a time mean something else in the language of whoever writes: "alle 2"."""
    meant = {token.start: token.letter for token in other}
    return any(
        token.letter in _SURE and meant.get(token.start) != token.letter
        for token in own
        if any(start <= token.start < end for start, end in found.spans)
    )


def times_in(text: str, now: datetime, zone: tzinfo) -> Iterator[SpokenTime]:
    """Yield the times that a text says anywhere in it, without the text beside them."""
    text = " ".join(_ends_of(unicodedata.normalize("NFC", text[:_LONGEST])))
    scan, own = Scan(text), current_language()
    for language in WORDS:
        tokens = scan.tokens(language, own=language == own)
        letters = "".join(token.letter for token in tokens)
        at, found = 0, list[_Found]()
        while at < len(tokens) and len(found) < _MOST:
            read = read_phrase(tokens, letters, at)
            if read is not None:
                found.append(_found(tokens, letters, at, *read))
            at = read[1] if read else at + 1
        together = [both for one in found for other in found if (both := _together(one, other))]
        for one in (*found, *together):
            spoken = _spoken(one, text, now, zone)
            if isinstance(spoken, SpokenTime):
                yield replace(spoken, rest="")


def _found_in(text: str, tokens: list[Token]) -> _Found | None:
    letters = "".join(token.letter for token in tokens)
    closed = len(text.rstrip(_CLOSING))
    count = next((at for at in range(len(tokens), 0, -1) if tokens[at - 1].start < closed), 0)
    read = None if _OF_THE_TEXT.match(letters) else read_phrase(tokens, letters, 0)
    start = _found(tokens, letters, 0, *read) if read else None
    at, first = max(read[1] if read else 0, count - _LAST_TOKENS), True
    while at < count:
        last = None if letters[at] in _LINKS_BEFORE else read_phrase(tokens, letters, at)
        if last is not None and last[1] >= count:
            end = _found(tokens, letters, at, *last)
            blocked = letters[at - 1 : at] in tuple(_LINKS_BEFORE)
            return _start_or_end(start, end, unsure=blocked or not first)
        first &= last is None or letters[at - 1 : at] == "N"
        at = last[1] if last else at + 1
    return start


def _start_or_end(start: _Found | None, end: _Found, *, unsure: bool) -> _Found:
    if start is None:
        end.phrase.why = "unclear" if unsure else end.phrase.why
        return end
    if not unsure and (both := _together(start, end)):
        return both
    if start.phrase.kinds <= _CLOCK and not unsure and not end.phrase.kinds <= _CLOCK:
        start.phrase.why = (
            "unclear"  # "at nine call Ann on Friday": when to remind, or when to call?
        )
    return start


def _found(tokens: list[Token], letters: str, first: int, phrase: TimePhrase, end: int) -> _Found:
    """Return a phrase with its place, unclear if what stands beside it makes it another time."""
    follows = _MAY_FOLLOW.match(letters, end)
    beside = (
        _GOES_ON.match(letters, end)
        or _GOES_BEFORE.search(letters[max(first - 3, 0) : first])
        or read_phrase(tokens, letters, follows.end() if follows else end)
        or _BESIDE_ELSE.search(letters, 0, first)
        or (phrase.every and _has_limit(tokens, letters, phrase, (first, end)))
    )
    phrase.why = phrase.why or ("unclear" if beside else "")
    return _Found(phrase, ((tokens[first].start, tokens[end - 1].end),))


def _has_limit(
    tokens: list[Token], letters: str, phrase: TimePhrase, place: tuple[int, int]
) -> bool:
    """Return whether a text says where a repetition begins or ends, or what it leaves out.

    A span no longer than the interval is how long the thing takes: "every day walk for 30 minutes".
    """
    count, unit = phrase.every or (1, "days")
    interval = count * _SECONDS[unit] if len(phrase.weekdays or ()) < 2 else _SECONDS["days"]
    for hit in (*_LIMIT.finditer(letters, 0, place[0]), *_LIMIT.finditer(letters, place[1])):
        if hit["day"] or (hit["clock"] and unit in ("minutes", "hours")):
            return True
        span = hit.span("for") if hit["for"] else hit.span("long")
        months, days, seconds = amount_of(tokens[slice(*span)])
        more = months * _SECONDS["months"] + days * _SECONDS["days"] + seconds
        if not hit["clock"] and more > interval:
            return True
    return False


def _together(first: _Found, second: _Found) -> _Found | None:
    """Return a day and a time of day that stand apart as one: "tomorrow call Anna at 17:00"."""
    day, clock = first.phrase, second.phrase
    alone = clock.kinds <= _CLOCK and clock.clock is not None
    if not alone or day.kinds & {"distance", "clock", "part"} or day.why or first is second:
        return None
    kinds = day.kinds | clock.kinds
    both = replace(
        day, clock=clock.clock, face=clock.face, part=clock.part, kinds=kinds, why=clock.why
    )
    both.zone = clock.zone or day.zone
    return _Found(both, first.spans + second.spans)


def _spoken(found: _Found, text: str, now: datetime, zone: tzinfo) -> SpokenTime | Unread:
    named = found.phrase.zone
    if named is not None and named.zone is None:
        return Unread("zone", named.text)
    words = " ".join(text[start:end] for start, end in found.spans)
    rule = rule_of(found.phrase, now, zone if named is None else named.zone or zone)
    if isinstance(rule, str):
        return Unread(rule, words)
    once = isinstance(rule, Once)
    if named is not None and not named.name and not once:
        return Unread("zone", named.text)
    at, parts = 0, []
    for start, end in found.spans:
        parts.append(text[at:start].strip(_EDGES))
        at = end
    closing = text[at:].strip() if text[at:].strip(_CLOSING) else ""
    parts.append(closing.lstrip(_EDGES))
    return SpokenTime(
        rule, " ".join(part for part in parts if part), "" if once or named is None else named.name
    )
