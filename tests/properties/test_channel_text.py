"""Whatever a model writes, it arrives within the platforms' rules and without loss."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from channels import text as channel_text
from channels.discord import render as discord
from channels.telegram import render as telegram

proved = settings(max_examples=examples(100))

limits = st.integers(channel_text.MIN_MESSAGE_LIMIT, 200)
anything = st.text(st.characters(exclude_categories=()), max_size=300)

# The signs of Markdown, often and in any order, between words of several scripts.
bits = st.sampled_from(
    [
        *"*_~`#>|-+$[]()<>!\\&:\n \t",
        *[
            "**",
            "||",
            "```",
            "```py\n",
            "\n\n",
            "\n- ",
            "\n1. ",
            "\n  ",
            "    ",
            "\n> ",
            "](",
            "$$",
        ],
        *["| a | b |\n|---|:-:|\n", "| ", "[x](https://a.b)", "![i](tg://c)", "<b>", "<div>\n"],
        *["\\(", "\\)", "\\[", "\\]", "\\frac{", "}", "^2", "[^1]", "[^1]: ", "- [ ] ", "---\n"],
        *["word", "слово", "日本語", "👨‍👩‍👧", "🇩🇪", "é", "\ud800", "a" * 70, "word " * 15],
    ]
)
sloppy = st.lists(bits, max_size=60).map("".join)
answers = anything | sloppy

letters = st.text(st.sampled_from("abcdefghijkäöüßабвгд日本語😀𝒳"), min_size=1, max_size=12)
words = st.lists(letters, min_size=1, max_size=80)
breaks = st.sampled_from([" ", " ", " ", "\n", "\n\n"])


@st.composite
def prose(draw: st.DrawFn) -> str:
    chosen = draw(words)
    return "".join(word + draw(breaks) for word in chosen)


@proved
@given(answers, limits)
def test_every_piece_for_telegram_is_one_that_telegram_takes(markdown, limit):
    for piece in telegram.render(markdown, limit):
        assert piece.text.strip()
        assert piece.text == piece.text.rstrip()
        units = piece.text.encode("utf-16-le")
        assert len(units) <= 2 * limit
        assert len(piece.entities) <= 100
        for entity in piece.entities:
            covered = units[2 * entity.offset : 2 * (entity.offset + entity.length)]
            assert entity.length >= 1
            assert entity.offset + entity.length <= len(units) // 2
            # It would raise on half a character.
            assert covered.decode("utf-16-le").strip()
            assert entity.url is None or entity.url.lower().startswith(("https://", "http://"))


@proved
@given(answers, limits)
def test_code_for_telegram_crosses_no_style(markdown, limit):
    for piece in telegram.render(markdown, limit):
        ranges = [(e.type, e.offset, e.offset + e.length) for e in piece.entities]
        code = [one for one in ranges if one[0] in ("code", "pre")]
        for kind, start, end in ranges:
            for other, first, last in code:
                apart = end <= first or last <= start
                assert apart or (kind, start, end) == (other, first, last) or kind == "blockquote"


@proved
@given(answers, limits)
def test_every_piece_for_discord_is_within_the_limit_and_has_whole_fences(markdown, limit):
    for piece in discord.render(markdown, limit):
        assert piece.strip()
        assert len(piece.encode("utf-16-le")) <= 2 * limit
        assert piece.count("```") % 2 == 0


@proved
@given(answers, limits)
def test_no_letter_or_digit_of_an_answer_is_lost_by_the_fallback(markdown, limit):
    source = channel_text.clean_text(markdown)
    shown = "".join(telegram.render_plain(markdown, limit))
    assert re.findall(r"\w", shown) == re.findall(r"\w", source)


@proved
@given(prose(), limits)
def test_all_words_arrive_in_order(text, limit):
    for pieces in (
        [piece.text for piece in telegram.render(text, limit)],
        discord.render(text, limit),
        telegram.render_plain(text, limit),
    ):
        assert " ".join(pieces).split() == text.split()


# Every sign of Markdown that can open, close or part something, between the words of one language.
spoken = st.lists(
    st.sampled_from(
        [
            *"*_~`#>|-+[]()<!\\&:\n ",
            *["**", "||", "```", "\n\n", "\n- ", "\n1. ", "    ", "\n> ", "](", "[^1]", "[^1]: "],
            *["| a | b |\n|---|:-:|\n", "| ", "<b>", "<div>\n", "- [ ] ", "---\n"],
            *["слово", "слово ", "слово\n", " слово"],
        ]
    ),
    max_size=40,
).map("".join)


@proved
@given(spoken)
def test_no_word_between_signs_is_lost(markdown):
    telegrams = telegram.render(markdown)
    addresses = [entity.url or "" for piece in telegrams for entity in piece.entities]
    shown = "".join([*(piece.text for piece in telegrams), *addresses])
    assert shown.count("слово") >= markdown.count("слово")
    assert "".join(discord.render(markdown)).count("слово") >= markdown.count("слово")


@settings(proved, max_examples=examples(40))
@given(prose(), limits)
def test_growing_prose_changes_only_its_last_piece(text, limit):
    for render in (telegram.render, discord.render, telegram.render_plain):
        grown = accumulate(re.findall(r"\S+\s*", text))
        for before, after in pairwise(render(prefix, limit) for prefix in grown):
            assert len(after) >= len(before)
            assert after[: len(before) - 1] == before[:-1]
