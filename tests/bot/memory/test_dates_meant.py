"""Words for a date weigh as the date that they mean on the day of the question."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from bot.memory.session.recall import recall_passages
from bot.memory.session.relative_dates import resolve_relative_dates
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.tape.entries import message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

TODAY = date(2026, 11, 24)  # A Tuesday.


@pytest.mark.parametrize(
    ("question", "dates"),
    [
        ("What did I eat yesterday?", "23 November 2026"),
        ("Was habe ich vorgestern gesagt?", "22 November 2026"),
        ("Where was I last month?", "October 2026"),
        ("What did I buy last Tuesday?", "17 November 2026"),
        ("Where did we go last summer?", "2026"),
        ("Who came two weeks ago?", "10 November 2026"),
        ("Who came 3 months ago?", "August 2026"),
        ("Who came two weeks before the trip?", ""),
        ("What happened last ſunday, yeſterday, or fıve days ago?", ""),
    ],
)
def test_a_question_means(question, dates):
    assert resolve_relative_dates(question, TODAY) == dates


async def test_what_was_said_then_comes_first_and_the_rest_is_still_found(tmp_path):
    store = FileTapeStore(tmp_path, sync=False)
    await store.create_tape("a")
    days = ("2026-09-12", "2026-10-14", "2026-11-03")
    said = [
        message("user", text, sent=f"{day}T10:00:00+00:00")
        for at, day in enumerate(days)
        for text in (f"I run along the river, round {at}.", "It rained.", "Tea is ready.")
    ]
    await store.append_many("a", [*said, message("user", "Where did I run last month?")])
    found = await recall_passages(
        TapeService(store, "a"), MemorySnapshot(), "Where did I run last month?", days=365,
        now=datetime(2026, 11, 24, tzinfo=UTC), timezone=UTC,
    )  # fmt: skip
    assert found[0].when[:7] == "2026-10"
    assert {one.when[:7] for one in found} == {"2026-09", "2026-10", "2026-11"}
    await store.close()
