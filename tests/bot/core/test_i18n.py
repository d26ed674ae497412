"""Languages of clients, numbers, dates and directions."""

from datetime import UTC, date, datetime, timedelta

import pytest

from bot.core.i18n import (
    LANGUAGES,
    _,
    accepted_languages,
    environment_language,
    format_date,
    format_datetime,
    format_duration,
    format_list,
    format_money,
    format_number,
    format_time,
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


def test_english_writes_dates_that_are_read_alike_everywhere():
    assert format_datetime(MOMENT) == "2026-03-09 14:05"
    assert (format_date(MOMENT), format_time(MOMENT)) == ("2026-03-09", "14:05")
    assert format_number(1234567) == "1,234,567"
    assert format_money(1234.5) == "$1,234.50"


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_writes_everything(language):
    with use_language(language):
        assert all(
            [
                format_number(0.5),
                format_money(0),
                format_date(MOMENT, "full"),
                format_time(MOMENT, seconds=True),
                format_datetime(MOMENT, "long"),
                format_duration(timedelta(seconds=59)),
                format_list([]) == "",
                format_list(["a"]) == "a",
            ]
        )


def test_a_language_holds_for_its_block_alone():
    with use_language("de"):
        with use_language("en"):
            assert _("Try again") == "Try again"
        assert _("Try again") == "Noch einmal"
    assert _("Try again") == "Try again"


def test_a_message_without_values_is_shown_as_it_is():
    assert _("a plug-in's {summary} of 100 %") == "a plug-in's {summary} of 100 %"


def test_code_keeps_its_direction_in_text_from_right_to_left():
    with use_language("ar"):
        assert _("`/{name}` is not `{code}`", name="x", code="`") == (
            "\u200e`/x`\u200e is not \u200e```\u200e"
        )
