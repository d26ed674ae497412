"""Which texts hold what a person wants forgotten."""

from __future__ import annotations

import pytest

from bot.memory.erasure.entry_eraser import EntryEraser
from bot.memory.erasure.text_matcher import TextMatcher, needles_in
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.tape.entries import event


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
        ("京東", "私は東京に住んでいます", False),
        ("Иванова", "у ИВАНОВОЙ и Иванова", True),
        ("café", "at the caf\\u00e9", True),
        ("cat", "concatenate the catalogue", False),
        ("Monica", "Monica's", True),
        ("the cat", "a cat", False),
    ],
)
def test_a_text_holds_what_is_asked_for_where_it_has_all_the_words(asked, text, holds):
    assert TextMatcher(needles_in(asked)).holds([text]) is holds


@pytest.mark.parametrize(
    ("erased", "text", "repeats"),
    [
        ("I live in Warsaw.", "You said: i live in warsaw!", True),
        ("I live in Warsaw.", "Warsaw is where you live in winter.", False),
        ("私は東京に住んでいます", "「私は東京に住んでいます。」", True),
        ("Yes.", "Yes.", False),
    ],
)
def test_a_text_repeats_an_erased_one_to_the_letter_and_not_in_other_words(erased, text, repeats):
    matcher = TextMatcher(needles_in("zqx"))
    matcher.add_passage(erased)
    assert matcher.holds([text]) is repeats
    elsewhere = matcher.passages_in(f"Once more: {text}")
    assert not TextMatcher(matcher.needles, matcher.passages - elsewhere).holds([text])


@pytest.mark.parametrize(
    "malformed", [{"confidence": 7}, {"status": "odd"}, {"id": [1]}, {"subject": ["pear"]}]
)
def test_a_malformed_fact_loses_its_words_like_any_other(malformed):
    evidence = [{"tape": "a", "entry": [], "quote": "a pear", "who": "Ada", "context_entry": {}}]
    fact = {"id": 1, "text": "my pear", "evidence": evidence, "confidence": 0.5, **malformed}
    ops = [{"op": "add", "verdict": "approved", "text": "", "fact": fact, "closed": fact}]
    entry = event(FACTS_EVENT, {"ops": ops})
    assert "pear" in str(entry)
    assert "pear" not in str(EntryEraser(TextMatcher(("pear",))).clear(entry))
