"""What a person asks to remember is recognised by code, in nine languages, and nothing else is."""

from __future__ import annotations

import pytest

from bot.memory.gate.remember_requests import find_explicit_memory, to_memory_line

ASKED = [
    ("Remember that my locker code is 4711", "My locker code is 4711"),
    ("please remember: the wifi is called Otter", "The wifi is called Otter"),
    ("Don't forget that Eva is vegan", "Eva is vegan"),
    ("make a note that I moved to Oslo", "I moved to Oslo"),
    ("Merk dir, dass ich Tee mag", "Ich Tee mag"),
    ("Souviens-toi que j'habite à Lyon", "J'habite à Lyon"),
    ("Recuerda que soy alérgico al maní", "Soy alérgico al maní"),
    ("Lembra que eu moro em Lisboa", "Eu moro em Lisboa"),
    ("Ricorda che abito a Roma", "Abito a Roma"),
    ("Запомни, что я живу в Осло", "Я живу в Осло"),
    ("记住，我住在上海", "我住在上海"),
    ("覚えておいて、私は東京に住んでいます", "私は東京に住んでいます"),
]

NOT_ASKED = [
    "Do you remember that I live in Oslo?",
    "Remember that I live in Oslo?",
    "I remember that day well",
    "She said: remember that you owe me",
    "remember",
    "",
    "What should I remember?",
    "Note that this function is deprecated",
    "Note: this is an automatic mail",
    "Remember that time we went to Rome",
    "Remember that I asked you something? It was about tea",
]


@pytest.mark.parametrize(("text", "kept"), ASKED)
def test_what_is_asked_to_be_remembered_is_kept_in_the_persons_words(text, kept):
    assert find_explicit_memory(text) == kept


@pytest.mark.parametrize("text", NOT_ASKED)
def test_what_only_looks_like_it_is_not_kept(text):
    assert find_explicit_memory(text) is None


def test_a_line_of_memory_is_one_line_whatever_is_said():
    assert to_memory_line("- two\n\n  lines\tof it ") == "Two lines of it"
    assert to_memory_line("x" * 5_000) is None
    assert to_memory_line(" \n ") is None
