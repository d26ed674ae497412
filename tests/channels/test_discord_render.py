"""What Discord is given for an answer."""

from __future__ import annotations

import pytest

from channels.discord.render import render


def one(markdown: str) -> str:
    (piece,) = render(markdown)
    return piece


def test_what_discord_renders_is_left_alone():
    source = (
        "# H\n\n**b** *i* ~~s~~ `c` ||secret||\n- a\n  - b\n> quote\n[l](https://x.y) <https://x.y>"
        "\n\n```py\nx = 1\n```\nafter @everyone <b>html</b>"
    )
    assert one(source) == source.replace("\n\n```", "\n```")


def test_a_table_is_an_aligned_code_block():
    assert one("| a | b |\n|---|--:|\n| **1** | x |\n| 日本 | 22 |\n\nafter") == (
        "```\na    │  b\n─────┼───\n1    │  x\n日本 │ 22\n```\nafter"
    )


def test_a_table_keeps_its_links_and_its_surplus_cells():
    text = one("| a | b |\n|---|---|\n| [l](https://x.y) | 1 | more |")
    assert "l (https://x.y)" in text
    assert "more" in text


def test_deep_headings_are_bold():
    assert one("#### A **b**\n###### c\nSet\n---") == "**A b**\n**c**\n## Set"


def test_pictures_are_links():
    assert one("![alt](https://x.y/z.png) ![](https://x.y/q.png)") == (
        "[alt](https://x.y/z.png) https://x.y/q.png"
    )
    assert one("[![badge](http://i.j)](http://k.l)") == "[badge](http://k.l)"


def test_rules_and_tasks_are_drawn():
    assert one("a\n\n---\n\n- [ ] t\n- [x] d") == f"a\n\n{'⎯' * 12}\n\n- ☐ t\n- ☑ d"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "tg://user?id=1", "/relative", "http://"])
def test_an_address_that_is_not_of_the_web_is_shown_and_never_linked(url: str):
    assert one(f"[label]({url.replace('(1)', '')})") == f"label (`{url.replace('(1)', '')}`)"


def test_addresses_may_hold_parentheses_and_titles():
    assert one("[w](https://x.y/A_(b)) [t](<https://x.y> 'title')") == (
        "[w](https://x.y/A_(b)) [t](https://x.y)"
    )


def test_code_is_not_rewritten():
    source = "`![a](tg://b) || c ||` and\n```\n- [ ] x\n#### y\n![a](b)\n```"
    assert one(source) == source


def test_bars_in_prose_hide_nothing():
    assert one("a || b || c") == r"a \|\| b \|\| c"


def test_quotes_in_quotes_do_not_quote_all_that_follows():
    assert one(">>> a\n\nb") == "> a\n\nb"


def test_an_unfinished_code_block_is_closed():
    assert one("text\n```python\nprint(1)") == "text\n```python\nprint(1)\n```"


def test_code_beside_a_fence_is_not_lost():
    assert one("```bash pip install y\nx\n```") == "```bash\npip install y\nx\n```"
    assert one("```rust,ignore\nx\n```") == "```rust\nx\n```"


def test_fences_of_other_kinds_become_discords_own():
    assert one("~~~\na\n~~~") == "```\na\n```"
    assert one("- x\n  ```py\n  a\n  ```") == "- x\n```py\na\n```"
    assert one("p\n\n    a\n      b") == "p\n```\na\n  b\n```"


def test_backticks_inside_code_and_lines_open_no_block():
    assert one("````md\n```py\nx\n```\n````").count("```") == 2
    assert one("see ```code``` and ``` open") == "see ``code`` and `` open"


def test_code_that_is_cut_is_closed_and_reopened_in_its_language():
    pieces = render("```py\n" + "    x = 1\n" * 50 + "```", 100)
    assert len(pieces) > 3
    for piece in pieces:
        assert piece.startswith("```py\n    x = 1\n")
        assert piece.endswith("\n    x = 1\n```")
        assert len(piece) <= 100


def test_paragraphs_then_lines_then_words_are_kept_whole():
    assert render("a " * 20 + "\n\n" + "b " * 20, 64) == [("a " * 20).strip(), ("b " * 20).strip()]
    assert all(piece.endswith("word") for piece in render("word " * 100, 64))


@pytest.mark.parametrize("nothing", ["", " \n\t", "\u200b", "```\n```", "\x00"])
def test_nothing_visible_is_no_piece(nothing: str):
    assert render(nothing) == []


def test_half_a_character_is_replaced():
    assert one("\ud800 **x**") == "\N{REPLACEMENT CHARACTER} **x**"


@pytest.mark.parametrize(
    "source", ["[" * 4000, "[\\" * 2000 + "](", "](`a " * 1000, "||a " * 1000, "- " * 2000 + "[ ]"]
)
@pytest.mark.timeout(60)
def test_no_answer_holds_up_the_others(source: str):
    # What took the square of its length would take minutes.
    render(source * 16)


def test_a_line_of_bullets_is_shown_as_it_is():
    line = "-  " * 16_000 + "x"
    assert "".join(render(line)).count("-") == 16_000


def test_names_keep_their_underscores_and_addresses_are_left_alone():
    assert one("__init__ and x.__call__()") == r"\_\_init\_\_ and x.\_\_call\_\_()"
    for source in ("https://host/_a_/__init__.py", "`__init__`", "snake_case_words", "__under__"):
        assert one(source) == source
