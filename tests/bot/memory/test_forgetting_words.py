"""Which texts hold what a person wants forgotten, and what is cut out of a message that says more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.memory.erasure.erasure_query import parse_query
from bot.memory.erasure.message_redaction import MessageRedactor
from bot.memory.records.tombstones import ERASED_TEXT

TOWN, OLA = "The user lives in Warsaw.", "The user's sister Ola is a nurse."
CUTTER = MessageRedactor((TOWN,), (OLA,))


@pytest.mark.parametrize(
    ("asked", "text", "holds"),
    [
        ("rome trip", "the trip that we made to ROME", True),
        ("rome trip", "the trip to Oslo", False),
        ('"rome trip"', "our Rome trip was long", True),
        ('"rome trip"', "a trip to Rome", False),
        ("„mein Umzug“", "Über meinen und mein Umzug", True),
        ("Müller", "Herr Mu\u0308ller", True),
        ("zqxmar", "z\u200bqx\u00admar", True),
        ("東京", "私は東京に住んでいます", True),
        ("東京", "京都と東北", False),
        ("Иванова", "у ИВАНОВОЙ и Иванова", True),
        ("café", "at the caf\\u00e9", True),
        ("cat", "concatenate the catalogue", False),
    ],
)
def test_a_text_holds_what_is_asked_for_where_it_has_all_the_words(asked, text, holds):
    found = parse_query(asked)
    assert found is not None
    assert found.matches([text]) is holds


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "I live in Warsaw and my sister Ola is a nurse.",
            "[erased] and my sister Ola is a nurse.",
        ),
        ("Ola is a nurse, and I live in WARSAW!", "Ola is a nurse, and [erased]!"),
        ("My sister Ola in Warsaw is a nurse.", "My sister Ola in [erased] is a nurse."),
        ("It rains.", "It rains."),
        ("I live in Warsaw.", None),
    ],
)
def test_a_clause_that_says_what_goes_goes_and_others_stay(text, left):
    assert CUTTER.redact(text) == left


words = st.sampled_from(
    ["Warsaw", "warsaw's", "Ola", "nurse", "rain", " and ", ", ", ". ", "\n", " ", "[erased]", "é"]
)


@settings(max_examples=examples(100))
@given(st.lists(words, max_size=30).map("".join) | st.text(max_size=60))
def test_nothing_of_it_is_left_and_cutting_again_changes_nothing(text):
    left = CUTTER.redact(text)
    told = left or ""
    assert "warsaw" not in told.casefold()
    assert left is None or CUTTER.redact(left) == left
    quote = CUTTER.redact_quote(text, told)
    assert ERASED_TEXT not in quote
    assert quote in told or left is None
