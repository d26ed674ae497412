"""Times are read in each language of the program as a person means them, and refused where that is not sure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spoken_phrases import FORMS, MEANINGS, PHRASES

from bot.agent.schedules.rule_text import describe_rule
from bot.agent.schedules.times.reading import SpokenTime, Unread, read_time, times_in
from bot.agent.schedules.times.words import EXAMPLES
from bot.core.i18n import LANGUAGES, use_language
from bot.core.recurrence import Cron, Every, Once, Rule, moment_of, next_occurrence

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 2, 11, 10, 0, tzinfo=BERLIN)
NOVEMBER = datetime(2026, 11, 12, 12, 0, tzinfo=UTC)
FORM_ROWS = [
    (language, form.strip(), MEANINGS[name.strip()])
    for language, lines in FORMS.items()
    for line in lines.strip().splitlines()
    for name, _, forms in [line.partition(":")]
    for form in forms.split(";")
]


def as_text(rule: Rule, zone: ZoneInfo) -> str:
    """Return a rule as the tables write it."""
    if isinstance(rule, Cron):
        return f"cron {rule.expression}"
    if isinstance(rule, Every):
        start = rule.start.astimezone(zone) if rule.start.tzinfo else rule.start
        return f"every {rule.count} {rule.unit} from {start:%Y-%m-%d %H:%M}"
    return f"{rule.at.astimezone(zone):%Y-%m-%d %H:%M}"


def said(text: str, now: datetime = NOW, zone: ZoneInfo = BERLIN) -> tuple[str, str]:
    found = read_time(text, now, zone)
    return (as_text(found.rule, zone), found.rest) if isinstance(found, SpokenTime) else ("", "")


@pytest.mark.parametrize("language", FORMS)
def test_each_language_has_each_form_before_and_behind_the_text(language):
    """Whoever has set another language may write it, too."""
    assert FORMS.keys() == LANGUAGES.keys() == EXAMPLES.keys()
    with use_language(language):
        assert [said(f"{one} x")[1] for one in EXAMPLES[language]] == ["x"] * 4
    for own, form, meaning in FORM_ROWS:
        for spoken in (language, "en") if own == language else ():
            with use_language(spoken):
                assert said(form) == (meaning, "")
                assert said(f"{form} Anna") == said(f"Anna {form}") == (meaning, "Anna")


@pytest.mark.parametrize("language", PHRASES)
def test_a_phrase_means_what_a_person_means_by_it_or_is_not_sure(language):
    with use_language(language):
        for line in PHRASES[language].strip().splitlines():
            phrase, rule, rest = (part.strip() for part in line.split("|"))
            assert (phrase, *said(phrase)) == (phrase, rule, rest)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("buy milk", "none"),
        ("tomorrow at 9 or 10", "unclear"),
        ("every day at 8 take antibiotics until Friday", "unclear"),
        ("vendredi prochain à 17h", "unclear"),
        ("每 4 个月，1 06:25", "unclear"),
        ("at 25:00", "unclear"),
        ("on 5/6 at 16:00", "two_days"),
        ("on 31 April", "no_day"),
        ("31 апреля в 9", "no_day"),
        ("4月31日", "no_day"),
        ("on Monday 3 March", "no_day"),
        ("every month on the 32nd", "no_day"),
        ("on 3 January 2026", "past"),
        ("today at 8:00 am", "past"),
        ("2025-02-01T17:00+01:00", "past"),
        ("every day at 17:00 +05:30", "zone"),
    ],
)
def test_what_is_no_time_for_sure_is_refused_with_its_reason(text, why):
    found = read_time(text, NOW, BERLIN)
    assert isinstance(found, Unread)
    assert found.why == why


@pytest.mark.parametrize(
    ("text", "moment", "rest", "zone"),
    [
        ("17:00 UTC tomorrow deploy", "2026-11-13T17:00", "deploy", ""),
        ("at UTC 17:00 deploy", "2026-11-12T17:00", "deploy", ""),
        ("tomorrow 8am PST call", "2026-11-13T16:00", "call", ""),
        ("um 17 Uhr MEZ anrufen", "2026-11-12T16:00", "anrufen", ""),
        ("17:00+02:00 call", "2026-11-12T15:00", "call", ""),
        ("17:00 (UTC) deploy", "2026-11-12T17:00", "deploy", ""),
        ("17:00 GMT-3 deploy", "2026-11-12T20:00", "deploy", ""),
        ("2026-12-24T17:00[Europe/Paris]", "2026-12-24T16:00", "", ""),
        ("2026-12-24T17:00Z x", "2026-12-24T17:00", "x", ""),
        ("tomorrow at 5 pm new york time call Bob", None, "new york time", ""),
        ("every day at 17:00 UTC deploy", "2026-11-12T17:00", "deploy", "UTC"),
        ("every Monday at 8am PST call", "2026-11-16T16:00", "call", "Etc/GMT+8"),
        (
            "tomorrow at 9 join the 17:00 UTC call",
            "2026-11-13T08:00",
            "join the 17:00 UTC call",
            "",
        ),
        ("at 17:00 check UTC logs", "2026-11-12T16:00", "check UTC logs", ""),
        ("at 5pm Pacific", "2026-11-13T01:00", "", ""),
        ("um 17 Uhr New Yorker Zeit anrufen", None, "New Yorker Zeit", ""),
        ("17:00 МСК позвонить", "2026-11-12T14:00", "позвонить", ""),
        ("tomorrow at 9am Central Station", "2026-11-13T08:00", "Central Station", ""),
        ("at 17:00 story time", "2026-11-12T16:00", "story time", ""),
        ("17:00 IST call", None, "IST", ""),
        ("at 17:00 Springfield time call", None, "Springfield time", ""),
        ("17:00 Europe/Nowhere call", None, "Europe/Nowhere", ""),
        ("cet après-midi à 15h Anna", "2026-11-12T14:00", "Anna", ""),
    ],
)
def test_a_time_is_in_the_zone_that_is_named_beside_it_or_is_refused(text, moment, rest, zone):
    found = read_time(text, NOVEMBER, BERLIN)
    if moment is None:
        assert found == Unread("zone", rest)
        return
    assert isinstance(found, SpokenTime)
    where = ZoneInfo(found.zone) if found.zone else BERLIN
    expected = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert next_occurrence(found.rule, NOVEMBER, where) == expected
    assert (found.rest, found.zone) == (rest, zone)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("every month on the 31st", "2026-11-30 2026-12-31 2027-01-31 2027-02-28"),
        ("jeden Monat am 30.", "2026-11-30 2026-12-30 2027-01-30 2027-02-28"),
        ("every month on the 12th at 10:00", "2026-12-12 2027-01-12"),
        ("every month on the 12th at 20:00", "2026-11-12 2026-12-12"),
        ("every 3 months on the 31st", "2026-12-31 2027-03-31 2027-06-30 2027-09-30"),
        ("every year on 29 February", "2027-02-28 2028-02-29 2029-02-28"),
        ("毎月末日", "2026-11-30 2026-12-31"),
    ],
)
def test_a_day_that_a_month_does_not_have_is_its_last(text, days):
    found = read_time(text, NOVEMBER, UTC)
    assert isinstance(found, SpokenTime)
    moment, told = NOVEMBER, []
    for _ in days.split():
        after = next_occurrence(found.rule, moment, UTC)
        assert after is not None
        told.append(f"{after:%Y-%m-%d}")
        moment = after
    assert " ".join(told) == days


@pytest.mark.parametrize(
    ("now", "zone", "text", "expected"),
    [
        ("2026-03-28T12:00", "Europe/Berlin", "tomorrow at 2:30 am", "2026-03-29 03:00"),
        ("2026-03-28T12:00", "Europe/Berlin", "in 24 hours", "2026-03-29 13:00"),
        ("2026-03-28T12:00", "Europe/Berlin", "in 1 day", "2026-03-29 12:00"),
        ("2026-12-31T23:50", "Asia/Kolkata", "on 29 February", "2028-02-29 09:00"),
        ("2026-02-14T21:30", "America/New_York", "tonight", ""),
        ("2026-02-14T21:30", "America/New_York", "tonight at 11", "2026-02-14 23:00"),
    ],
)
def test_a_time_follows_the_clock_of_the_zone(now, zone, text, expected):
    where = ZoneInfo(zone)
    assert said(text, datetime.fromisoformat(now).replace(tzinfo=where), where)[0] == expected


WALLS = st.datetimes(datetime(2026, 2, 12), datetime(2027, 12, 31)).map(  # noqa: DTZ001
    lambda wall: wall.replace(second=0, microsecond=0)
)


@given(WALLS, st.integers(1, 40), st.sampled_from(sorted(LANGUAGES)))
def test_what_the_program_says_of_a_time_is_read_as_that_time(wall, count, language):
    """The words of a confirmation, with its zone, say the same in another zone."""
    elapsed = wall.replace(tzinfo=UTC)
    rules: list[Rule] = [
        Once(moment_of(wall, BERLIN)),
        *(Every(count, unit, elapsed) for unit in ("minutes", "hours")),
        *(Every(count, unit, wall) for unit in ("days", "weeks", "years")),
        # In Chinese and Japanese, a day of every third month is told as a bare number.
        Every(1 if language in ("zh", "ja") else min(count, 11), "months", wall),
        Cron(f"{wall.minute} {wall.hour} * * 1-5"),
        Cron(f"{wall.minute} {wall.hour} * * 1,3,5"),
        Cron(f"{wall.minute} {wall.hour} L * *"),
    ]
    with use_language(language):
        for rule in rules:
            told = f"{describe_rule(rule, BERLIN)} (Europe/Berlin)"
            found = read_time(told, NOW, ZoneInfo("America/New_York"))
            assert isinstance(found, SpokenTime), told
            assert describe_rule(found.rule, BERLIN) == describe_rule(rule, BERLIN)


@given(st.sampled_from(FORM_ROWS), st.integers(2, 999))
def test_numbers_in_a_form_are_read_as_they_are(row, number):
    language, form, meaning = row
    if meaning == MEANINGS["20"] and re.search(r"20|٢٠", form):
        with use_language(language):
            expected = f"{NOW + timedelta(minutes=number):%Y-%m-%d %H:%M}"
            assert said(form.replace("20", str(number)))[0] == expected


PIECES = sorted({word for _, form, _ in FORM_ROWS for word in form.split()})


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map(" ".join),
    st.sampled_from(sorted(LANGUAGES)),
)
def test_whatever_is_said_gives_a_time_to_come_or_none(text, language):
    """No words make it fail, each time that is found lies ahead, and what is left was said."""
    with use_language(language):
        found = read_time(text, NOW, BERLIN)
        ahead = list(times_in(text, NOW, BERLIN))
    for one in [*ahead, *([found] if isinstance(found, SpokenTime) else [])]:
        where = ZoneInfo(one.zone) if one.zone else BERLIN
        moment = next_occurrence(one.rule, NOW, where)
        assert moment is not None
        assert moment > NOW


def test_a_message_says_its_times_wherever_they_stand():
    def times(text: str) -> set[str]:
        return {as_text(one.rule, BERLIN) for one in times_in(text, NOW, BERLIN)}

    assert "2026-02-12 17:00" in times("Please remind me tomorrow at 17:00 to call Ann")
    assert "2026-02-12 17:00" in times("erinnere mich morgen daran, um 17:00 Ann anzurufen")
    assert not times("remind me every day until Friday to call Ann")


def test_the_page_for_people_says_what_is_understood():
    """Each example of a time in docs/times.md is one, and each example of none is none."""
    page = Path(__file__).parents[4].joinpath("docs", "times.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    understood = [one for row in rows for one in re.findall(r"`([^`]+)`", row.split("|")[1])]
    unsure = re.findall(r"`([^`]+)`", page.partition("not guessed:")[2].partition(", a day")[0])
    assert len(understood) > 30
    assert [one for one in understood if said(one) == ("", "")] == []
    assert len(unsure) > 5
    assert [one for one in unsure if said(one) != ("", "")] == []
