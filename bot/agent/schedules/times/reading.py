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
from bot.agent.schedules.times.phrases import SPAN, TimePhrase, read_phrase
from bot.agent.schedules.times.tokens import Scan, Token
from bot.agent.schedules.times.words import WORDS
from bot.core.i18n import current_language
from bot.core.patterns import LazyPattern
from bot.core.recurrence import Once, Rule

_LAST_TOKENS = 40
"""Tokens before the end of a text among which a time at its end begins."""
_MOST_TIMES = 8
_GOES_ON = LazyPattern(
    rf"[sN,]{{0,2}}(?:L|g|G[sNOai]{{0,2}}[nK04tywrE]|[ewWvrFXm]|l(?:[yn]|[sNO]{{0,2}}{SPAN}))"
)
_GOES_BEFORE = LazyPattern("[eFwWvrD][sNOai,]{0,2}$")
_LINKS = LazyPattern("[g,sSNOai]{0,4}")
_OF_THE_TEXT = LazyPattern("[LGgl]|N(?![n0][qj]|[oQJ])")  # "the Friday meeting"
_BEFORE_TEXT = "NLGgl"
"""Classes of words before a time at the end that make it a part of the text: "by Friday"."""
_BESIDE_ELSE = LazyPattern("[uMCDZYOhE][Ll]")  # "10 minutes before the meeting at 15:00"
_LIMITED = LazyPattern("[LlG][sNOai]{0,3}(?:[wWrdm]|[n0][qj]?[sN]?m)")
"""What bounds a repetition, wherever it stands: "every day take it until Friday"."""
_REPEATS = tuple("evWB")
_CLOCK = {"clock", "part", "zone"}
_DIGITS = " 0123456789"
_CLOSING = " .!?…。！？"
_EDGES = " \t\r\n,;:–—-、，。"


@dataclass(frozen=True, slots=True)
class SpokenTime:
    """A time that a text says."""

    rule: Rule
    rest: str = ""  # the text without it
    zone: str = ""  # IANA name of the zone that it names; empty if nothing later depends on it


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a text says no time: "none", "unclear", "two_days", "no_day", "past", or "zone" if it is not sure which."""

    why: str
    words: str = ""  # that would be the time, or the zone


@dataclass(frozen=True, slots=True)
class _Found:
    phrase: TimePhrase
    spans: tuple[tuple[int, int], ...]

    def is_bare(self, text: str) -> bool:
        """Return whether it is a word and an hour, as "alle 2": another language may mean something else."""
        return (
            self.phrase.kinds == {"clock"} and text[slice(*self.spans[0])].rstrip(_DIGITS).isalpha()
        )


def read_time(text: str, now: datetime, zone: tzinfo) -> SpokenTime | Unread:
    """Read the time at the start or the end of a text, in the current language or any other; ``now`` is aware."""
    text = unicodedata.normalize("NFC", text).strip()
    scan, own = Scan(text), current_language()
    tokens = {language: scan.tokens(language, own=language == own) for language in WORDS}
    found = {one: read for one in WORDS if (read := _found_in(text, tokens[one])) is not None}
    found = {one: read for one, read in found.items() if one == own or not read.is_bare(text)}
    lengths = {one: sum(end - start for start, end in read.spans) for one, read in found.items()}
    best = [one for one in found if lengths[one] == max(lengths.values())]
    if not best:
        return Unread("none")
    times = [_spoken(found[one], text, now, zone) for one in ([own] if own in best else best)]
    if all(one == times[0] for one in times):
        return times[0]
    return Unread("unclear", text[slice(*found[best[0]].spans[0])])


def times_in(text: str, now: datetime, zone: tzinfo) -> Iterator[SpokenTime]:
    """Yield the times that a text says, without the text beside them."""
    text = unicodedata.normalize("NFC", text)
    scan, own = Scan(text), current_language()
    for language in WORDS:
        tokens = scan.tokens(language, own=language == own)
        letters = "".join(token.letter for token in tokens)
        at, found = 0, list[_Found]()
        while at < len(tokens) and len(found) < _MOST_TIMES:
            if read := read_phrase(tokens, letters, at):
                found.append(_found(tokens, letters, at, *read))
            at = read[1] if read else at + 1
        found += [both for day in found for clock in found if (both := _together(day, clock))]
        for spoken in (_spoken(one, text, now, zone) for one in found):
            if isinstance(spoken, SpokenTime):
                yield replace(spoken, rest="")


def _found_in(text: str, tokens: list[Token]) -> _Found | None:
    letters = "".join(token.letter for token in tokens)
    closed = len(text.rstrip(_CLOSING))
    count = next((at for at in range(len(tokens), 0, -1) if tokens[at - 1].start < closed), 0)
    read = None if _OF_THE_TEXT.match(letters) else read_phrase(tokens, letters, 0)
    start = _found(tokens, letters, 0, *read) if read else None
    at = max(read[1] if read else 0, count - _LAST_TOKENS)
    sure = bool(start) or letters[:1] not in _REPEATS
    while at < count:
        last = None if letters[at] in _BEFORE_TEXT else read_phrase(tokens, letters, at)
        before = letters[at - 1 : at]
        if last is not None and last[1] >= count:
            sure &= not before or before not in _BEFORE_TEXT
            return _start_or_end(start, _found(tokens, letters, at, *last), sure=sure)
        sure &= last is None or before == "N"
        at = last[1] if last else at + 1
    return start


def _start_or_end(start: _Found | None, end: _Found, *, sure: bool) -> _Found:
    if start is None:
        end.phrase.why = end.phrase.why or ("" if sure else "unclear")
        return end
    if sure and (both := _together(start, end)):
        return both
    if sure and start.phrase.kinds <= _CLOCK and not end.phrase.kinds <= _CLOCK:
        start.phrase.why = "unclear"  # "at nine call Ann on Friday": remind when, or call when?
    return start


def _found(tokens: list[Token], letters: str, first: int, phrase: TimePhrase, end: int) -> _Found:
    """Return a phrase with its place, unclear if what stands beside it makes it another time."""
    follows = _LINKS.match(letters, end)
    beside = (
        _GOES_ON.match(letters, end)
        or _GOES_BEFORE.search(letters[max(first - 3, 0) : first])
        or read_phrase(tokens, letters, follows.end() if follows else end)
        or _BESIDE_ELSE.search(letters, 0, first)
        or (phrase.every and _LIMITED.search(letters[:first] + "x" + letters[end:]))
    )
    phrase.why = phrase.why or ("unclear" if beside else "")
    return _Found(phrase, ((tokens[first].start, tokens[end - 1].end),))


def _together(first: _Found, second: _Found) -> _Found | None:
    """Return a day and a time of day that stand apart as one: "tomorrow call Anna at 17:00"."""
    day, clock = first.phrase, second.phrase
    if not clock.kinds <= _CLOCK or clock.clock is None or day.why:
        return None
    if day.kinds & {"distance", "clock", "part"}:
        return None
    both = replace(day, clock=clock.clock, face=clock.face, part=clock.part, why=clock.why)
    both.kinds, both.zone = day.kinds | clock.kinds, clock.zone or day.zone
    return _Found(both, first.spans + second.spans)


def _spoken(found: _Found, text: str, now: datetime, zone: tzinfo) -> SpokenTime | Unread:
    named = found.phrase.zone
    rule = rule_of(found.phrase, now, (named and named.zone) or zone)
    once = isinstance(rule, Once)
    if named is not None and (named.zone is None or not (once or named.name)):
        return Unread("zone", named.text)
    if isinstance(rule, str):
        return Unread(rule, " ".join(text[start:end] for start, end in found.spans))
    at, parts = 0, []
    for start, end in found.spans:
        parts.append(text[at:start].strip(_EDGES))
        at = end
    if text[at:].strip(_CLOSING):
        parts.append(text[at:].strip().lstrip(_EDGES))
    zone_name = "" if once or named is None else named.name
    return SpokenTime(rule, " ".join(filter(None, parts)), zone_name)
