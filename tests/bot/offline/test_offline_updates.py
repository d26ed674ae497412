"""What changed is never told as it was: the newest comes first, in whatever words it was said."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus import Sender
from bot.offline.arithmetic import calculate_answer
from bot.offline.model import OfflineModel
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock

_DAY = 86_400.0
_FILE = Path(__file__).with_name("updates.jsonl")
CASES = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]
_BEFORE = re.compile(r"before that:|that changed\. before", re.IGNORECASE)


async def _talk(host: Host, chat: int, *texts: str, pause: float = _DAY) -> str:
    answer = ""
    for text in texts:
        sender = Sender(str(chat), "Ada")
        inbound = await host.channel.send(text, chat=f"c{chat}", sender=sender, private=True)
        answer = await host.channel.wait_for_answer(inbound)
        clock = host.clock
        assert isinstance(clock, ManualClock)
        clock.advance(pause)
    return answer


def _wrong(answer: str, right: list[str], old: list[str]) -> str:
    """Return what is wrong with an answer; what was so before may be told behind what is so."""
    current = _BEFORE.split(answer, maxsplit=1)[0].lower()
    if not right:
        return "" if "don't know" in current else "it should not be known"
    if not any(one.lower() in current for one in right):
        return "the new value is missing"
    first = min(current.find(one.lower()) for one in right if one.lower() in current)
    if len(_BEFORE.split(answer)) == 1 and any(one.lower() in current[:first] for one in old):
        return "the old value comes first"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("apart", "pause"),
    [(False, _DAY), (True, _DAY), (False, 0.0)],
    ids=["in one session", "in sessions of their own", "in one minute"],
)
async def test_what_was_said_last_is_told_first(tmp_path, apart, pause):
    wrong: list[tuple[dict[str, Any], str, str]] = []
    async with session_host(tmp_path, OfflineModel(), clock=ManualClock()) as host:
        for chat, case in enumerate(CASES):
            for said in case["said"]:
                await _talk(host, chat, said, *(["/new"] if apart else []), pause=pause)
            answer = await _talk(host, chat, case["ask"], pause=pause)
            if problem := _wrong(answer, case["right"], case["old"]):
                wrong.append((case, problem, answer))
    # What has no word in common with the question is not found by rules.
    unfound = ["Which medicine can't I take?"]
    # Nor do they know, once only memory has both, that who eats meat is no vegetarian.
    expected = ["Am I a vegetarian?", *unfound] if apart else unfound
    assert [case["ask"] for case, *_ in wrong] == expected


_SLOTS = [
    ("I take {} mg of aspirin daily.", "My doctor raised my aspirin to {} mg.", "How much aspirin do I take?"),
    ("Our rent is {} euros.", "The rent went up to {} euros.", "How much is our rent?"),
    ("I weigh {} kg.", "I'm down to {} kg.", "How much do I weigh?"),
    ("My son is {}.", "My son is {} now.", "How old is my son?"),
    ("My phone number is 0664 {}.", "I've got a new number: 0664 {}.", "What is my phone number?"),
    ("My locker is number {}.", "They switched my locker, it's number {} from now on.", "What is my locker?"),
    ("The meeting is in room {}.", "No wait, the meeting is in room {}.", "Where is the meeting?"),
]  # fmt: skip
_OTHER = ["I like tea.", "My aunt lives in Rome.", "It rained all day.", "/new", "What is my name?"]


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(
    slot=st.sampled_from(_SLOTS),
    values=st.lists(st.integers(10, 99), min_size=2, max_size=4, unique=True),
    between=st.lists(st.lists(st.sampled_from(_OTHER), max_size=2), min_size=4, max_size=4),
)
async def test_no_old_value_is_told_as_if_it_were_current(tmp_path_factory, slot, values, between):
    first, later, question = slot
    folder = tmp_path_factory.mktemp("home")
    async with session_host(folder, OfflineModel(), clock=ManualClock()) as host:
        await _talk(host, 1, first.format(values[0]), *between[0])
        for value, others in zip(values[1:], between[1:], strict=False):
            await _talk(host, 1, later.format(value), *others)
        answer = await _talk(host, 1, question)
    assert not _wrong(answer, [str(values[-1])], [str(one) for one in values[:-1]]), answer


@pytest.mark.parametrize(
    ("question", "known", "told"),
    [
        ("How old is my son?", "Your son was born in May 2017.", "9."),
        ("How old is my son?", "Your son was born in November 2017.", "8 or 9."),
        ("How old is Ben?", "Ben was born on 25 November 2017.", "8."),
        ("How old is Gran?", "Gran celebrated her 80th birthday in August 2015.", "91."),
        (
            "How many days until my exam?",
            "Your exam is on 3 December.",
            "9 days, until 2026-12-03.",
        ),
        (
            "How many days until my exam?",
            "Your exam is on January 2nd.",
            "39 days, until 2027-01-02.",
        ),
        ("How long have I been here?", "You came here in March 2020.", "6."),
        ("How many days until my exam?", "Your exam is on 30 February.", ""),
        ("How old is my son?", "Your son likes trains.", ""),
        ("When was my son born?", "Your son was born in May 2017.", ""),
        ("How long have I known Ben?", "Ben was born on 3 May 1990.", ""),
        ("How long have I had a visa?", "You have a visa until June 2030.", ""),
        ("How long do I drive to Rome?", "You drive to Rome on 1 December 2026.", ""),
        ("How many days until my exam?", "It moved from 3 December 2026 to 9 December 2026.", ""),
        ("How old is Mia?", "Gran turned 80 when Mia was born in 2020.", ""),
        ("How long have I lived in Linz?", "You moved to Linz on 1 May 2024.", "2."),
    ],
)
def test_simple_sums_with_dates(question, known, told):
    """Where it is not certain whose date it is, or which of two, nothing is told."""
    assert calculate_answer(question, known, date(2026, 11, 24)) == told


def test_a_day_without_a_year_is_the_next_after_it_was_said():
    asked, known = "How many days until my flight?", "Your flight is on 3 May."
    assert calculate_answer(asked, known, date(2026, 11, 24), date(2026, 4, 1)) == ""
    told = calculate_answer(asked, known, date(2026, 11, 24), date(2026, 11, 1))
    assert told == "160 days, until 2027-05-03."


@pytest.mark.parametrize(
    ("known", "later", "question"),
    [
        ("I live in Berlin.", "I lost my wallet in Berlin.", "Do I live in Berlin?"),
        ("I live in Berlin.", "I never left Berlin.", "Do I live in Berlin?"),
        ("I have a car.", "I have not sold my car.", "Do I have a car?"),
        ("I have a car.", "If I sold my car I would miss it.", "Do I have a car?"),
        ("I'm married to Tom.", "Tom returned from Rome.", "Am I married to Tom?"),
        ("I have a daughter called Mia.", "Mia finished school.", "Do I have a daughter?"),
        ("I work at Siemens.", "I left my umbrella at Siemens.", "Do I work at Siemens?"),
        ("Our rent is 900 euros.", "I bought a bike for 300 euros.", "How much is our rent?"),
        ("I weigh 80 kg.", "I bought 5 kg of potatoes, now I am tired.", "How much do I weigh?"),
    ],
)
async def test_what_only_sounds_like_a_change_is_none(tmp_path, known, later, question):
    async with session_host(tmp_path, OfflineModel(), clock=ManualClock()) as host:
        answer = await _talk(host, 1, known, later, question)
    assert "Before that" not in answer
    assert answer.find(known) <= answer.find(later) or later not in answer


@pytest.mark.parametrize(
    ("one", "other", "question"),
    [
        ("My mother lives in Rome.", "My father lives in Oslo.", "Where do my parents live?"),
        ("The car key is in the hall.", "The house key is in the drawer.", "Where is my key?"),
        ("I have the dentist at 3pm.", "My wife has the dentist at 5pm.", "What time is my dentist appointment?"),
    ],
)  # fmt: skip
async def test_two_things_are_not_told_as_one_that_changed(tmp_path, one, other, question):
    async with session_host(tmp_path, OfflineModel(), clock=ManualClock()) as host:
        answer = await _talk(host, 1, one, other, question)
    assert one in answer
    assert "Before that" not in answer


async def test_what_one_of_a_group_says_of_themselves_changes_nothing_of_another(tmp_path):
    ada, ben = Sender("1", "Ada"), Sender("2", "Ben")
    talk = [
        (ada, "I work at Siemens."),
        (ben, "I left Siemens last week."),
        (ada, "Where do I work?"),
    ]
    async with session_host(tmp_path, OfflineModel(), clock=ManualClock()) as host:
        for sender, text in talk:
            inbound = await host.channel.send(text, chat="g", sender=sender, private=False)
            answer = await host.channel.wait_for_answer(inbound)
            host.clock.advance(_DAY)
    assert "Siemens" in answer
    assert "left" not in answer


async def test_that_no_language_model_answers_is_said_once_in_a_conversation(tmp_path):
    async with session_host(tmp_path, OfflineModel()) as host:
        first = await _talk(host, 1, "hello")
        again = await _talk(host, 1, "/new", "hello")
    assert "not a language model" in first
    assert "Hello" in again
    assert "not a language model" not in again
