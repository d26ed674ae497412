"""When an entry was said, as people and the model read it."""

from __future__ import annotations

import pytest

from bot.core.i18n import use_language
from bot.memory.records.transcript import format_entry_time, shown_entry_time
from bot.tape.entries import message


@pytest.mark.parametrize("year", ["0001", "0999", "1000", "9999"])
def test_any_year_that_a_time_stamp_can_have_is_shown(year):
    entry = message("user", "hi").with_meta(ts=f"{year}-05-04T10:09:08.7+00:00")
    assert format_entry_time(entry) == f"{year}-05-04 10:09"
    with use_language("de"):
        assert shown_entry_time(entry).startswith("04.05.")


def test_a_time_stamp_that_is_none_is_a_question_mark():
    assert shown_entry_time(message("user", "hi").with_meta(ts="soon")) == "?"
