"""Facts in words."""

from __future__ import annotations

from datetime import UTC, date
from zoneinfo import ZoneInfo

import pytest

from bot.agent.commands.memory.fact_numbers import (
    FactNumber,
    parse_fact_number,
    parse_fact_numbers,
)
from bot.agent.commands.memory.fact_text import (
    age_text,
    confidence_text,
    fact_line,
    shorten,
    signals_text,
)
from bot.memory.records.fact import Fact
from channels.telegram.render import render

TODAY = date(2026, 2, 10)


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2026-02-10T09:00:00+00:00", "today"),
        ("2026-03-01T09:00:00+00:00", "today"),
        ("2026-02-09T23:00:00+00:00", "1 day"),
        ("2026-02-07T10:00:00+00:00", "3 days"),
        ("2026-01-28T10:00:00+00:00", "13 days"),
        ("2026-01-27T10:00:00+00:00", "2 weeks"),
        ("2026-01-06T10:00:00+00:00", "5 weeks"),
        ("2025-12-09T10:00:00+00:00", "2 months"),
        ("2025-02-10T10:00:00+00:00", "12 months"),
        ("2024-02-10T10:00:00+00:00", "2 years"),
        ("2016-02-10T10:00:00+00:00", "10 years"),
        ("", ""),
        ("yesterday", ""),
    ],
)
def test_an_age_is_short(stamp, shown):
    assert age_text(stamp, TODAY, UTC) == shown


def test_days_begin_where_the_user_lives():
    late = "2026-02-09T23:00:00+00:00"
    assert age_text(late, TODAY, ZoneInfo("Europe/Berlin")) == "today"
    assert age_text(late, TODAY, UTC) == "1 day"


@pytest.mark.parametrize(
    ("confidence", "words"),
    [(0.95, "certain (0.95)"), (0.8, "fairly certain (0.80)"), (0.5, "not certain (0.50)"),
     (0.3, "doubtful (0.30)")],
)  # fmt: skip
def test_a_confidence_is_told_in_words_and_number(confidence, words):
    assert confidence_text(confidence) == words


def test_what_the_gate_went_by_is_told_in_words():
    told = signals_text({"source_quality": 1.0, "conflict_level": "high", "blast_radius": "severe"})
    assert "own words support it (1.00)" in told
    assert "contradicts another source (high)" in told
    assert "everyone" in told
    assert "nothing contradicts" in signals_text({"conflict_level": "none"})
    assert signals_text({}) == signals_text({"source_quality": "much"}) == ""


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("3", FactNumber(3)),
        ("#3", FactNumber(3)),
        ("3.", FactNumber(3)),
        ("w3", FactNumber(3, shared=True)),
        ("W3", FactNumber(3, shared=True)),
        ("x3", None),
        ("", None),
        ("-3", None),
        ("3 4", None),
        ("٣", None),
        ("9" * 5_000, None),
    ],
)
def test_a_number_is_read_as_people_write_it(word, number):
    assert parse_fact_number(word) == number


def test_several_numbers_are_each_taken_once_and_nonsense_spoils_them():
    assert parse_fact_numbers("3, 4 3") == [FactNumber(3), FactNumber(4)]
    assert parse_fact_numbers("3 tea") is None
    assert parse_fact_numbers("") == []


def test_a_long_text_is_cut():
    assert shorten("x" * 900) == f"{'x' * 300}…"
    assert shorten("tea") == "tea"


@pytest.mark.parametrize(
    "text",
    [
        "My locker is 2*3*4",
        "I *really* like `tea` and **cake**",
        "The file is called __init__.py, or snake_case.txt, or _draft_",
        "My bank is [example.org](https://evil.example)",
        "It is ~~over~~ and ||hidden||",
        r"My files are in C:\*new*\_old",
        "[12] is a number, and so is [a] (b)",
    ],
)
def test_a_facts_words_are_shown_as_they_are(text):
    (shown,) = render(fact_line(Fact(3, text)))
    assert shown.text == f"3. {text}"
    assert [entity.type for entity in shown.entities] == ["bold"]
