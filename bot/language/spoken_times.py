"""Find the time that a sentence says, and what is left of the sentence, in English and German. Pure.

Rule 1: a time of day without a day is its next occurrence; a day without a time of day is at nine.
Rule 2: an hour up to twelve without "am" or "pm" is one of a clock's face. Without a day, or today, it is the next of both;
        on another day one to five are in the afternoon, and the others in the morning.
Rule 3: "next Friday" is the Friday of the next calendar week; "Friday" is the nearest one.
Rule 4: what says no moment, two moments, an impossible one or one that has passed gives None.
Rule 5: "by Friday" and "the 5 pm meeting" say when something else is: they are part of the text.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from bot.core.recurrence import Cron, Every, Once, Rule, moment_of, next_occurrence
from bot.language.time_phrases import TimePhrase, Words, read_phrase, read_words

_LONGEST = 4_000
_NINE = (9, 0)
_OF_SOMETHING_ELSE = frozenset(
    "the my your his her our their that der die das den dem des mein meine meinen meiner meinem dein deine deinen deiner unser"
    " unsere unseren by till until before after since from between bis vor nach seit ab zwischen for fur furs of vom good guten"
    " starting ending than als every jeden not nicht a an ein eine einen einem einer".split()
)
_GOES_ON = frozenset(
    "until till or oder bis except ausser starting beginning ab zwischen between bzw".split()
)
_AND = frozenset(("and", "und", "&", "or", "oder", ",", "-"))


@dataclass(frozen=True, slots=True)
class SpokenTime:
    """A time that a sentence says.

    Attributes:
        rule: When it is.
        rest: The sentence without the time.
    """

    rule: Rule
    rest: str


def find_time(text: str, now: datetime, zone: tzinfo) -> SpokenTime | None:
    """Return the time that a text says, as "in 20 minutes" or "every Monday at 8"; None if it says none for sure.

    A text of more than 4,000 characters says none.

    Args:
        text: The text of a person.
        now: When it was said, aware.
        zone: The person's zone.
    """
    return None if len(text) > _LONGEST else _find(read_words(text), now, zone, begin=0)


_OPENING = (
    r"(?:(?:hey|hi|hello|hallo|ok|okay|please|bitte|so|and|und|also|tapebot|guten morgen|guten tag|guten abend|good morning"
    r"|good evening)(?: [,!.])? ){0,3}"
)
_REQUEST = re.compile(
    rf"{_OPENING}(?P<asked>"
    r"(?:(?:can|could|will|would) you )?(?:please )?remind me(?: please)?"
    r"|(?:(?:can|could|will|would) you )?(?:please )?(?:set|create|make|add|schedule) (?:me )?(?:an? |another )?reminder(?: for me)?(?P<due> for)?"
    r"|(?:i need|i want|i'd like|i would like) (?:a reminder|to be reminded|you to remind me)"
    r"|(?:erinnere|erinner|erinnre|erinnern sie|erinnerst du) mich(?: bitte)?"
    r"|(?:kannst|konntest|wurdest|konnen|konnten) (?:du|sie) mich(?: bitte)?(?P<late>)"
    r"|(?:stell|stelle|setz|setze|erstell|erstelle|mach|mache) (?:mir )?(?:bitte )?(?:eine |ne )?erinnerung(?P<due2> fur)?"
    r"|(?:ich will|ich mochte|ich muss)(?P<late2>)"
    r")(?= |$)(?: [,:])?"
)
_REMEMBERS = re.compile(
    r" ?(?:what|who|whom|whose|how|why|which|where|whether|if|when|was|wer|wen|wem|wie|warum|welche[rsnm]?|wo|ob|wenn|woran)(?= |$)"
)
_LATE_VERB = re.compile(
    r"[ ,]{0,3}(?:(?:daran|dran) )?(?:zu )?(?:erinnern|erinnert werden)[ .?!]{0,5}$", re.IGNORECASE
)
_LINK = re.compile(
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
    if len(text) > _LONGEST:
        return None
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
    else:
        found = _time_before_request(words, now, zone)
    if found is None:
        return None
    rest = _LINK.sub("", found.rest, count=1)
    return SpokenTime(found.rule, rest.rstrip(" .?!,;:\n") or "")


def _time_before_request(words: Words, now: datetime, zone: tzinfo) -> SpokenTime | None:
    """Return the reminder of "tomorrow at 9 remind me to ..."."""
    opening = re.match(_OPENING, words.folded)
    first = words.word_at(opening.end()) if opening else 0
    read = read_phrase(words, first)
    if read is None:
        return None
    phrase, end = read
    skipped = 1 if words.folded.startswith(", ", words.starts[end]) else 0
    asked = _REQUEST.match(words.folded, words.starts[min(end + skipped, len(words.spans))])
    rule = _rule_of(phrase, now, zone)
    if asked is None or rule is None or asked["late"] is not None or asked["late2"] is not None:
        return None
    return SpokenTime(rule, words.text_from(words.word_at(asked.end())))


@dataclass(frozen=True, slots=True)
class _Found:
    phrase: TimePhrase
    first: int
    end: int


def _find(words: Words, now: datetime, zone: tzinfo, begin: int) -> SpokenTime | None:
    chosen = _chosen(list(_phrases(words, begin)), words, begin)
    if chosen is None:
        return None
    phrase, spans = chosen
    rule = _rule_of(phrase, now, zone)
    if rule is None:
        return None
    parts, at = [], begin
    for found in spans:
        parts.append(words.text_between(at, found.first).strip(" ,;:\n\t"))
        at = found.end
    parts.append(words.text_from(at).strip())
    if not parts[0]:
        parts[1:] = [parts[1].lstrip(" ,;:-"), *parts[2:]]
    return SpokenTime(rule, " ".join(part for part in parts if part))


def _phrases(words: Words, begin: int) -> Iterator[_Found]:
    """Yield the phrases that say when, without those that are about something else."""
    at = begin
    while at < len(words.spans):
        read = read_phrase(words, at)
        if read is None:
            at += 1
            continue
        phrase, end = read
        before = words.word(at - 1) if at > begin else ""
        if before not in _OF_SOMETHING_ELSE:
            yield _Found(phrase, at, end)
        at = end


def _chosen(
    found: list[_Found], words: Words, begin: int
) -> tuple[TimePhrase, list[_Found]] | None:
    """Return the phrase that says when, and where it stands; None if that is not sure."""
    if not found:
        return None
    first = found[0]
    more = found[1:]
    if any(_goes_on(words, one.end) for one in found[:1] + more[-1:]):
        return None
    if (
        more
        and more[0].first - first.end <= 1
        and words.word(first.end) in _AND | {words.word(more[0].first)}
    ):
        return None
    if not more:
        return first.phrase, [first]
    if len(more) == 1 and (both := _together(first.phrase, more[0].phrase)):
        return both, found
    return (first.phrase, [first]) if first.first == begin else None


def _goes_on(words: Words, end: int) -> bool:
    """Return whether a phrase is the first half of "at nine or ten", "every day until Friday"."""
    word, after = words.word(end), words.word(end + 1)
    return word in _GOES_ON or (word in ("-", "/", "to") and after[:1].isdecimal())


def _together(first: TimePhrase, second: TimePhrase) -> TimePhrase | None:
    """Return a day and a time of day that stand apart as one phrase: "tomorrow call Anna at five pm"."""
    for day, clock in ((first, second), (second, first)):
        alone = clock.kinds <= {"clock", "part", "beside"} and clock.clock is not None
        if alone and "distance" not in day.kinds and day.clock is None and day.part is None:
            day.clock, day.face, day.part = clock.clock, clock.face, clock.part
            day.vague |= clock.vague
            day.kinds |= clock.kinds
            return day
    return None


def _rule_of(phrase: TimePhrase, now: datetime, zone: tzinfo) -> Rule | None:
    if phrase.vague:
        return None
    reader = _Reader(phrase, now.astimezone(UTC), zone)
    try:
        if phrase.distance is not None:
            rule: Rule | None = reader.after_distance()
        elif phrase.every is not None:
            rule = reader.repetition(*phrase.every)
        else:
            rule = reader.one_day()
    except (OverflowError, ValueError):  # a day or a year that the calendar does not have
        return None
    return rule if rule and next_occurrence(rule, now, zone) is not None else None


class _Reader:
    """What a phrase means at a moment in a zone."""

    def __init__(self, phrase: TimePhrase, now: datetime, zone: tzinfo) -> None:
        self._phrase = phrase
        self._now = now
        self._zone = zone
        self._local = now.astimezone(zone).replace(tzinfo=None, fold=0)
        self._today = self._local.date()

    def after_distance(self) -> Once | None:
        phrase = self._phrase
        months, days, seconds = phrase.distance or (0, 0, 0)
        if phrase.kinds - {"distance", "clock", "part", "beside"} and phrase.days != 0:
            return None
        if not months and not days:
            timed = phrase.clock is not None or phrase.part is not None
            return None if timed or seconds <= 0 else Once(self._now + timedelta(seconds=seconds))
        if seconds:
            return None
        total = self._today.year * 12 + self._today.month - 1 + months
        year, month = total // 12, total % 12 + 1
        day = date(year, month, min(self._today.day, monthrange(year, month)[1]))
        timed = phrase.clock is not None or phrase.part is not None
        clock = self._time(later_today=False) if timed else self._local.time()
        return None if clock is None else self._once(day + timedelta(days=days), clock)

    def one_day(self) -> Once | None:
        phrase = self._phrase
        if phrase.days is not None and phrase.kinds & {"date"}:
            return None
        if phrase.month_day == -1:
            last = monthrange(self._today.year, self._today.month)[1]
            return self._on(self._today.replace(day=last))
        if phrase.date is not None:
            return self._next_of(self._dates(), named=phrase.date[0] is not None)
        if phrase.month_day is not None:
            return self._next_of(self._days_of_months())
        if phrase.days is not None:
            day = self._today + timedelta(days=phrase.days)
            fits = phrase.weekdays is None or day.weekday() in phrase.weekdays
            return self._on(day) if fits else None
        if phrase.weekdays is not None:
            return self._next_of(self._weekdays())
        if phrase.clock is None and phrase.part is None:
            return None
        return self._next_of(self._today + timedelta(days=day) for day in range(3))

    def repetition(self, count: int, unit: str) -> Rule | None:
        phrase = self._phrase
        if phrase.days is not None or phrase.week is not None:
            return None
        if unit in ("minutes", "hours"):
            alone = phrase.kinds <= {"every"}
            step = timedelta(**{unit: count})
            return Every(count, unit, self._now + step) if alone else None  # type: ignore[arg-type]
        clock = self._time(later_today=False)
        if clock is None:
            return None
        if phrase.nth is not None or (phrase.month_day == -1 and unit == "months"):
            return self._monthly_cron(clock) if count == 1 else None
        weekdays = phrase.weekdays
        if unit == "days" and weekdays is None and phrase.date is None and phrase.month_day is None:
            return self._every(count, unit, (self._today + timedelta(days=day) for day in range(3)))
        if unit == "weeks" and weekdays is not None and phrase.date is None:
            if len(weekdays) == 1:
                return self._every(count, unit, self._weekdays())
            days = ",".join(str(day) for day in sorted((day + 1) % 7 for day in weekdays))
            days = "1-5" if weekdays == frozenset(range(5)) else days
            return Cron(f"{clock.minute} {clock.hour} * * {days}") if count == 1 else None
        if unit == "months" and phrase.month_day is not None and weekdays is None:
            return self._every(count, unit, self._days_of_months())
        if unit == "years" and phrase.date is not None and weekdays is None:
            return None if phrase.date[0] else self._every(count, unit, self._dates())
        return None

    def _monthly_cron(self, clock: time) -> Cron | None:
        phrase = self._phrase
        if phrase.nth is None:
            return Cron(f"{clock.minute} {clock.hour} L * *")
        (weekday,) = phrase.weekdays or frozenset((0,))
        which = "L" if phrase.nth == -1 else f"#{phrase.nth}"
        return Cron(f"{clock.minute} {clock.hour} * * {(weekday + 1) % 7}{which}")

    def _every(self, count: int, unit: str, days: Iterator[date]) -> Every | None:
        clock = self._time(later_today=False)
        for day in days:
            start = datetime.combine(day, clock or time(9))
            if moment_of(start, self._zone) > self._now:
                return Every(count, unit, start)  # type: ignore[arg-type]
        return None

    def _next_of(self, days: Iterator[date], *, named: bool = False) -> Once | None:
        for day in days:
            once = self._on(day)
            if once is not None or named:
                return once
        return None

    def _on(self, day: date) -> Once | None:
        clock = self._time(later_today=day == self._today)
        return None if clock is None else self._once(day, clock)

    def _once(self, day: date, clock: time) -> Once | None:
        moment = moment_of(datetime.combine(day, clock), self._zone)
        return Once(moment) if moment > self._now else None

    def _dates(self) -> Iterator[date]:
        """Yield the days of a date: of its year, else of this and the next ones that have it."""
        year, month, day = self._phrase.date or (None, 1, 1)
        weekdays = self._phrase.weekdays
        for one in [year] if year else range(self._today.year, self._today.year + 9):
            if (month, day) == (2, 29) and not year and monthrange(one, 2)[1] < 29:
                continue
            found = date(one, month, day)
            if weekdays is None or found.weekday() in weekdays:
                yield found
            elif found >= self._today:
                return

    def _days_of_months(self) -> Iterator[date]:
        number = self._phrase.month_day or 0
        weekdays = self._phrase.weekdays
        for ahead in range(14):
            months = self._today.year * 12 + self._today.month - 1 + ahead
            year, month = months // 12, months % 12 + 1
            if 1 <= number <= monthrange(year, month)[1]:
                found = date(year, month, number)
                if weekdays is None or found.weekday() in weekdays:
                    yield found
                elif found >= self._today:
                    return

    def _weekdays(self) -> Iterator[date]:
        (weekday,) = self._phrase.weekdays or frozenset((0,))
        if self._phrase.week:
            monday = self._today - timedelta(days=self._today.weekday())
            yield monday + timedelta(days=7 + weekday)
            return
        ahead = (weekday - self._today.weekday()) % 7
        yield self._today + timedelta(days=ahead)
        yield self._today + timedelta(days=ahead + 7)

    def _time(self, *, later_today: bool) -> time | None:
        """Return the time of day; None if its words contradict each other."""
        phrase = self._phrase
        if phrase.clock is None:
            return time(*_NINE) if phrase.part is None else time(phrase.part)
        hour, minute = phrase.clock
        if phrase.part is not None:
            return _in_part(hour, minute, phrase.part, face=phrase.face)
        if not phrase.face:
            return time(hour, minute)
        if self._has_day():
            return time(hour + 12 if hour < 6 else hour, minute)
        morning, evening = time(hour, minute), time(hour + 12, minute)
        return evening if later_today and morning <= self._local.time() else morning

    def _has_day(self) -> bool:
        phrase = self._phrase
        named = (
            phrase.date or phrase.month_day or phrase.weekdays or phrase.every or phrase.distance
        )
        return bool(named) or (phrase.days or 0) > 0


def _in_part(hour: int, minute: int, part: int, *, face: bool) -> time | None:
    """Return an hour of a part of the day: eight in the evening is 20:00."""
    if face:
        in_afternoon = part in (15, 19) or (part == 21 and hour >= 6) or (part == 12 and hour < 6)
        return time(hour + 12 if in_afternoon else hour, minute)
    if hour == 12 and part in (19, 21):
        return None  # midnight of which day?
    fits = {9: range(12), 12: range(10, 16), 15: range(12, 20), 19: range(15, 24)}
    return time(hour, minute) if hour in fits.get(part, range(24)) else None
