"""What Discord is given for an answer."""

from __future__ import annotations

import pytest

from channels.discord.render import render

PLAIN = (
    "# H\n\n**b** *i* ~~s~~ `c` ||secret||\n- a\n  - b\n> quote\n[l](https://x.y) <https://x.y>"
    "\n```py\nx = 1\n```\nafter @everyone <b>html</b>"
)
TABLE = "| a | b |\n|---|--:|\n| **1** | x |\n| 日本 | 22 |\n\nafter"
CODE = "`![a](tg://b) || c ||` and\n```\n- [ ] x\n#### y\n![a](b)\n```"


def one(markdown: str) -> str:
    (piece,) = render(markdown)
    return piece


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (PLAIN, PLAIN),
        (CODE, CODE),
        ("https://host/_a_/__init__.py", "https://host/_a_/__init__.py"),
        (TABLE, "```\na    │  b\n─────┼───\n1    │  x\n日本 │ 22\n```\nafter"),
        ("#### A **b**\nSet\n---", "**A b**\n## Set"),
        ("![alt](https://x.y/z.png) ![](https://x.y/q.png)",
         "[alt](https://x.y/z.png) https://x.y/q.png"),
        ("a\n\n---\n\n- [ ] t\n- [x] d", f"a\n\n{'⎯' * 12}\n\n- ☐ t\n- ☑ d"),
        ("[label](tg://user?id=1)", "label (`tg://user?id=1`)"),
        ("[label](javascript:alert)", "label (`javascript:alert`)"),
        ("[w](https://x.y/A_(b)) [t](<https://x.y> 'title')",
         "[w](https://x.y/A_(b)) [t](https://x.y)"),
        ("a || b || c", r"a \|\| b \|\| c"),
        (">>> a\n\nb", "> a\n\nb"),
        ("text\n```python\nprint(1)", "text\n```python\nprint(1)\n```"),
        ("```bash pip install y\nx\n```", "```bash\npip install y\nx\n```"),
        ("- x\n  ```py\n  a\n  ```", "- x\n```py\na\n```"),
        ("see ```code``` and ``` open", "see ``code`` and `` open"),
        ("\ud800 **x**", "\N{REPLACEMENT CHARACTER} **x**"),
        ("__init__ and x.__call__()", r"\_\_init\_\_ and x.\_\_call\_\_()"),
    ],
)  # fmt: skip
def test_each_form_of_markdown_is_what_discord_shows_as_meant(source, shown):
    assert one(source) == shown


def test_what_is_cut_is_cut_where_it_stays_readable():
    pieces = render("```py\n" + "    x = 1\n" * 50 + "```", 100)
    assert len(pieces) > 3
    for piece in pieces:
        assert piece.startswith("```py\n    x = 1\n")
        assert piece.endswith("\n    x = 1\n```")
        assert len(piece) <= 100
    assert render("a " * 20 + "\n\n" + "b " * 20, 64) == [("a " * 20).strip(), ("b " * 20).strip()]
    assert all(piece.endswith("word") for piece in render("word " * 100, 64))


@pytest.mark.parametrize("nothing", ["", " \n\t", "\u200b", "```\n```", "\x00"])
def test_nothing_visible_is_no_piece(nothing: str):
    assert render(nothing) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", ["[" * 4000, "[\\" * 2000 + "](", "](`a " * 1000, "||a " * 1000, "- " * 2000 + "[ ]"]
)
@pytest.mark.timeout(60)
def test_no_answer_holds_up_the_others(source: str):
    # What took the square of its length would take minutes.
    render(source * 16)
