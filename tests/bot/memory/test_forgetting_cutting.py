"""Cutting out of a message what goes: whole clauses, or single words, and never on a guess."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.erasure.erasure_query import parse_query
from bot.memory.erasure.message_redaction import MessageRedactor
from bot.memory.records.tombstones import ERASED_TEXT

TOWN, OLA = "The user lives in Warsaw.", "The user's sister Ola is a nurse."


@pytest.mark.parametrize(
    ("text", "left", "quote"),
    [
        (
            "I live in Warsaw and my sister Ola is a nurse.",
            "[erased] and my sister Ola is a nurse.",
            "my sister Ola is a nurse.",
        ),
        (
            "My sister Ola is a nurse, and I live in WARSAW!",
            "My sister Ola is a nurse, and [erased]!",
            "My sister Ola is a nurse",
        ),
        (
            "Warsaw! Warsaw, Warsaw and Warsaw. It rains.",
            "[erased]. It rains.",
            "It rains.",
        ),
        (
            "My sister Ola in Warsaw is a nurse.",
            "My sister Ola in [erased] is a nurse.",
            "",
        ),
        ("It rains.", "It rains.", "It rains."),
        ("I live in Warsaw.", None, ""),
        ("", None, ""),
    ],
)
def test_a_clause_that_says_what_goes_goes_and_others_stay(text, left, quote):
    cutter = MessageRedactor((TOWN,), (OLA,))
    assert cutter.redact(text) == left
    assert cutter.redact_quote(text, left or "") == quote
    if left is not None:
        assert cutter.redact(left) == left
        assert quote in left


def test_words_that_were_asked_for_go_though_no_fact_says_them():
    asked = parse_query('"old address" Xy')
    assert asked is not None
    cutter = MessageRedactor((), (OLA,), asked.text_matcher())
    assert cutter.redact("My old address is there, Ola is here.") == "[erased], Ola is here."


def test_a_sentence_without_anything_that_stays_goes_whole():
    cutter = MessageRedactor((TOWN,), (OLA,))
    assert cutter.redact("In Warsaw, by the river. It rains.") == "[erased]. It rains."


def test_of_the_message_that_asks_what_asks_goes_too():
    asks = "She turned 7 on Sunday. And please forget the pen."
    cutter = MessageRedactor((TOWN,))
    assert cutter.redact(asks, asking=True) == "She turned 7 on Sunday. [erased]."
    assert cutter.redact(asks) == asks
    assert (
        cutter.redact_quote(asks, "She turned 7 on Sunday. [erased].") == "She turned 7 on Sunday"
    )


def test_in_a_script_without_spaces_sentences_are_told_apart():
    cutter = MessageRedactor(("用户住在华沙。",), ("用户的姐姐是护士。",))
    assert cutter.redact("我住在华沙。我姐姐是护士。") == "[erased]。我姐姐是护士。"


words = st.sampled_from(
    ["Warsaw", "warsaw's", "Ola", "nurse", "rain", " and ", ", ", ". ", "\n", " ", "[erased]", "é"]
)


@given(st.lists(words, max_size=30).map("".join) | st.text(max_size=60))
def test_nothing_of_it_is_left_and_cutting_again_changes_nothing(text):
    cutter = MessageRedactor((TOWN,), (OLA,))
    left = cutter.redact(text)
    told = left or ""
    assert "warsaw" not in told.casefold()
    if left is not None:
        assert cutter.redact(left) == left
    quote = cutter.redact_quote(text, told)
    assert ERASED_TEXT not in quote
    assert quote in told or not quote or left is None


@pytest.mark.parametrize("unit", [" ", "and ", " and", ",", ". ", "Warsaw ", "a", " \n", "。"])
def test_a_hostile_message_takes_no_longer_than_its_length(unit):
    cutter = MessageRedactor((TOWN,), (OLA,))
    began = time.perf_counter()
    cutter.redact(unit * (60_000 // len(unit)))
    # Where time grew with the square of the length it would be minutes.
    assert time.perf_counter() - began < 20
