"""Which texts hold what a person wants forgotten."""

from __future__ import annotations

import json

import pytest

from bot.memory.erasure.dependent_facts import dependent_fact_ids, repeats_fact
from bot.memory.erasure.erasure_query import parse_query
from bot.memory.erasure.text_matcher import TextMatcher, distinctive_words
from bot.memory.records.fact import Fact


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Rome", "We go to ROME tomorrow."),
        ("rome trip", "the trip that we made to Rome"),
        ('"rome trip"', "our Rome trip was long"),
        ("„mein Umzug“", "Über meinen und mein Umzug"),
        ("Müller", "Herr Mu\u0308ller"),
        ("Statkraft", "Statkraft's office"),
        ("zqxmar", "z\u200bqx\u00admar"),
        ("ｗｉｄｅ７", "wide7"),
        ("東京", "私は東京に住んでいます"),
        ("로마", "저는 로마에 살아요"),
        ("Иванова", "у ИВАНОВОЙ и Иванова"),
        ("café", "at the caf\\u00e9"),
        ("the cat", "a CAT."),
    ],
)
def test_a_text_that_holds_all_the_words_is_found(asked: str, text: str) -> None:
    found = parse_query(asked)
    assert found is not None
    assert found.matches([text])


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("rome trip", "the trip to Oslo"),
        ('"rome trip"', "a trip to Rome"),
        ("cat", "concatenate the catalogue"),
        ("東京", "京都と東北"),
        ("Ann", "Hannover and Anna"),
    ],
)
def test_a_text_that_does_not_is_not(asked: str, text: str) -> None:
    found = parse_query(asked)
    assert found is not None
    assert not found.matches([text])


def test_numbers_are_facts_and_a_quoted_number_is_a_word() -> None:
    assert parse_query("3, #4 12").facts == {3, 4, 12}  # type: ignore[union-attr]
    assert parse_query('"12"').phrases == (" 12 ",)  # type: ignore[union-attr]
    assert parse_query(" … ") is None


def test_common_words_are_left_out_unless_there_are_no_others() -> None:
    assert distinctive_words(["that", "i", "live", "in", "rome"]) == ["rome"]
    assert distinctive_words(["the", "and"]) == ["the", "and"]


def test_what_stays_takes_its_words_out_of_what_a_repetition_is_known_by() -> None:
    wording = TextMatcher()
    wording.add_text("My sister Zqxanna moved to Rome in 2024", passage=True)
    wording.remove_text("Rome is nice, my sister says")
    assert wording.words == {"zqxanna", "moved"}
    assert wording.matches("ask ZQXANNAS friend")
    assert wording.matches(json.dumps(json.dumps({"what": "Zqxanna"})))
    assert not wording.matches("Rome, 2024, your sister")


def test_a_word_within_a_longer_one_that_stays_is_no_sign_of_a_repetition() -> None:
    wording = TextMatcher()
    wording.add_text("allergie")
    wording.remove_text("mein Allergietest")
    assert wording.empty


def test_a_whole_fact_is_known_by_common_words_alone() -> None:
    wording = TextMatcher()
    wording.add_text("The user likes it here", passage=True)
    assert not wording.words - {"likes"}
    assert wording.matches("- the user likes it here.")


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("The user lives in Oslo.", "The user lives in Rome.", False),
        ("The user moved from Rome to Oslo.", "The user lives in Rome.", True),
        ("The user is 43.", "The user is 42.", False),
        ("The user is vegetarian now.", "The user is vegetarian.", True),
    ],
)
def test_a_newer_fact_repeats_an_older_one_by_its_names(new: str, old: str, expected: bool) -> None:
    assert repeats_fact(new, old) is expected


def test_a_chain_holds_what_a_fact_replaced_and_what_repeats_it() -> None:
    facts = {
        1: Fact(1, "The user lives in Rome."),
        2: Fact(2, "The user lives in Oslo.", supersedes=1),
        3: Fact(3, "The user left Oslo for Bergen.", supersedes=2),
        4: Fact(4, "The user lives in Paris.", supersedes=3),
    }
    assert dependent_fact_ids(facts[2], facts) == {1, 2, 3}
    assert dependent_fact_ids(facts[4], facts) == {1, 2, 3, 4}
    assert dependent_fact_ids(facts[1], facts) == {1}


@pytest.mark.parametrize("mark", ["„", "“", "«", "「"])
def test_quotation_marks_that_nothing_closes_hide_no_quotation(mark: str) -> None:
    asked = parse_query(mark * 200_000 + 'Oslo "rome trip"')
    assert asked is not None
    assert asked.phrases == (" rome trip ",)
    assert asked.words == ("oslo",)
