"""What Telegram is given for an answer."""

from __future__ import annotations

import pytest

from channels.telegram.render import FormattedText, render, render_plain

TABLE = "| a | b |\n|---|--:|\n| **1** | x |\n| 日本 | 22 |"
ALIGNED = "a    │  b\n─────┼───\n1    │  x\n日本 │ 22"


def one(markdown: str) -> FormattedText:
    (piece,) = render(markdown)
    return piece


def styled(piece: FormattedText) -> list[tuple[str, str]]:
    """The styles of a piece, each with the text that it covers."""
    units = piece.text.encode("utf-16-le")
    return [
        (e.type, units[2 * e.offset : 2 * (e.offset + e.length)].decode("utf-16-le"))
        for e in piece.entities
    ]


@pytest.mark.parametrize(
    ("source", "text", "styles"),
    [
        ("👍 **bold** *it* ~~gone~~ `c`", "👍 bold it gone c",
         [("bold", "bold"), ("italic", "it"), ("strikethrough", "gone"), ("code", "c")]),
        ("||secret|| but a || b", "secret but a || b", [("spoiler", "secret")]),
        ("**bold `code` more**", "bold code more",
         [("bold", "bold"), ("code", "code"), ("bold", "more")]),
        ("# *A* **b**", "A b", [("bold", "A b"), ("italic", "A")]),
        ("text\n```python\nprint(1)\n\nx = 2", "text\n\nprint(1)\n\nx = 2",
         [("pre", "print(1)\n\nx = 2")]),
        ("```bash pip install y\nx\n```", "pip install y\nx", [("pre", "pip install y\nx")]),
        ("- item\n  ```py\n  a\n  ```\n  tail\n- b", "• item\na\ntail\n• b", [("pre", "a")]),
        ("- [ ] todo\n- [x] done\n  1. one", "☐ todo\n☑ done\n  1. one", []),
        (TABLE, ALIGNED, [("pre", ALIGNED)]),
        ("| a |\n|---|\n| [l](https://x.y) | more |", None, [("text_link", "l")]),
        ("a <b>bold</b> List<int>\n\n<script>alert(1)</script>", None, []),
        ("![](https://x.y/q.png)", "https://x.y/q.png", [("text_link", "https://x.y/q.png")]),
        (r"so \[ E = mc^2 \] and \(\frac{1}{2}\)", None, [("pre", "E = mc²")]),
        (r"$\frac{$ costs $5, ~5 and ~6, @everyone", r"$\frac{$ costs $5, ~5 and ~6, @everyone", []),
        ("see [1]\n\n[1]: http://a.b", "see 1", [("text_link", "1")]),
        ("> a\n> > b\n\nc", "a\n\nb\n\nc", [("blockquote", "a\n\nb")]),
        ("See `/help`, or `/memory clear yes`.", "See /help, or /memory clear yes.",
         [("code", "/memory clear yes")]),
        ("https://host/_a_ and __init__.py", "https://host/_a_ and __init__.py", []),
        ("\ud800 **x**", "\N{REPLACEMENT CHARACTER} x", [("bold", "x")]),
    ],
)  # fmt: skip
def test_each_form_of_markdown_is_text_with_styles_over_it(source, text, styles):
    piece = one(source)
    assert text is None or piece.text == text
    assert [each for each in styled(piece) if each in styles or text is not None] == styles


def test_an_entity_is_given_by_the_names_of_the_bot_api():
    assert [entity.as_dict() for entity in one("[a](https://b.c)\n```py\nx\n```").entities] == [
        {"type": "text_link", "offset": 0, "length": 1, "url": "https://b.c"},
        {"type": "pre", "offset": 3, "length": 1, "language": "py"},
    ]


@pytest.mark.parametrize(
    "url", ["tg://user?id=1", "javascript:alert(1)", "data:text/html,x", "/relative", "http://"]
)
def test_an_address_that_is_not_of_the_web_is_shown_and_never_linked(url: str):
    piece = one(f"[label]({url})")
    assert piece.text == f"label ({url})"
    assert styled(piece) == [("code", url)]
    assert one("[\u200b](https://x.y)").text.endswith("https://x.y"), "a link cannot hide"


@pytest.mark.parametrize("nothing", ["", " \n\t", "\u200b", "```\n```", "#", "\x00"])
def test_nothing_visible_is_no_piece(nothing: str):
    assert render(nothing) == []


def test_what_is_cut_is_cut_where_it_stays_readable():
    code = render("```py\n" + "    x = 1\n" * 50 + "```", 100)
    assert len(code) > 3
    assert {(e.type, e.language) for piece in code for e in piece.entities} == {("pre", "py")}
    assert {line for piece in code for line in piece.text.split("\n")} == {"    x = 1"}
    assert all(p.text.endswith("word") for p in render("word " * 100, 64))
    link = render("w " * 28 + "[a label of words](https://x.y)", 64)
    assert styled(link[1]) == [("text_link", "a label of words")]
    family = "👨‍👩‍👧‍👦"
    assert all(set(p.text.split(family)) == {""} for p in render(family * 40, 64))


def test_a_message_has_no_more_styles_and_addresses_than_telegram_takes_and_none_is_lost():
    pieces = render(" ".join(f"`c{n}`" for n in range(350)))
    assert all(len(p.entities) <= 100 for p in pieces)
    assert [text for p in pieces for _, text in styled(p)] == [f"c{n}" for n in range(350)]
    urls = [f"https://x.y/{'z' * 900}{n}" for n in range(30)]
    pieces = render(" ".join(f"[l]({url})" for url in urls))
    assert max(sum(len(entity.url) for entity in piece.entities) for piece in pieces) < 9000
    assert [entity.url for piece in pieces for entity in piece.entities] == urls


def test_the_plain_fallback_is_the_source_in_pieces():
    assert render_plain("**a** `b`") == ["**a** `b`"]
    assert all(len(text) <= 64 for text in render_plain("word " * 100, 64))


@pytest.mark.parametrize(
    "source",
    ["[" * 4000, "*a **b " * 600, "`a " * 1300, ">" * 4000 + "x", "\\(" * 2000, "|" * 4000],
)
@pytest.mark.timeout(60)
def test_no_answer_holds_up_the_others(source: str):
    # What took the square of its length would take minutes.
    render(source * 16)
