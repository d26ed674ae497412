"""Rules of recurrence agree with other implementations, in every zone and whatever the clocks do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import DAILY, MONTHLY, WEEKLY, YEARLY, rrule
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.schedules.rule_text import describe_rule
from bot.core.recurrence import (
    Cron,
    Every,
    InvalidRecurrence,
    Once,
    Rule,
    next_occurrence,
    rule_as_json,
    rule_from_json,
)

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
CHANGES = {
    "Europe/Berlin": [(2026, 3, 29), (2026, 10, 25)],
    "America/New_York": [(2026, 3, 8), (2026, 11, 1)],
    "Australia/Lord_Howe": [(2026, 4, 5), (2026, 10, 4)],  # by half an hour
    "Pacific/Chatham": [(2026, 4, 5), (2026, 9, 27)],  # at 2:45
    "America/Havana": [(2026, 3, 8), (2026, 11, 1)],  # from midnight to one, and back
    "Asia/Beirut": [(2026, 3, 29), (2026, 10, 25)],  # the hour before midnight comes twice
    "Africa/Casablanca": [(2026, 2, 15), (2026, 3, 22)],  # for Ramadan
    "Pacific/Apia": [(2011, 12, 30)],  # a day that never was
    "America/Scoresbysund": [(2024, 3, 31)],
    "Antarctica/Troll": [(2026, 3, 29), (2026, 10, 25)],  # by two hours
    "Asia/Kolkata": [(2026, 3, 29)],  # none
    "Asia/Kathmandu": [(2026, 3, 29)],
    "UTC": [(2026, 3, 29)],
}
zones = st.sampled_from(sorted(CHANGES))


def local(*parts: int) -> datetime:
    return datetime(*parts)  # noqa: DTZ001


@st.composite
def around_changes(draw: st.DrawFn) -> tuple[ZoneInfo, datetime]:
    """Return a zone, and a moment within two days of a change of its clocks."""
    zone = draw(zones)
    day = datetime(*draw(st.sampled_from(CHANGES[zone])), tzinfo=ZoneInfo(zone))
    shift = draw(st.integers(-2 * 86400, 2 * 86400))
    return ZoneInfo(zone), day.astimezone(UTC) + timedelta(seconds=shift)


@st.composite
def crons(draw: st.DrawFn) -> str:
    """Return a cron expression that matches within a few days."""
    minute = draw(st.sampled_from(["*/10", "0", "30", "15,45", "*/20", "5-7", "59"]))
    hour = draw(st.sampled_from(["*", "0", "1", "2", "3", "23", "1-3", "*/2", "0,2"]))
    weekday = draw(st.sampled_from(["*", "1-5", "0,6", "SUN", "SAT"]))
    return f"{minute} {hour} * * {weekday}"


def occurrences(rule: Rule, after: datetime, zone: ZoneInfo, most: int) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < most and (after_ := next_occurrence(rule, after, zone)) is not None:
        assert after_ > after, "occurrences increase"
        assert after_.utcoffset() == timedelta(0)
        found.append(after := after_)
    return found


def offsets(wall: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    early, late = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    return early, late


def in_zone(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return when a wall time is, by walking minute by minute over what the clocks jump over."""
    while offsets(wall, zone)[0] < offsets(wall, zone)[1]:
        wall += MINUTE
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def wall_times(expression: str) -> dict[str, set[int]]:
    """Return what each field of a simple cron expression matches, read by this test."""
    ranges = {"minute": range(60), "hour": range(24), "weekday": range(7)}
    names = {"SUN": "0", "SAT": "6"}
    fields = expression.split()
    matched = {}
    for name, text in zip(ranges, (fields[0], fields[1], fields[4]), strict=True):
        matched[name] = set()
        for part in text.split(","):
            first, _, step = names.get(part, part).partition("/")
            low, _, high = first.partition("-")
            span = ranges[name] if first == "*" else range(int(low), int(high or low) + 1)
            matched[name] |= set(span[:: int(step or 1)])
    return matched


def by_walking(expression: str, after: datetime, zone: ZoneInfo, days: int) -> list[datetime]:
    """Return a cron expression's moments for some days by looking at each wall time."""
    matched = wall_times(expression)
    found = set()
    first = after.astimezone(zone).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    for day, hour, minute in product(range(-1, days + 2), matched["hour"], matched["minute"]):
        wall = first + timedelta(days=day, hours=hour, minutes=minute)
        if (wall.weekday() + 1) % 7 in matched["weekday"]:
            found.add(in_zone(wall, zone))
            if len(matched["hour"]) == 24 and offsets(wall, zone)[0] > offsets(wall, zone)[1]:
                found.add(wall.replace(tzinfo=zone, fold=1).astimezone(UTC))
    return sorted(moment for moment in found if after < moment <= after + days * DAY)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(around_changes(), crons())
@example((ZoneInfo("Australia/Lord_Howe"), datetime(2026, 4, 4, 13, tzinfo=UTC)), "* * * * *")
@example((ZoneInfo("Asia/Beirut"), datetime(2026, 10, 24, 20, 30, tzinfo=UTC)), "30 * * * SAT")
def test_a_cron_expression_skips_and_doubles_nothing(
    zone_and_moment: tuple[ZoneInfo, datetime], expression: str
) -> None:
    zone, after = zone_and_moment
    expected = by_walking(expression, after, zone, days=2)
    assert occurrences(Cron(expression), after, zone, len(expected)) == expected


FREQUENCIES = {"days": DAILY, "weeks": WEEKLY, "months": MONTHLY, "years": YEARLY}


@given(
    around_changes(),
    st.sampled_from(sorted(FREQUENCIES)),
    st.integers(1, 5),
    st.integers(-900 * 1440, 3 * 1440),
)
def test_days_weeks_months_and_years_agree_with_dateutil(
    zone_and_moment: tuple[ZoneInfo, datetime], unit: str, count: int, minutes: int
) -> None:
    zone, after = zone_and_moment
    start = after.astimezone(zone).replace(tzinfo=None, fold=0) + minutes * MINUTE
    start = start.replace(second=0, microsecond=0)
    # Dateutil leaves out a month that lacks the day.
    start = start.replace(day=min(start.day, 28)) if unit in ("months", "years") else start
    theirs = rrule(FREQUENCIES[unit], interval=count, dtstart=start)
    near = after.astimezone(zone).replace(tzinfo=None) - 3 * DAY
    expected = [in_zone(wall, zone) for wall in islice(theirs.xafter(near, inc=True), 12)]
    expected = [moment for moment in expected if moment > after][:5]
    assert occurrences(Every(count, unit, start), after, zone, 5) == expected


@given(around_changes(), st.sampled_from(["minutes", "hours"]), st.integers(1, 500))
def test_minutes_and_hours_are_elapsed_time(
    zone_and_moment: tuple[ZoneInfo, datetime], unit: str, count: int
) -> None:
    zone, start = zone_and_moment
    step = timedelta(**{unit: count})
    rule = Every(count, unit, start)
    assert occurrences(rule, start - MINUTE, zone, 40) == [start + at * step for at in range(40)]
    assert next_occurrence(rule, start + 7 * step - MINUTE / 60, zone) == start + 7 * step
    assert next_occurrence(rule, start + 7 * step, zone) == start + 8 * step


moments = st.datetimes(local(1950, 1, 1), local(2100, 1, 1))
rules = st.one_of(
    moments.map(lambda at: Once(at.replace(tzinfo=UTC))),
    crons().map(Cron),
    st.builds(Every, st.integers(1, 400), st.sampled_from(sorted(FREQUENCIES)), moments),
    st.builds(
        Every,
        st.integers(1, 10_000),
        st.sampled_from(["minutes", "hours"]),
        moments.map(lambda at: at.replace(tzinfo=UTC)),
    ),
)


@given(rules, zones, moments)
def test_a_rule_survives_json(rule: Rule, zone: str, after: datetime) -> None:
    again = rule_from_json(json.loads(json.dumps(rule_as_json(rule))))
    assert again == rule
    assert describe_rule(again, ZoneInfo(zone)).startswith(("on ", "every ", "at "))
    occurrences(rule, after.replace(tzinfo=UTC), ZoneInfo(zone), 3)


VALUES = st.none() | st.integers() | st.floats() | st.text("*/-,#LW0123456789 ") | st.just([])
KEYS = st.sampled_from(["at", "expression", "count", "unit", "start"])


@given(st.sampled_from(["once", "cron", "every"]) | VALUES, st.dictionaries(KEYS, VALUES))
def test_what_is_no_rule_is_refused(kind: object, values: dict[str, object]) -> None:
    try:
        rule = rule_from_json({"kind": kind, "unit": "days", **values})
    except InvalidRecurrence:
        return
    next_occurrence(rule, datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("UTC"))


def test_what_comes_rarely_or_never_again_is_found_at_once() -> None:
    zone = ZoneInfo("Europe/Berlin")
    rare = Cron("0 0 */2 2 MON#5")  # a 29 February that is a Monday
    assert occurrences(rare, datetime(2072, 3, 1, tzinfo=UTC), zone, 1)[0].year == 2112
    end = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    start = local(2024, 2, 29)
    for rule in (Cron("0 0 * * *"), Every(1, "years", start), Once(start.replace(tzinfo=UTC))):
        assert next_occurrence(rule, end, zone) is None
