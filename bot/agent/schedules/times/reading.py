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
    rf"[sN,]{{0,2}}(?:L|g|G[sNOai]{{0,2}}[nK04tywkrE]|[ewWvrFXm]|l(?:[yn]|[sNO]{{0,2}}{SPAN}))"
)
_GOES_BEFORE = LazyPattern("[eFwWvrD][sNOai,]{0,2}$")
_LINKS = LazyPattern("[g,sSNOai]{0,4}")
_OF_THE_TEXT = LazyPattern("[LGgl]|N(?![n0][qj]|[oQJ])")  # "the Friday meeting"
_BEFORE_TEXT = tuple("NLGgl")
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


def read_time(text: str, now: datetime, zone: tzinfo) -> SpokenTime | Unread:
    """Read the time at the start or the end of a text, in the current language or any other; ``now`` is aware."""
    text = unicodedata.normalize("NFC", text).strip()
    scan, own = Scan(text), current_language()
    found = list[tuple[float, TimePhrase]]()
    for language in WORDS:
        phrase = _start_or_end(text, scan.tokens(language, own=language == own))
        if phrase is not None:
            words = [text[slice(*span)] for span in phrase.spans]
            # A word and an hour, as "alle 2": another language may mean something else.
            bare = phrase.kinds == {"clock"} and words[0].rstrip(_DIGITS).isalpha()
            if language == own or not bare:
                found.append((len("".join(words)) + (language == own) / 2, phrase))
    most = max((length for length, _ in found), default=0.0)
    best = [phrase for length, phrase in found if length == most]
    times = [_spoken(phrase, text, now, zone) for phrase in best]
    if not times:
        return Unread("none")
    alike = all(one == times[0] for one in times)
    return times[0] if alike else Unread("unclear", text[slice(*best[0].spans[0])])


def times_in(text: str, now: datetime, zone: tzinfo) -> Iterator[SpokenTime]:
    """Yield the times that a text says, without the text beside them."""
    text = unicodedata.normalize("NFC", text)
    scan, own = Scan(text), current_language()
    for language in WORDS:
        tokens = scan.tokens(language, own=language == own)
        letters = "".join(token.letter for token in tokens)
        at, found = 0, list[TimePhrase]()
        while at < len(tokens) and len(found) < _MOST_TIMES:
            phrase, end = _phrase_at(tokens, letters, at)
            found += [phrase] if phrase else []
            at = max(end, at + 1)
        found += [both for day in found for clock in found if (both := _together(day, clock))]
        for spoken in (_spoken(one, text, now, zone) for one in found):
            if isinstance(spoken, SpokenTime):
                yield replace(spoken, rest="")


def _start_or_end(text: str, tokens: list[Token]) -> TimePhrase | None:
    letters = "".join(token.letter for token in tokens)
    closed = len(text.rstrip(_CLOSING))
    count = sum(token.start < closed for token in tokens)
    start, at = (None, 0) if _OF_THE_TEXT.match(letters) else _phrase_at(tokens, letters, 0)
    sure = start is not None or letters[:1] not in _REPEATS
    at = max(at, count - _LAST_TOKENS)
    while at < count:
        end, ends = (None, 0) if letters[at] in _BEFORE_TEXT else _phrase_at(tokens, letters, at)
        before = letters[at - 1 : at]
        if end is None or ends < count:
            sure &= end is None or before == "N"
            at = max(ends, at + 1)
            continue
        sure &= before not in _BEFORE_TEXT
        if start is None:
            end.why = end.why or ("" if sure else "unclear")
            return end
        if sure and (both := _together(start, end)):
            return both
        if sure and start.kinds <= _CLOCK and not end.kinds <= _CLOCK:
            start.why = "unclear"  # "at nine call Ann on Friday": remind when, or call when?
        break
    return start


def _phrase_at(tokens: list[Token], letters: str, first: int) -> tuple[TimePhrase | None, int]:
    """Return a phrase and where it ends, unclear if what stands beside it makes it another time."""
    phrase, end = read_phrase(tokens, letters, first)
    if phrase is not None:
        follows = _LINKS.match(letters, end)
        beside = (
            _GOES_ON.match(letters, end)
            or _GOES_BEFORE.search(letters[max(first - 3, 0) : first])
            or read_phrase(tokens, letters, follows.end() if follows else end)[0]
            or _BESIDE_ELSE.search(letters, 0, first)
            or (phrase.every and _LIMITED.search(letters[:first] + "x" + letters[end:]))
        )
        phrase.why = phrase.why or ("unclear" if beside else "")
        phrase.spans = ((tokens[first].start, tokens[end - 1].end),)
    return phrase, end


def _together(day: TimePhrase, clock: TimePhrase) -> TimePhrase | None:
    """Return a day and a time of day that stand apart as one: "tomorrow call Anna at 17:00"."""
    if not clock.kinds <= _CLOCK or clock.clock is None or day.why:
        return None
    if day.kinds & {"distance", "clock", "part"}:
        return None
    kinds, spans = day.kinds | clock.kinds, day.spans + clock.spans
    timed = {name: getattr(clock, name) for name in ("clock", "face", "part", "why")}
    return replace(day, **timed, kinds=kinds, spans=spans, zone=clock.zone or day.zone)


def _spoken(phrase: TimePhrase, text: str, now: datetime, zone: tzinfo) -> SpokenTime | Unread:
    named = phrase.zone
    rule = rule_of(phrase, now, (named and named.zone) or zone)
    once = isinstance(rule, Once)
    if named is not None and (named.zone is None or not (once or named.name)):
        return Unread("zone", named.text)
    if isinstance(rule, str):
        return Unread(rule, " ".join(text[start:end] for start, end in phrase.spans))
    at, parts = 0, []
    for start, end in phrase.spans:
        parts.append(text[at:start].strip(_EDGES))
        at = end
    if text[at:].strip(_CLOSING):
        parts.append(text[at:].strip().lstrip(_EDGES))
    zone_name = "" if once or named is None else named.name
    return SpokenTime(rule, " ".join(filter(None, parts)), zone_name)
