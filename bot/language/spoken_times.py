"""Find the time that a sentence says, and what is left of the sentence, in English and German. Pure.

Rule 1: what says no moment, two moments, an impossible one or one that has passed gives None.
Rule 2: a time right after the request is when to remind, and other times are part of the text.
Rule 3: "by Friday" and "the 5 pm meeting" say when something else is: they are part of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import islice

from bot.core.patterns import LazyPattern
from bot.core.recurrence import Once, Rule
from bot.language.named_zones import named_zones
from bot.language.time_meaning import rule_of
from bot.language.time_phrases import read_phrase
from bot.language.time_vocabulary import ADVERB, TimePhrase
from bot.language.time_words import Words, read_words
from bot.language.unread_repetitions import has_limits, hints_at_repetition

_LONGEST = 4_000
_MOST_ZONES = 8
"""The most names of zones in a text that are looked at, so that a long text takes linear time."""
_OF_SOMETHING_ELSE = frozenset(
    "the my your his her our their that der die das den dem des mein meine meinen meiner meinem dein deine deinen deiner unser"
    " unsere unseren by till until before after since from between bis vor nach seit ab zwischen for fur furs of vom good guten"
    " starting ending than als every jeden not nicht a an ein eine einen einem einer".split()
)
_ARTICLES = frozenset(("a", "an", "eine", "ne"))
_GOES_ON = frozenset(
    "until till or oder bis except ausser starting beginning ab zwischen between bzw through thru before after bevor nachdem nach vor".split()
)
_AND = frozenset(("and", "und", "&", "or", "oder", ",", "-"))


@dataclass(frozen=True, slots=True)
class SpokenTime:
    """A time that a sentence says.

    Attributes:
        rule: When it is.
        rest: The sentence without the time.
        zone: IANA name of the zone that the sentence names; empty if it names none, or if no later occurrence depends on it.
        span: Where the words of the time begin and end.
    """

    rule: Rule
    rest: str
    zone: str = ""
    span: tuple[int, int] = (0, 0)


def find_time(text: str, now: datetime, zone: tzinfo) -> SpokenTime | None:
    """Return the time that a text says, as "in 20 minutes" or "every Monday at 8"; None if it says none for sure.

    A text of more than 4,000 characters says none.

    Args:
        text: The text of a person.
        now: When it was said, aware.
        zone: The person's zone.
    """
    return _in_named_zone(text, zone, lambda plain, at: _find(read_words(plain), now, at, begin=0))


def _in_named_zone(
    text: str, zone: tzinfo, find: Callable[[str, tzinfo], SpokenTime | None]
) -> SpokenTime | None:
    """Return the time that a text says in the zone that it names beside it, or else in the person's."""
    if len(text) > _LONGEST:
        return None
    for named in islice(named_zones(text), _MOST_ZONES):
        found = find(f"{text[: named.start]} {text[named.end :]}", named.zone or zone)
        if found is None or not found.span[0] - 2 <= named.start <= found.span[1] + 1:
            continue
        once = isinstance(found.rule, Once)
        sure = named.zone is not None and (once or named.name)
        return replace(found, zone="" if once else named.name) if sure else None
    return find(text, zone)


def unsure_zone(text: str) -> str:
    """Return the name of a zone in a text by which it is not sure which zone is meant; empty if there is none."""
    named = islice(named_zones(text[:_LONGEST]), _MOST_ZONES)
    return next((one.text for one in named if one.zone is None or not one.name), "")


_OPENING = (
    r"(?:(?:hey|hi|yo|hello|hallo|ok|okay|please|bitte|so|and|und|also|tapebot|guten morgen|guten tag|guten abend|good morning"
    r"|good evening)(?: [,!.])? ){0,3}"
)
_REGULAR = r"(?:(?P<regular{}>recurring|repeating|regular|wiederkehrende|regelmassige) )?"
_REMINDER = rf"(?:reminder|erinnerung|(?=(?:{ADVERB}) (?:reminder|erinnerung)(?: |$)))"
_REQUEST = LazyPattern(
    rf"{_OPENING}(?P<asked>"
    r"(?:(?:can|could|will|would) you )?(?:please )?remind me(?: please)?(?: again)?"
    r"|(?:(?:can|could|will|would) you )?(?:please )?(?:set|create|make|add|schedule)(?: up)? (?:me )?(?:an? |another )?"
    rf"{_REGULAR.format(1)}{_REMINDER}(?: for me)?(?: for)?"
    rf"|(?:i need|i want|i'd like|i would like) (?:to be reminded|you to remind me|an? {_REGULAR.format(2)}{_REMINDER}(?: for)?)"
    r"|(?:erinnere|erinner|erinnre|erinnern sie|erinnerst du) mich(?: mal| doch| bitte| noch| nochmal){0,3}"
    r"|(?:kannst|konntest|wurdest|konnen|konnten) (?:du|sie) mich(?: mal| doch| bitte| noch| nochmal){0,3}(?P<late>)"
    r"|(?:stell|stelle|setz|setze|erstell|erstelle|mach|mache) (?:mir )?(?:bitte )?(?:eine |ne )?"
    rf"{_REGULAR.format(3)}{_REMINDER}(?: fur)?"
    r"|(?:ich will|ich mochte|ich muss)(?P<late2>)"
    r")(?:(?= |$)|(?<= ))(?: [,:])?"
)
_SET_FOR = LazyPattern(
    rf"{_OPENING}(?:stell|stelle|setz|setze|erstell|erstelle|mach|mache) (?:mir )?(?:bitte )?(?:fur )?"
)
_THE_REMINDER = LazyPattern(r"(?:eine|ne) erinnerung(?: ein)?(?= |$)")
_REMEMBERS = LazyPattern(
    r" ?(?:what|who|whom|whose|how|why|which|where|whether|if|when|was|wer|wen|wem|wie|warum|welche[rsnm]?|wo|ob|wenn|woran)(?= |$)"
)
_LATE_VERB = LazyPattern(
    r"[ ,]{0,3}(?:(?:daran|dran) )?(?:zu )?(?:erinnern|erinnert werden)[ .?!]{0,5}$", re.IGNORECASE
)
_LINK = LazyPattern(
    r"[\s,:;–-]{0,9}(?:(?:to|that|about|of|daran|dran|dass|an|ans)(?!\w)[\s,:]{0,9}){0,2}",
    re.IGNORECASE,
)


def find_reminder(text: str, now: datetime, zone: tzinfo) -> SpokenTime | None:
    """Return what a request to be reminded says: when, and of what; None if it is no such request or says no time for sure.

    Args:
        text: The text of a person.
        now: When it was said, aware.
        zone: The person's zone.
    """
    return _in_named_zone(text, zone, lambda plain, at: _find_request(plain, now, at))


def _find_request(text: str, now: datetime, zone: tzinfo) -> SpokenTime | None:
    words = read_words(text)
    asked = _REQUEST.match(words.folded)
    if asked:
        begin = words.word_at(asked.end())
        if asked["late"] is not None or asked["late2"] is not None:
            late = _LATE_VERB.search(text[-60:])
            if late is None:
                return None
            words = read_words(text[: len(text) - len(late[0])])
        if _REMEMBERS.match(words.folded, words.starts[min(begin, len(words.spans))]):
            return None
        found = _find(words, now, zone, begin)
        regular = asked["regular1"] or asked["regular2"] or asked["regular3"]
        if found is not None and regular and isinstance(found.rule, Once):
            return None
    else:
        found = _time_before_request(words, now, zone)
    if found is None:
        return None
    rest = _LINK.sub("", found.rest, count=1)
    return replace(found, rest=rest.rstrip(" .?!,;:\n"))


def _time_before_request(words: Words, now: datetime, zone: tzinfo) -> SpokenTime | None:
    """Return the reminder of "tomorrow at 9 remind me to ..." and "stell mir für morgen um 9 eine Erinnerung: ..."."""
    split = _SET_FOR.match(words.folded)
    opening = split or re.match(_OPENING, words.folded)
    first = words.word_at(opening.end()) if opening else 0
    read = read_phrase(words, first)
    if read is None:
        return None
    phrase, end = read
    skipped = 1 if words.folded.startswith(", ", words.starts[end]) else 0
    request = _THE_REMINDER if split else _REQUEST
    asked = request.match(words.folded, words.starts[min(end + skipped, len(words.spans))])
    if asked is None or any(asked.groupdict().get(late) is not None for late in ("late", "late2")):
        return None
    found = [_Found(phrase, first, end)]
    rule = rule_of(phrase, now, zone) if _is_sure(words, phrase, found, found) else None
    rest = words.text_from(words.word_at(asked.end()))
    return _spoken(rule, rest, words, found) if rule else None


def _spoken(rule: Rule, rest: str, words: Words, spans: list[_Found]) -> SpokenTime:
    return SpokenTime(
        rule, rest, span=(words.spans[spans[0].first][0], words.spans[spans[-1].end - 1][1])
    )


@dataclass(frozen=True, slots=True)
class _Found:
    phrase: TimePhrase
    first: int
    end: int
    about_else: bool = False


def _find(words: Words, now: datetime, zone: tzinfo, begin: int) -> SpokenTime | None:
    read = list(_phrases(words, begin))
    chosen = _chosen([found for found in read if not found.about_else], words, begin)
    if chosen is None:
        return None
    phrase, spans = chosen
    rule = rule_of(phrase, now, zone) if _is_sure(words, phrase, spans, read) else None
    if rule is None:
        return None
    parts, at = [], begin
    for found in spans:
        parts.append(words.text_between(at, found.first).strip(" ,;:\n\t"))
        at = found.end
    parts.append(words.text_from(at).strip())
    if not parts[0]:
        parts[1:] = [parts[1].lstrip(" ,;:-"), *parts[2:]]
    rest = " ".join(part for part in parts if part.strip(" .?!,;:-"))
    return _spoken(rule, rest, words, spans)


def _is_sure(words: Words, phrase: TimePhrase, chosen: list[_Found], read: list[_Found]) -> bool:
    """Return whether the words around a phrase leave no doubt about whether and how it repeats."""
    spans = [(found.first, found.end) for found in chosen]
    if phrase.every is not None:
        return not has_limits(words, phrase, spans)
    return not hints_at_repetition(words, spans, [(found.first, found.end) for found in read])


def _phrases(words: Words, begin: int) -> Iterator[_Found]:
    """Yield the phrases, with whether they say when something else is."""
    at = begin
    while at < len(words.spans):
        read = read_phrase(words, at)
        if read is None:
            at += 1
            continue
        phrase, end = read
        before = words.word(at - 1) if at > begin else ""
        asked = before in _ARTICLES and words.word(at + 1) in ("reminder", "erinnerung")
        yield _Found(phrase, at, end, before in _OF_SOMETHING_ELSE and not asked)
        at = end


def _chosen(
    found: list[_Found], words: Words, begin: int
) -> tuple[TimePhrase, list[_Found]] | None:
    """Return the phrase that says when, and where it stands; None if that is not sure."""
    if not found:
        return None
    first = found[0]
    more = found[1:]
    if any(
        _goes_on(words, one.end, timed=bool(one.phrase.kinds & {"distance", "clock"}))
        for one in found[:1] + more[-1:]
    ):
        return None
    gap = more[0].first - first.end if more else 9
    if gap == 0 or (gap <= 2 and words.word(first.end) in _AND):
        return None  # "at nine and again at ten"
    if not more:
        return first.phrase, [first]
    if len(more) == 1 and (both := _together(first.phrase, more[0].phrase)):
        return both, found
    only_clock = [one.phrase.kinds <= {"clock", "part", "beside"} for one in found]
    # "at nine call Anna on Friday": is Friday when to be reminded, or when to call?
    unsure = first.first != begin or (only_clock[0] and not only_clock[1])
    return None if unsure else (first.phrase, [first])


def _goes_on(words: Words, end: int, *, timed: bool) -> bool:
    """Return whether a phrase is the first half of "at nine or ten", "every day until Friday"."""
    word, after = words.word(end), words.word(end + 1)
    if word == "nach" and (after in _NACH_PLACES or (timed and _has_nach_verb(words, end))):
        return False
    return word in _GOES_ON or (word in ("-", "/", "to", "and", "und") and after[:1].isdecimal())


_NACH_PLACES = frozenset("hause oben unten draussen drinnen hinten vorn vorne".split())
_NACH_VERBS = frozenset(
    "sehen schauen gucken kucken fragen suchen erkundigen fahren fliegen gehen laufen reisen".split()
)


def _has_nach_verb(words: Words, nach: int) -> bool:
    """Return whether "nach" belongs to a verb: "nach dem Teig sehen"."""
    return any(words.word(at) in _NACH_VERBS for at in range(nach + 1, nach + 7))


def _together(first: TimePhrase, second: TimePhrase) -> TimePhrase | None:
    """Return a day and a time of day that stand apart as one phrase: "tomorrow call Anna at five pm"."""
    alone = second.kinds <= {"clock", "part", "beside"} and second.clock is not None
    if not alone or first.kinds & {"distance", "clock", "part"}:
        return None
    first.clock, first.face, first.part = second.clock, second.face, second.part
    first.vague |= second.vague
    return first
