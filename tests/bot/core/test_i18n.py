"""Languages of clients, numbers, dates and directions."""

from datetime import UTC, date, datetime, timedelta

import pytest

from bot.core.i18n import (
    _,
    accepted_languages,
    environment_language,
    format_date,
    format_datetime,
    format_duration,
    format_list,
    format_money,
    format_number,
    match_language,
    ngettext,
    use_language,
)

MOMENT = datetime(2026, 3, 9, 14, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        (["pt-BR"], "pt"),
        (["zh_Hans_CN"], "zh"),
        (["tlh", "nl", "de-AT"], "de"),
        ([""], None),
        (["*"], None),
        (["../../de"], None),
    ],
)
def test_a_client_states_its_language_by_a_tag(tags, code):
    assert match_language(tags) == code


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("de-CH, fr;q=0.8", "de"),
        ("nl;q=0.9, fr;q=0.2, it;q=0.5", "it"),
        ("en;q=0, ru", "ru"),
        ("de;q=many", ""),
        ("", ""),
        (",;q=,;" * 9_999, ""),
    ],
)
def test_a_browser_states_its_languages_by_preference(header, code):
    assert accepted_languages(header) == code


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"LANG": "de_DE.UTF-8"}, "de"),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "fr_FR@euro"}, "fr"),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, ""),
        ({"LC_ALL": "", "LANG": "uk_UA"}, "uk"),
        ({}, ""),
    ],
)
def test_a_terminal_states_its_language_by_variables(environment, code):
    assert environment_language(environment) == code


def test_german_writes_numbers_dates_and_lists_in_its_own_way():
    with use_language("de"):
        assert format_number(1234567.5) == "1.234.567,5"
        assert format_money(0.1234, 4) == "0,1234\xa0$"
        assert format_date(date(2026, 3, 9)) == "09.03.2026"
        assert format_datetime(MOMENT, "short") == "09.03.26, 14:05"
        assert format_duration(timedelta(hours=3, minutes=2)) == "3 Stunden"
        assert format_list(["a", "b", "c"], "or") == "a, b oder c"
        assert ngettext(
            "The code is valid for {n} minute.", "The code is valid for {n} minutes.", 1_000
        ) == ("Der Code gilt 1.000 Minuten.")


def test_code_keeps_its_direction_in_text_from_right_to_left():
    with use_language("ar"):
        assert _("`/{name}` is not `{code}`", name="x", code="`") == (
            "\u200e`/x`\u200e is not \u200e```\u200e"
        )
