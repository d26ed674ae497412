"""Rules of times in words, as "every Monday at 08:00", in the language of whoever reads them. Pure."""

from __future__ import annotations

from datetime import datetime, time, tzinfo

from cronsim import CronSim

from bot.agent.texts import long_day
from bot.core.i18n import _, current_language, format_list, format_time, ngettext
from bot.core.recurrence import Cron, Every, Once, Rule

_SOME_YEAR = datetime(2026, 1, 1)  # noqa: DTZ001 - only the parts of an expression are read
_ENGLISH = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
_LAST_SAFE_DAY = 28
"""The last day that every month has."""


def describe_rule(rule: Rule, zone: tzinfo) -> str:
    """Return a rule in words."""
    if isinstance(rule, Once):
        local = rule.at.astimezone(zone)
        return _("on {day} at {time}", day=long_day(local), time=_time_of(local))
    if isinstance(rule, Cron):
        return _describe_cron(rule.expression)
    if rule.unit == "minutes":
        if rule.count == 1:
            return _("every minute")
        return ngettext("every {n} minutes", "every {n} minutes", rule.count)
    if rule.unit == "hours":
        if rule.count == 1:
            return _("every hour")
        return ngettext("every {n} hours", "every {n} hours", rule.count)
    at = _time_of(rule.start)
    return _describe_each(rule, at) if rule.count == 1 else _describe_every(rule, at)


def _describe_each(rule: Every, at: str) -> str:
    """Return a rule of each day, week, month or year in words."""
    start = rule.start
    if rule.unit == "days":
        return _("every day at {time}", time=at)
    if rule.unit == "weeks":
        return _("every {weekday} at {time}", weekday=_weekday(start.isoweekday() % 7), time=at)
    if rule.unit == "years":
        return _("every year on {day} at {time}", day=_day_of_year(start), time=at)
    day = _day_of_month(start.day)
    if start.day > _LAST_SAFE_DAY:
        return _("every month on the {day} or last day at {time}", day=day, time=at)
    return _("every month on the {day} at {time}", day=day, time=at)


def _describe_every(rule: Every, at: str) -> str:
    """Return a rule of every so many days, weeks, months or years in words.

    Singular and plural are the same in English; others write 21 days in another way than 22.
    """
    start, n = rule.start, rule.count
    if rule.unit == "days":
        return ngettext("every {n} days at {time}", "every {n} days at {time}", n, time=at)
    if rule.unit == "weeks":
        return ngettext(
            "every {n} weeks on {weekday} at {time}",
            "every {n} weeks on {weekday} at {time}",
            n,
            weekday=_weekday(start.isoweekday() % 7),
            time=at,
        )
    if rule.unit == "years":
        return ngettext(
            "every {n} years on {day} at {time}",
            "every {n} years on {day} at {time}",
            n,
            day=_day_of_year(start),
            time=at,
        )
    day = _day_of_month(start.day)
    if start.day > _LAST_SAFE_DAY:
        return ngettext(
            "every {n} months on the {day} or last day at {time}",
            "every {n} months on the {day} or last day at {time}",
            n,
            day=day,
            time=at,
        )
    return ngettext(
        "every {n} months on the {day} at {time}",
        "every {n} months on the {day} at {time}",
        n,
        day=day,
        time=at,
    )


def _time_of(when: datetime) -> str:
    return format_time(when, seconds=bool(when.second))


def _day_of_month(number: int) -> str:
    """Return an ordinal in English, and a plain number in other languages, which write the rest."""
    if current_language() != "en":
        return str(number)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number in (11, 12, 13) else ending}"


def _day_of_year(when: datetime) -> str:
    if current_language() == "en":
        return f"{when.day} {when:%B}"
    from babel.dates import format_skeleton

    return format_skeleton("MMMMd", when, locale=current_language())


def _weekday(number: int) -> str:
    """Return the name of a weekday, 0 being Sunday."""
    if current_language() == "en":
        return _ENGLISH[number]
    from babel.dates import get_day_names

    return str(get_day_names("wide", locale=current_language())[(number - 1) % 7])


def _weekdays(numbers: list[int]) -> str:
    names = [_weekday(number) for number in numbers]
    if current_language() != "en" or len(names) < 2:
        return format_list(names)
    return _("{first} and {second}", first=", ".join(names[:-1]), second=names[-1])


def _describe_cron(expression: str) -> str:
    """Return a cron expression in words; times of given days as the other rules write them."""
    parsed = CronSim(expression, _SOME_YEAR)
    _second, _minute, _hour, day, month, weekday = parsed.parts
    if len(parsed.minutes) == len(parsed.hours) == 1:
        at = _time_of(datetime.combine(_SOME_YEAR, time(min(parsed.hours), min(parsed.minutes))))
        if day == month == "*" and (text := _describe_weekdays(parsed, weekday, at)):
            return text
        if month == weekday == "*" and day == "L":
            return _("every month on the last day at {time}", time=at)
        if month == weekday == "*" and day in map(str, range(1, 32)):
            return _("every month on the {day} at {time}", day=_day_of_month(int(day)), time=at)
    if current_language() != "en":
        return _("at the times of {expression}", expression=f"`{expression}`")
    text = parsed.explain()
    return text[:1].lower() + text[1:]


def _describe_weekdays(parsed: CronSim, weekday: str, at: str) -> str:
    """Return an expression for some weekdays in words; empty if it names other days."""
    if weekday == "*":
        return _("every day at {time}", time=at)
    numbers = [number for number in parsed.weekdays if isinstance(number, int)]
    days = {number % 7 for number in numbers}
    if days == {1, 2, 3, 4, 5}:
        return _("every weekday at {time}", time=at)
    if not days or len(numbers) < len(parsed.weekdays):
        return ""
    named = _weekdays(sorted(days, key=lambda one: one or 7))
    return _("every {weekday} at {time}", weekday=named, time=at)
