"""A claim speaks of nothing that was not spoken of; and what ends a fact speaks of it."""

from __future__ import annotations

import pytest

from bot.memory.gate.cited_sentences import retraction_refusal
from bot.memory.gate.claim_support import unsupported_reason

UNSAID = [
    ("I had a nice day at the lake.", "The user is vegetarian."),
    ("I like tea.", "The user likes coffee."),
    ("Please send me the invoice.", "The user wants every invoice approved."),
    ("J'aime le thé.", "L'utilisateur aime le café."),
    ("Good evening.", "L'utilisateur aime le café."),
    ("Ich war heute lange spazieren.", "The user is an administrator."),
    ("I don't have a car but I have two bikes.", "The user has a car."),
    ("My sister lives in Rome.", "The user's sister and the user live in Rome."),
    ("Meine Schwester ist Ärztin.", "Der Nutzer ist Ärztin."),
    ("Do I live in Rome?", 'Ada said: "Do I live in Rome? Yes."'),
]
SAID = [
    ("I don't eat meat.", "The user is vegetarian."),
    ("My new job is at Statkraft.", "The user works at Statkraft."),
    ("I take vitamin B12 every morning.", "The user takes vitamin B12 every morning."),
    ("Ich esse kein Fleisch.", "The user does not eat meat."),
    ("My brother and I own a boat.", "The user's brother and the user own a boat."),
    ("I live in Rome, not in Oslo.", 'Ada said: "I live in Rome, not in Oslo."'),
    ("I have two sons.", "The user has two children."),
]
ENDS = [
    ("I live in Rome", "I do not live in Rome any more.", True),
    ("I live in Rome", "Forget that I live in Rome.", True),
    ("I live in Rome", "Can you forget that I live in Rome?", True),
    ("I live in Rome", "Do I still live in Rome?", False),
    ("I live in Rome", "I live in Rome.", False),
    ("I live in Rome", "I had a nice day at the lake.", False),
    ("I live in Rome", "My boss says I no longer live in Rome.", False),
]


@pytest.mark.parametrize(("said", "claim"), UNSAID)
def test_a_claim_of_what_was_not_spoken_of_is_not_carried(said, claim):
    assert unsupported_reason(claim, said, names=("Ada",)) is not None


@pytest.mark.parametrize(("said", "claim"), SAID)
def test_a_claim_in_other_words_is_carried(said, claim):
    assert unsupported_reason(claim, said, names=("Ada",)) is None


@pytest.mark.parametrize(("fact", "said", "ends"), ENDS)
def test_a_fact_ends_by_words_that_speak_of_it_and_do_not_hold_it(fact, said, ends):
    assert (retraction_refusal(fact, said) is None) is ends
