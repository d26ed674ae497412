"""The sentences that a claim rests on are found whole, by a quote out of them and without one."""

from __future__ import annotations

import pytest
from gate_statements import FRIDAY

from bot.memory.gate.claim_support import (
    best_supporting_sentences,
    sentences_with_quote,
    unsupported_reason,
)

HELD = [
    ("I moved to Oslo", "Hello! I moved to Oslo, finally. Bye.", "I moved to Oslo, finally."),
    ("live in Rome", "I do not live in Rome. Bye.", "I do not live in Rome."),
    ("LIVE   in\nrome", "I live in Rome.", "I live in Rome."),
    ("I’m “here”", 'I\'m "here" now.', 'I\'m "here" now.'),
    ("...moved to Oslo…", "I moved to Oslo.", "I moved to Oslo."),
    ("Ｏｓｌｏ", "I love Oslo.", "I love Oslo."),
    ("one. Two", "I am one. Two are you. Three.", "I am one. Two are you."),
    ("住在上海", "你好。我住在上海。再见。", "我住在上海。"),
    ("Dr. Smith", "I saw Dr. Smith today. Ok.", "I saw Dr. Smith today."),
    ("3. März", "Es ist am 3. März soweit. Ja.", "Es ist am 3. März soweit."),
    ("own a castle", "I own a castle. Just kidding!", "I own a castle. Just kidding!"),
    ("live in\nRome", "I do not live in\nRome", "I do not live in\nRome"),
    ("Du.", "Du. Und bitte ohne Smileys.", "Du."),
    ("no", "No! I know.", "No!"),
]

NOT_HELD = [
    ("I live in Rome", "I live in Oslo."),
    ("", "I live in Rome."),
    ("...", "Hm... well."),
    ("the", "I am the boss."),
    ("I", "I am the boss."),
    ("a", "a b c"),
    ("12", "I am 12."),
    ("in Rom", "I live in Rome."),
    ("no", "I know."),
]


@pytest.mark.parametrize(("quote", "text", "whole"), HELD)
def test_a_quote_is_found_with_its_whole_sentence(quote, text, whole):
    assert sentences_with_quote(quote, text) == whole


@pytest.mark.parametrize(("quote", "text"), NOT_HELD)
def test_a_quote_that_does_not_occur_or_says_nothing_is_not_found(quote, text):
    assert sentences_with_quote(quote, text) is None


@pytest.mark.parametrize(
    ("quote", "text", "claim"),
    [
        ("live in Rome", "I do not live in Rome.", "The user lives in Rome."),
        ("allergic to nuts", "Luckily I'm not allergic to nuts.", "The user is allergic to nuts."),
        ("I live in Rome", "Bob thinks I live in Rome.", "The user lives in Rome."),
        ("I had a dog", "I wish I had a dog.", "The user has a dog."),
        ("住在上海", "我不住在上海。", "用户住在上海。"),
        ("own a castle", "I own a castle. Just kidding!", "The user owns a castle."),
    ],
)
def test_a_quote_cut_out_of_its_sentence_carries_nothing(quote, text, claim):
    said = sentences_with_quote(quote, text)
    assert said is not None
    assert unsupported_reason(claim, said, when=FRIDAY)


def test_the_sentences_that_carry_a_claim_best_are_found_without_a_quote():
    text = "Hi there! My mum is well. I moved to Oslo in May. Do you know a good dentist?"
    assert best_supporting_sentences("The user moved to Oslo.", text) == "I moved to Oslo in May."
    assert best_supporting_sentences("The user lives with a dragon.", text) is None
    assert best_supporting_sentences("The user moved to Rome.", text) is None


def test_a_claim_may_be_carried_by_neighbouring_sentences():
    text = "Hi. My sister is called Anna. She lives in Rome. Bye."
    said = best_supporting_sentences("The user's sister Anna lives in Rome.", text)
    assert said == "My sister is called Anna. She lives in Rome."
