"""Properties of the offline responder's pure parts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.language.grammatical_person import to_second, to_third
from bot.language.statements import extract_facts
from bot.offline.intents import message_intents
from bot.offline.memory_text import merge_facts, remove_topic
from bot.offline.request_parser import parse_passages, parse_user_message, without_quoted_parts
from bot.offline.turn import saved

SAID = st.sampled_from(
    [
        "I live in Paris.", "I moved to Rome.", "I like tea.", "I do not like tea.", "I hate tea.",
        "I no longer drink tea.", "I drink tea every day.", "My name is Ada.", "My name is Bo.",
        "I have a dog named Rex.", "I do not have a dog.", "I am 34.", "I am 35 now.", "My car is red.",
        "My sister Eva lives in Oslo.", "My sister lives in Bergen.", "My exam is on Monday.",
        "I work as a nurse.", "I am a doctor.", "Ich mag Tee.", "我叫小明。", "Eva likes tea.",
    ]
)  # fmt: skip
TEXT = st.text(max_size=300) | st.lists(SAID | st.text(max_size=20), max_size=8).map(" ".join)


@given(st.lists(SAID, max_size=8), st.lists(SAID, max_size=8))
def test_merging_twice_equals_merging_once(before, after):
    old = merge_facts("", [fact.line for text in before for fact in extract_facts(text)]).text
    new = [fact.line for text in after for fact in extract_facts(text)]
    once = merge_facts(old, new)
    again = merge_facts(once.text, new)
    assert again.text == once.text
    assert again.added == ()


@given(st.lists(SAID, max_size=8))
def test_no_line_stands_twice(spoken):
    lines = merge_facts(
        "", [fact.line for text in spoken for fact in extract_facts(text)]
    ).text.split("\n")
    assert len(lines) == len(set(lines))


@given(TEXT)
@settings(max_examples=examples(300))
def test_any_text_is_read_without_failing_and_always_alike(text):
    assert message_intents(parse_user_message(text)) == message_intents(parse_user_message(text))
    made = merge_facts(
        text, [fact.line for fact in extract_facts(text, date="2026-11-21", name="Ada")]
    )
    assert remove_topic(made.text, text)
    assert isinstance(parse_passages(text), tuple)
    assert saved(text) in (True, False)


@given(st.text(max_size=100), st.text(max_size=100))
def test_nothing_after_a_quotation_is_a_persons_own(own, quoted):
    assert without_quoted_parts(f"{own}\n<quoted>\n{quoted}\n</quoted>") in (
        own,
        without_quoted_parts(own),
    )


@pytest.mark.parametrize(
    "text",
    ["I am " * 25_000, "a" * 100_000, " and my " * 14_000, "My name is " + "x y " * 25_000, "the " * 25_000,
     "'" * 100_000, "I like. " * 12_000, "Aa " * 30_000, "? " * 50_000, "what " * 20_000, "my " * 30_000,
     "tell me about " * 7_000, "forget " * 14_000, "的" * 100_000],
)  # fmt: skip
@pytest.mark.timeout(10)
def test_a_hundred_kilobytes_are_read_at_once(text):
    """Bounded by the test's time limit: a pattern that backtracks over the text would not end."""
    assert message_intents(parse_user_message(text))


@pytest.mark.parametrize(
    ("first", "third", "second"),
    [
        ("I live and work in Berlin", "The user lives and works in Berlin.", "You live and work in Berlin."),
        ("I have my dog", "The user has the user's dog.", "You have your dog."),
        ("My sister calls me Al", "The user's sister calls the user Al.", "Your sister calls you Al."),
        ("I like tea when I am tired", "The user likes tea when the user is tired.", "You like tea when you are tired."),
        ("I really hope I pass", "The user really hopes the user passes.", "You really hope you pass."),
        ("I studied law", "The user studied law.", "You studied law."),
        ("I was ill", "The user was ill.", "You were ill."),
        ("I never watch TV", "The user never watches TV.", "You never watch TV."),
        ("I used to smoke", "The user used to smoke.", "You used to smoke."),
    ],
)  # fmt: skip
def test_persons_change_and_change_back(first, third, second):
    assert to_third(first) == third
    assert to_second(to_third(first)) == second
