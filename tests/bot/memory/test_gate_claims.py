"""What a person said carries a claim, or it does not and the reason is told, in many languages."""

from __future__ import annotations

from datetime import date

import pytest
from gate_statements import FRIDAY, HONEST, NOT_CARRIED, RELATIVE, SPEAKERS
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.gate.claim_support import (
    best_supporting_sentences,
    sentences_with_quote,
    unsupported_reason,
    word_overlap,
)


@pytest.mark.parametrize("pair", HONEST, ids=lambda pair: f"{pair['language']}: {pair['claim']}")
def test_what_a_person_said_carries_an_honest_claim(pair):
    assert unsupported_reason(pair["claim"], pair["said"], when=FRIDAY) is None


def test_the_honest_statements_are_many_and_in_many_languages():
    assert len(HONEST) >= 120
    assert len({pair["language"] for pair in HONEST}) >= 8


@pytest.mark.parametrize(("kind", "said", "claim"), NOT_CARRIED)
def test_what_was_not_said_is_not_carried(kind, said, claim):
    assert unsupported_reason(claim, said, when=FRIDAY)


@pytest.mark.parametrize(("said", "claim"), RELATIVE)
def test_a_date_told_by_the_day_of_telling_is_that_date(said, claim):
    assert unsupported_reason(claim, said, when=FRIDAY) is None
    assert unsupported_reason(claim, said, when=date(2019, 8, 21))


@pytest.mark.parametrize("told", ["as of 2026-03-06", "as of March 2026", "said in march, 2026"])
def test_a_claim_may_tell_when_it_was_said_beside_another_date(told):
    said = "I have to hand in my thesis by 15 January."
    claim = f"The user has to hand in the thesis by 15 January ({told})."
    assert unsupported_reason(claim, said, when=FRIDAY) is None
    assert unsupported_reason(claim, said, when=date(2025, 11, 7))


@pytest.mark.parametrize(("said", "claim", "carried"), SPEAKERS)
def test_a_claim_about_the_speaker_speaks_of_the_user(said, claim, carried):
    assert (unsupported_reason(claim, said, when=FRIDAY, names=("Ada (42)",)) is None) is carried


@pytest.mark.parametrize(
    ("said", "claim", "reason"),
    [
        ("I live in Oslo.", "The user lives in Rome.", "the user's words do not name Rome"),
        ("I have 2 cats.", "The user has 42 cats.", "the user's words do not give the number 42"),
        ("I am not tall.", "The user is tall.", "it says the opposite"),
        ("Do I live in Oslo?", "The user lives in Oslo.", "it only asks"),
        ("If I lived in Oslo, fine.", "The user lives in Oslo.", "it only supposes it"),
        ("Bob says I live in Oslo.", "The user lives in Oslo.", "it repeats somebody else's words"),
        ("My dad lives in Oslo.", "The user lives in Oslo.", "it speaks of somebody else"),
        ("I am rich, just kidding.", "The user is rich.", "it is plainly a joke"),
        ("I like tea.", "The user does not like tea.", "it does not deny that"),
        ("", "The user likes tea.", "nothing is said in it"),
    ],
)
def test_the_reason_is_told_in_plain_words(said, claim, reason):
    assert unsupported_reason(claim, said, when=FRIDAY) == reason


def test_overlap_is_the_share_of_a_claims_content_that_was_said():
    assert word_overlap("The user likes green tea.", "I like green tea") == 1.0
    assert word_overlap("The user likes green tea.", "I like coffee") == pytest.approx(1 / 3)
    assert word_overlap("The user lives in Berlin.", "Ich wohne in Berlin") == 1.0
    assert word_overlap("用户住在上海", "我住在上海") > 0.9
    assert word_overlap("The user", "I like tea") == 0.0
    assert word_overlap("", "") == 0.0


@given(st.text(max_size=200), st.text(max_size=300), st.none() | st.dates())
def test_any_claim_and_any_words_are_answered(claim, said, when):
    reason = unsupported_reason(claim, said, when=when, names=(said[:5],))
    assert reason is None or reason
    assert 0.0 <= word_overlap(claim, said) <= 1.0
    whole = sentences_with_quote(claim, said)
    assert whole is None or whole
    best_supporting_sentences(claim, said, when=when)


@given(
    st.lists(
        st.sampled_from(
            "I not Rome , . ? if Bob says 我 不 12 March and but n't \n 'What".split(" ")
        ),
        max_size=40,
    )
)
def test_any_order_of_words_that_matter_is_answered(parts):
    said = " ".join(parts)
    unsupported_reason("The user does not live in Rome since March 12.", said, when=FRIDAY)
    best_supporting_sentences("The user lives in Rome.", said, when=FRIDAY)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "I live in Rome. ",
        "not ",
        "1 ",
        "1.",
        "Anna ",
        "if, ",
        "我不",
        "三",
        "aaaab ",
        "(",
        "\n",
        "and I ",
        "my sister ",
        '"',
        "did you know that ",
        "one hundred ",
        "12 March ",
        "@a.",
        "http://a",
        "e-",
        "n't",
        "a. ",
    ],
)
def test_long_texts_are_answered_in_bounded_time(piece):
    long = (piece * 20_000)[:20_000]
    unsupported_reason("The user's sister Anna lives in Rome since 12 March.", long, when=FRIDAY)
    unsupported_reason(long, "I live in Rome.", when=FRIDAY)
    unsupported_reason(long[:2_000], long, when=FRIDAY)
    sentences_with_quote(long[:500], long)
    sentences_with_quote(long, long)
    word_overlap(long, long)
    best_supporting_sentences("The user lives in Rome.", long, when=FRIDAY)


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        (
            "My brother called. It was raining in Hamburg. He has a fever.",
            "The user's brother has a fever.",
        ),
        (
            "My brother is here. On Friday there is a party at Lidl. He plays chess.",
            "The user's brother plays chess.",
        ),
    ],
)
def test_he_is_no_place_that_was_named_between(said, claim):
    assert unsupported_reason(claim, said, when=FRIDAY) is None
    place = "Hamburg" if "Hamburg" in said else "Lidl"
    assert unsupported_reason(claim.replace("The user's brother", place), said, when=FRIDAY)
