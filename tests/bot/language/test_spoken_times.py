"""People say times in their own words: what they mean is understood, and what is not sure is not guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spoken_phrases import NOWS, REMINDERS, TIMES
from unusual_phrases import UNUSUAL_REMINDERS, UNUSUAL_TIMES

from bot.core.recurrence import Cron, Every, Rule, next_occurrence
from bot.language.spoken_times import SpokenTime, find_reminder, find_time, unsure_zone


def rows(table: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the situation, the phrase, the rule and the rest of each row."""
    for situation, lines in table.items():
        for line in lines.strip().splitlines():
            phrase, rule, rest = (part.strip() for part in line.split("|"))
            yield situation, phrase, rule, rest


def situation_of(name: str) -> tuple[datetime, ZoneInfo]:
    text, zone = NOWS[name]
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)), ZoneInfo(zone)


def as_text(rule: Rule, zone: ZoneInfo) -> str:
    """Return a rule as the tables write it."""
    if isinstance(rule, Cron):
        return f"cron {rule.expression}"
    if isinstance(rule, Every):
        start = rule.start.astimezone(zone) if rule.start.tzinfo else rule.start
        return f"every {rule.count} {rule.unit} from {start:%Y-%m-%d %H:%M}"
    return f"{rule.at.astimezone(zone):%Y-%m-%d %H:%M}"


def said(found: SpokenTime | None, zone: ZoneInfo) -> tuple[str, str]:
    return (as_text(found.rule, zone), found.rest) if found else ("", "")


@pytest.mark.parametrize(
    ("situation", "phrase", "rule", "rest"), [*rows(TIMES), *rows(UNUSUAL_TIMES)]
)
def test_a_time_is_found(situation: str, phrase: str, rule: str, rest: str) -> None:
    """A time and the rest of the text are what a person means."""
    now, zone = situation_of(situation)
    assert said(find_time(phrase, now, zone), zone) == (rule, rest)


@pytest.mark.parametrize(
    ("situation", "phrase", "rule", "rest"), [*rows(REMINDERS), *rows(UNUSUAL_REMINDERS)]
)
def test_a_reminder_is_found(situation: str, phrase: str, rule: str, rest: str) -> None:
    """A request to be reminded says when and of what."""
    now, zone = situation_of(situation)
    assert said(find_reminder(phrase, now, zone), zone) == (rule, rest)


PIECES = sorted(
    {
        word
        for table in (TIMES, REMINDERS, UNUSUAL_TIMES, UNUSUAL_REMINDERS)
        for _, phrase, *_ in rows(table)
        for word in phrase.split()
    }
)


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map(" ".join),
    st.sampled_from(sorted(NOWS)),
)
def test_whatever_is_said_gives_a_time_to_come_or_none(text: str, situation: str) -> None:
    """No words make it fail, and each time that is found lies ahead."""
    now, zone = situation_of(situation)
    for found in (find_time(text, now, zone), find_reminder(f"remind me {text}", now, zone)):
        if found:
            moment = next_occurrence(found.rule, now, zone)
            assert moment is not None
            assert moment > now
            assert all(word in text for word in found.rest.split())


@given(st.datetimes(datetime(2026, 2, 11, 10, 1), datetime(2027, 12, 31)))  # noqa: DTZ001
def test_a_date_with_its_time_is_read_as_written(wall: datetime) -> None:
    """Each way to write a date and a time gives that moment."""
    now, zone = situation_of("berlin")
    wall = wall.replace(second=0, microsecond=0)
    for phrase in (
        f"{wall:%Y-%m-%d %H:%M}",
        f"on {wall.day} {wall:%B %Y} at {wall:%H:%M}",
        f"{wall:%B} {wall.day}, {wall.year} at {wall:%I:%M %p}",
        f"am {wall.day}.{wall.month}.{wall.year} um {wall:%H:%M} Uhr",
        f"on {wall:%A}, {wall.day} {wall:%B} {wall.year} at {wall:%H:%M}",
    ):
        found = find_time(f"{phrase} tea", now, zone)
        expected = (wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone), "tea")
        if (wall.month, wall.day) not in ((3, 29), (3, 28), (10, 25), (10, 31)):
            assert found
            assert said(found, zone) == (f"{expected[0]:%Y-%m-%d %H:%M}", "tea"), phrase


def test_the_page_for_people_says_what_is_understood() -> None:
    """Each example of a time in docs/times.md is one, and each example of none is none."""
    now, zone = situation_of("berlin")
    page = Path(__file__).parents[3].joinpath("docs", "times.md").read_text(encoding="utf-8")
    understood = [
        example
        for line in page.splitlines()
        if line.startswith("| `")
        for example in re.findall(r"`([^`]+)`", line.split("|")[1])
    ]
    unsure = re.findall(r"`([^`]+)`", page.partition("not guessed:")[2].partition(", a day")[0])
    assert len(understood) > 30
    assert [one for one in understood if find_time(one, now, zone) is None] == []
    assert len(unsure) > 5
    assert [one for one in unsure if find_time(one, now, zone) is not None] == []


NOVEMBER = datetime(2026, 11, 12, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment", "rest", "zone"),
    [
        ("at 17:00 UTC to deploy", "2026-11-12T17:00", "to deploy", ""),
        ("17:00 UTC tomorrow deploy", "2026-11-13T17:00", "deploy", ""),
        ("at UTC 17:00 deploy", "2026-11-12T17:00", "deploy", ""),
        ("tomorrow 8am PST call", "2026-11-13T16:00", "call", ""),
        ("um 17 Uhr MEZ anrufen", "2026-11-12T16:00", "anrufen", ""),
        ("17:00+02:00 call", "2026-11-12T15:00", "call", ""),
        ("17:00 (UTC) deploy", "2026-11-12T17:00", "deploy", ""),
        ("17:00 GMT-3 deploy", "2026-11-12T20:00", "deploy", ""),
        ("2026-12-24 17:00 America/New_York", "2026-12-24T22:00", "", ""),
        ("2026-12-24T17:00[Europe/Paris]", "2026-12-24T16:00", "", ""),
        ("at 5 pm new york time call Bob", "2026-11-12T22:00", "call Bob", ""),
        ("every day at 17:00 UTC deploy", "2026-11-12T17:00", "deploy", "UTC"),
        ("every Monday at 8am PST call", "2026-11-16T16:00", "call", "Etc/GMT+8"),
        (
            "tomorrow at 9 join the 17:00 UTC call",
            "2026-11-13T08:00",
            "join the 17:00 UTC call",
            "",
        ),
        ("at 17:00 check UTC logs", "2026-11-12T16:00", "check UTC logs", ""),
        ("at 5pm ET call Bob", "2026-11-12T22:00", "call Bob", ""),
        ("at 5pm Eastern call Bob", "2026-11-12T22:00", "call Bob", ""),
        ("at 5pm Pacific", "2026-11-13T01:00", "", ""),
        ("at 17:00 Zulu deploy", "2026-11-12T17:00", "deploy", ""),
        ("um 17 Uhr New Yorker Zeit anrufen", "2026-11-12T22:00", "anrufen", ""),
        ("17:00 МСК позвонить", "2026-11-12T14:00", "позвонить", ""),
        ("tomorrow at 9am Central Station", "2026-11-13T08:00", "Central Station", ""),
        ("at 17:00 story time", "2026-11-12T16:00", "story time", ""),
        ("tomorrow at 9am CT scan", "2026-11-13T08:00", "CT scan", ""),
        ("17:00 IST call", None, "IST", ""),
        ("17:00 XST call", None, "XST", ""),
        ("at 17:00 Springfield time call", None, "Springfield time", ""),
        ("17:00 Europe/Nowhere call", None, "Europe/Nowhere", ""),
        ("every day at 17:00 +05:30 deploy", None, "+05:30", ""),
    ],
)
def test_a_time_is_in_the_zone_that_is_named_beside_it_or_is_refused(text, moment, rest, zone):
    berlin = ZoneInfo("Europe/Berlin")
    found = find_time(text, NOVEMBER, berlin)
    if moment is None:
        assert found is None
        assert unsure_zone(text) == rest
        return
    assert found is not None
    where = ZoneInfo(found.zone) if found.zone else berlin
    expected = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert next_occurrence(found.rule, NOVEMBER, where) == expected
    assert (found.rest, found.zone) == (rest, zone)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("every month on the 31st", "2026-11-30 2026-12-31 2027-01-31 2027-02-28"),
        ("every month on the 30th", "2026-11-30 2026-12-30 2027-01-30 2027-02-28"),
        ("every month on the 12th at 10:00", "2026-12-12 2027-01-12"),
        ("every month on the 12th at 20:00", "2026-11-12 2026-12-12"),
        ("every 3 months on the 31st", "2026-11-30 2027-02-28 2027-05-31 2027-08-31"),
        ("every year on 29 February", "2027-02-28 2028-02-29 2029-02-28"),
        ("every month on the last day", "2026-11-30 2026-12-31"),
        ("every month on the 32nd", ""),
        ("every year on 31 November", ""),
    ],
)
def test_the_first_occurrence_is_found_as_the_next_ones_are(text, days):
    found = find_time(text, NOVEMBER, UTC)
    moment, told = NOVEMBER, []
    for _ in days.split():
        assert found is not None
        after = next_occurrence(found.rule, moment, UTC)
        assert after is not None
        told.append(f"{after:%Y-%m-%d}")
        moment = after
    assert (" ".join(told), found is None) == (days, not days)
