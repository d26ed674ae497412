"""What differs between two texts, as the pages show it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.inspector.reading.diffs import diff_lines

TEXTS = st.lists(st.sampled_from(["tea", "coffee at nine", "two  cups", "", "é-x"])).map("\n".join)


@given(TEXTS, TEXTS)
def test_each_side_of_a_diff_gives_its_text_again(old: str, new: str) -> None:
    lines = diff_lines(old, new)
    for text, sides in ((old, [one.old for one in lines]), (new, [one.new for one in lines])):
        told = ["".join(part.text for part in side) for side in sides if side is not None]
        assert told == text.splitlines()


def test_the_words_that_changed_are_marked() -> None:
    (line,) = diff_lines("I like green tea", "I like black tea")
    assert [part.text for part in line.old or () if part.changed] == ["green"]
    assert [part.text for part in line.new or () if part.changed] == ["black"]


def test_a_very_long_line_is_compared_as_a_whole() -> None:
    (line,) = diff_lines("a " * 20_000, "b " * 20_000)
    assert [part.changed for part in line.old or ()] == [True]
