"""Facts that say the same are one fact; facts that exclude each other are noticed; others are neither."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.gate.fact_similarity import (
    fact_comparison_key,
    is_contradiction,
    is_same_fact,
)

SAME = [
    ("The user lives in Oslo.", "the user lives in oslo"),
    ("The user likes hiking and skiing.", "The user likes skiing and hiking."),
    ("The user has a cat named Miso.", "The user's cat is named Miso."),
    ("- The user lives in Oslo", "The user lives in Oslo (said on 2026-03-06)."),
    ("The user works as a nurse at the hospital.", "The user works as nurse at hospital."),
    ("用户住在上海。", "用户住在上海"),
    ("The user’s dog is Rex", "The user's dog is Rex."),
    ("The user is 34 years old", "The user is thirty-four years old."),
    ("Ich wohne in Berlin.", "Der Nutzer wohnt in Berlin."),
    ("The user really likes very dark chocolate", "The user likes dark chocolate."),
]
DIFFERENT = [
    ("The user is 34.", "The user is 35."),
    ("The user lives in Oslo.", "The user lives in Rome."),
    ("The user likes tea.", "The user does not like tea."),
    ("The user's birthday is March 3.", "The user's birthday is March 4."),
    ("The user smokes.", "The user stopped smoking."),
    ("Anna likes Bob.", "Bob likes Anna."),
    ("Ada (42): I live in Oslo.", "Bob (43): I live in Oslo."),
    ("The user's sister lives in Rome.", "The user's brother lives in Rome."),
    ("The user likes tea.", "The user likes tea with milk and lots of sugar in the morning."),
    ("用户住在上海", "用户住在北京"),
    ("The user has a cat.", "The user has a dog."),
    ("The user meets Anna on Monday.", "The user meets Anna on Tuesday."),
    ("", ""),
]
EXCLUDE = [
    ("The user lives in Oslo.", "The user lives in Rome."),
    ("The user moved to Oslo.", "The user lives in Rome."),
    ("Ich wohne jetzt in Oslo", "Ich wohne in Rom"),
    ("Ich bin nach Oslo gezogen.", "Ich wohne in Rom"),
    ("Mein Lieblingsessen ist Pizza", "Mein Lieblingsessen ist Sushi"),
    ("Meine Adresse ist Weg 5", "Meine Adresse ist Weg 7"),
    ("J'habite maintenant à Lyon", "J'habite à Paris"),
    ("Ahora vivo en Sevilla", "Vivo en Madrid"),
    ("Mi cumpleaños es el 5 de mayo", "Mi cumpleaños es el 6 de mayo"),
    ("Ich bin 35 Jahre alt", "Ich bin 34 Jahre alt"),
    ("Je travaille chez Renault", "Je travaille chez Peugeot"),
    ("The user is 35 years old.", "The user is 34 years old."),
    ("The user's name is Max.", "The user's name is Tom."),
    ("Ada (42): I live in Oslo.", "Ada (42): I live in Rome."),
    ("Ada (42): Ich wohne in Oslo.", "Ada (42): Ich wohne in Rom."),
    ("The user no longer likes tea.", "The user likes tea."),
    ("Я живу в Осло", "Я живу в Риме"),
    ("我住在上海", "我住在北京"),
    ("The user works as a nurse.", "The user works as a cook."),
    ("Meu nome é Ana", "Meu nome é Eva"),
    ("The user's birthday is March 3.", "The user's birthday is March 4."),
    ("Ada (42) lives in Oslo.", "Ada (42) lives in Rome."),
    ("Der Nutzer wohnt in Oslo.", "Ich wohne in Rom."),
]
AGREE = [
    ("The user lives in Oslo.", "The user lives in Oslo"),
    ("The user likes tea.", "The user likes coffee."),
    ("Ada (42): I live in Oslo.", "Bob (43): I live in Rome."),
    ("Ich wohne in Oslo", "Ich arbeite bei Siemens"),
    ("Mein Lieblingsessen ist Pizza", "Meine Lieblingsfarbe ist Rot"),
    ("The user's sister lives in Rome.", "The user lives in Oslo."),
    ("Ich wohne in Oslo", "Ich wohne in Oslo mit Anna"),
    ("Ich wohne nicht in Rom", "Ich wohne in Oslo"),
    ("The user has a dog.", "The user has a cat."),
    ("blah blah", "bleh"),
    ("The user speaks French.", "The user speaks German."),
    ("Ada (42) lives in Oslo.", "Bob (43) lives in Rome."),
    ("Ada (42) lives in Oslo.", "Ada (7) lives in Rome."),
    ("Vivo en Madrid", "Trabajo en Madrid"),
    ("Ich bin 34 Jahre alt", "Ich bin müde"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_wordings_of_one_fact_are_the_same(one, other):
    assert is_same_fact(one, other)
    assert is_same_fact(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_facts_that_differ_in_what_matters_are_not_the_same(one, other):
    assert not is_same_fact(one, other)
    assert not is_same_fact(other, one)


@pytest.mark.parametrize(("new", "old"), EXCLUDE)
def test_two_values_of_one_attribute_contradict(new, old):
    assert is_contradiction(new, old)


@pytest.mark.parametrize(("new", "old"), AGREE)
def test_facts_that_can_both_hold_do_not_contradict(new, old):
    assert not is_contradiction(new, old)


@given(st.text(max_size=200))
def test_a_fact_never_contradicts_itself_and_is_the_same_as_itself(text):
    assert not is_contradiction(text, text)
    assert is_same_fact(text, text) == bool(fact_comparison_key(text))


@given(st.text(max_size=120), st.text(max_size=120))
def test_any_two_texts_are_compared(one, other):
    assert is_same_fact(one, other) == is_same_fact(other, one)
    is_contradiction(one, other)


@pytest.mark.parametrize("piece", ["ich wohne in ", "a ", "1 ", "Anna ", "nicht ", "user(", "我"])
def test_long_texts_are_compared_in_bounded_time(piece):
    long = (piece * 20_000)[:20_000]
    is_same_fact(long, long + "x")
    is_contradiction(long, long + " y")


BESIDE_EACH_OTHER = """
Marta is planning a weekend in Prague with Ida from Friday to Sunday, 15 to 17 January 2027.
Marta is looking for a gift under 80 euros for Henrik's 40th birthday.
Marta is a mother.
Marta is a vegetarian.
Marta is the treasurer of the choir.
Marta is back on 3 December 2026.
Anna Berg is an aunt of the user.
Anna Berg is a beekeeper.
Anna Berg is a good swimmer.
Jonas is leaving the practice at the end of 2026.
Jonas is coming to dinner on 5 December 2026.
The practice is closed on Thursday afternoons.
The practice is moving on 5 May 2027.
The user's car is a Volvo.
The user's car is now in the garage.
The user's house is an old mill.
The user's house is a listed building.
""".strip().splitlines()


def test_one_person_or_thing_is_many_things_at_once() -> None:
    """A fact that does not deny another one never ends it."""
    pairs = itertools.permutations(BESIDE_EACH_OTHER, 2)
    assert [pair for pair in pairs if is_contradiction(*pair)] == []


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The plumber is coming on 5 June.", "The plumber is coming on 4 June."),
        ("The trip is from 22 to 24 January.", "The trip is from 15 to 17 January."),
        ("The user's car is a Skoda.", "The user's car is a Volvo."),
        ("The user is a baker now.", "The user is a teacher."),
    ],
)
def test_another_value_of_the_same_thing_ends_the_one_before(new: str, old: str) -> None:
    assert is_contradiction(new, old)
