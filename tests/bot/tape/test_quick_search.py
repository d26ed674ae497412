"""A search that nobody asked for is cheap on any tape, and still finds what fits best."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from index_talk import opened
from searched_words import said, stored, words_of

from bot.tape.index import full_text_search as searching
from bot.tape.index import quick_gathering as gathering
from bot.tape.search import SearchQuery


def asked(text: str) -> SearchQuery:
    return SearchQuery(text, tapes=("a",), quick=True, limit=8)


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    """Words that more than 20 rows have are common."""
    monkeypatch.setattr(gathering, "RARE", 20)
    monkeypatch.setattr(searching, "RARE", 20)
    monkeypatch.setattr(gathering, "_ROOM", 60)
    monkeypatch.setattr(gathering, "_COMPARED", 50)


async def test_a_rare_word_is_found_among_common_ones_however_old_it_is():
    talk = [said("the boat has a plan", hour) for hour in range(1, 200)]
    store = await stored(a=[said("the boat is a zebra", 0), *talk])
    found = words_of(await store.search(asked("plan of the zebra boat")))
    assert found[0] == "the boat is a zebra"


async def test_a_misspelt_rare_word_is_found_among_common_ones():
    talk = [said(f"the {'boat' if hour % 2 else 'plan'} again", hour) for hour in range(1, 200)]
    store = await stored(a=[said("the boat is a zebra", 0), *talk])
    found = words_of(await store.search(asked("plan of the zebbra boat")))
    assert "the boat is a zebra" in found


async def test_of_common_words_those_that_have_both_come_first():
    talk = [said(f"the {'boat' if hour % 2 else 'plan'} again", hour) for hour in range(200)]
    talk[150] = said("the boat and its plan", 150)
    store = await stored(a=talk)
    for _ in range(2):  # What is common is counted once.
        found = words_of(await store.search(asked("which plan for the boat")))
        assert found[0] == "the boat and its plan"


async def test_what_few_attachments_say_leaves_room_for_the_newest_messages():
    files = [{"name": "plan.txt", "text": f"the boat and its plan {hour}"} for hour in range(15)]
    talk = [said(f"the boat and its plan {hour}", hour) for hour in range(10)]
    talk[3] = talk[3].with_meta(attachments=files)
    talk += [said(f"the {'boat' if hour % 2 else 'plan'} again", hour) for hour in range(10, 60)]
    store = await stored(a=talk)
    last = await store.version("a") - 5
    found = words_of(await store.search(replace(asked("which plan for the boat"), last=last)))
    assert sum("and its plan" in text for text in found) == 8


async def test_entries_are_read_by_id_as_they_are_read_in_order(tmp_path: Path):
    chance = random.Random(1)
    async with opened(tmp_path) as store:
        await store.create_tape("a")
        for number in range(60):
            texts = [
                f"{number} {'long ' * chance.choice((1, 30, 900))}"
                for _ in range(chance.choice((1, 2, 60)))
            ]
            await store.append_many("a", [said(text) for text in texts])
            if number == 30:
                await store.archive("a")
        entries = {entry.id: entry for entry in await store.read("a")}
        for _ in range(300):
            ids = set(chance.sample(sorted(entries), 3))
            read = await store.run_reading("a", lambda each, ids=ids: each(ids))
            assert read == [entries[one] for one in sorted(ids)]


def test_no_variable_of_the_environment_changes_a_search():
    program = "from bot.tape.index.ranking import rows_to_rank as most; print(most(5, quick=True))"
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "QR": "none", "SP": "none"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "24\n"
