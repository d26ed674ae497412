"""What is shown of what was found: what adds something, and not more of it than that."""

from __future__ import annotations

import pytest

from bot.agent.views.passage_selection import MOST_PASSAGES, select_passages
from bot.memory.session.recall import RecalledPassage


def chosen(asked: str, *said: str, shown: tuple[str, ...] = ()) -> list[str]:
    """Select from what a person said, best first."""
    found = [RecalledPassage("", "Ada", text, at, 0.9) for at, text in enumerate(said, start=1)]
    return [passage.text for passage in select_passages(found, asked, shown)]


@pytest.mark.parametrize(
    "earlier",
    ["Where does Beatrix live?", "How is Beatrix? And where does she live?", "你住在哪里？"],
)
def test_an_earlier_question_is_no_evidence(earlier):
    assert chosen("Where does Beatrix live?", earlier) == []


def test_a_question_is_shown_to_who_asks_what_was_asked():
    earlier = "Does Beatrix like the sea?"
    assert chosen("What did I ask about Beatrix?", earlier) == [earlier]


def test_what_only_repeats_the_message_is_not_shown():
    assert chosen("Where is the green boat?", "It is about the boat again.") != []
    assert chosen("It is about the boat again. Where is it?", "The boat again.") == []


def test_a_short_answer_is_shown_for_its_one_new_word():
    said = "My sister lives in Porto."
    assert chosen("Where does my sister live?", said) == [said]


@pytest.mark.parametrize(
    "shown", ["[10:00, Ada] My sister lives in Porto now.", "- The user's sister lives in Porto."]
)
def test_what_the_prompt_tells_already_is_not_shown_again(shown):
    said = "My sister lives in Porto."
    assert chosen("Where does she live?", said, shown=("Hello.", shown)) == []


@pytest.mark.parametrize(
    "shown",
    [
        "Does my sister live in Porto?",
        "My sister is well. We were in Porto.",
        "My sister does live in Lisbon.",
    ],
)
def test_a_question_or_two_statements_in_view_do_not_tell_it(shown):
    said = "My sister lives in Porto."
    assert chosen("Where is she?", said, shown=(shown,)) == [said]


def test_of_statements_that_say_the_same_the_best_is_shown():
    first, again, other = "The boat is green.", "The green boat!", "The boat leaks."
    assert chosen("What about it?", first, again, other) == [first, other]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The rent is 900 euros.", "The rent is 950 euros."),
        ("Mia eats nuts.", "Mia does not eat nuts."),
        ("We paid 40 crowns for the boat.", "We paid 45 crowns for the boat."),
        ("The dose is 2.5 mg.", "The dose is 5.2 mg."),
        ("The heating is on.", "The heating is off."),
    ],
)
def test_another_number_and_a_negation_are_something_new(one, other):
    assert chosen("What was said of it?", one, other) == [one, other]
    assert chosen("What was said of it?", one, shown=(other.replace("not ", "never "),)) == [one]


def test_a_number_that_answers_is_new():
    said = "The boat did cost 40."
    assert chosen("How much did the boat cost?", said) == [said]


def test_which_of_many_a_message_is_adds_nothing():
    said = "Invoice 7: the boat was repaired."
    assert chosen("Invoice 9: was the boat repaired?", said) == []
    assert chosen("Was the boat repaired?", said) == [said]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Is invoice 7 paid?", "Invoice 7 is paid."),
        ("Is Anna my sister?", "Anna is my sister"),
        ("Invoice 9: is it paid?", "Invoice 9 is paid."),
    ],
)
def test_a_statement_that_says_yes_to_the_question_is_shown(asked, said):
    assert chosen(asked, said) == [said]
    assert chosen(asked, asked.rstrip("?")) == []


def test_a_statement_about_another_number_does_not_tell_it():
    said = "Invoice 9 costs 300."
    assert chosen("Invoice 9: what does it cost?", said, shown=("Invoice 7 costs 300.",)) == [said]


@pytest.mark.parametrize(
    "said",
    [
        "Can you remember that my locker code is 4711?",
        "My locker code is 4711, ok?",
        "Did you know that my locker code is 4711?",
        "I chose 4711 as my locker code, is it safe?",
    ],
)
def test_what_a_question_states_is_evidence(said):
    assert chosen("What is my locker code?", said) == [said]


def test_passages_far_below_the_best_are_not_shown_and_there_are_few():
    scores = {"A is red.": 1.0, "B is blue.": 0.5, "C is grey.": 0.5, "D is pink.": 0.6}
    found = [RecalledPassage("", "Ada", text, 1, score) for text, score in scores.items()]
    texts = [passage.text for passage in select_passages(found, "Which colour?")]
    assert texts == ["A is red.", "B is blue.", "D is pink."]
    many = [f"Colour {word} is nice." for word in ("red", "blue", "grey", "pink", "gold")]
    assert len(chosen("Which colour?", *many)) == MOST_PASSAGES


def test_of_a_long_message_the_sentences_around_the_match_are_shown():
    filler = "We talked of the weather and of what there was to eat that evening. "
    said = f"{filler * 8}The doctor of Beatrix is Dr. Holm. She is in Bergen. {filler * 8}"
    [shown] = chosen("Who is the doctor of Beatrix?", said)
    assert "The doctor of Beatrix is Dr. Holm. She is in Bergen." in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) <= 250


def test_a_long_text_without_sentences_is_shown_as_it_is():
    said = "llama hay " * 100
    assert chosen("Which colour?", said) == [said.strip()]


def test_the_assistants_words_are_shown_to_who_asks_for_them():
    found = [RecalledPassage("", "tapebot", "Try the soup.", 1, 0.9)]
    assert select_passages(found, "What is good for a cold?") == []
    assert select_passages(found, "What did you recommend for a cold?") == found
