"""What Telegram is given for an answer."""

from __future__ import annotations

import pytest

from channels.telegram.render import FormattedText, render, render_plain


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


def test_styles_become_entities_over_the_text_that_they_style():
    piece = one("**bold** *it* ~~gone~~ `code` ||secret||")
    assert piece.text == "bold it gone code secret"
    assert styled(piece) == [
        ("bold", "bold"),
        ("italic", "it"),
        ("strikethrough", "gone"),
        ("code", "code"),
        ("spoiler", "secret"),
    ]


def test_offsets_are_counted_as_telegram_counts_them():
    assert styled(one("👍👍 **b** 日本 `c`")) == [("bold", "b"), ("code", "c")]
    assert one("👍 **b**").entities[0].offset == 3


def test_an_entity_is_given_by_the_names_of_the_bot_api():
    assert [entity.as_dict() for entity in one("[a](https://b.c)\n```py\nx\n```").entities] == [
        {"type": "text_link", "offset": 0, "length": 1, "url": "https://b.c"},
        {"type": "pre", "offset": 3, "length": 1, "language": "py"},
    ]


def test_code_holds_no_style_and_is_held_by_none():
    assert styled(one("**bold `code` more**")) == [
        ("bold", "bold"),
        ("code", "code"),
        ("bold", "more"),
    ]
    assert styled(one("# *A* **b**")) == [("bold", "A b"), ("italic", "A")]


def test_an_unfinished_code_block_is_code_already():
    assert styled(one("text\n```python\nprint(1)\n\nx = 2")) == [("pre", "print(1)\n\nx = 2")]


@pytest.mark.parametrize(
    ("info", "language", "text"),
    [
        ("rust,ignore", "rust", "x"),
        ("js {1,3}", "js", "x"),
        ('py title="a.py"', "py", "x"),
        ("py:a/b.py", "py", "a/b.py\nx"),
        ("bash pip install y", "bash", "pip install y\nx"),
        ("слово", None, "слово\nx"),
        ("c++", "c++", "x"),
    ],
)
def test_code_beside_a_fence_is_not_lost(info: str, language: str | None, text: str):
    piece = one(f"```{info}\nx\n```")
    assert (piece.text, piece.entities[0].language) == (text, language)


def test_a_link_cannot_hide():
    assert one("[\u200b](https://x.y)").text.endswith("https://x.y")


def test_code_in_a_list_stands_on_its_own_lines():
    assert one("- item\n  ```py\n  a\n  ```\n  tail\n- b").text == "• item\na\ntail\n• b"


def test_lists_tasks_and_numbers_are_shown_as_text():
    assert one("- [ ] todo\n- [x] done\n  - in\n    1. one\n    2. two\n- ").text == (
        "☐ todo\n☑ done\n  • in\n    1. one\n    2. two\n•"
    )
    assert one("7. a\n\n   b\n\n8. c").text == "7. a\n  b\n8. c"


def test_a_table_is_aligned_and_monospaced_in_every_script():
    piece = one("| a | b |\n|---|--:|\n| **1** | x |\n| 日本 | 22 |")
    assert piece.text == "a    │  b\n─────┼───\n1    │  x\n日本 │ 22"
    assert styled(piece) == [("pre", piece.text)]


def test_a_table_keeps_its_links_and_its_surplus_cells():
    piece = one("| a | b |\n|---|---|\n| [l](https://x.y) | 1 | more |")
    assert "more" in piece.text
    assert piece.entities[-1].url == "https://x.y"
    assert styled(piece)[-1] == ("text_link", "l")


def test_html_is_text():
    source = "a <b>bold</b> List<int>\n\n<script>alert(1)</script>\n\n<div>\nhello\n</div>"
    assert one(source) == FormattedText(source)
    assert one("a<br>b").text == "a\nb"


def test_a_picture_is_a_link():
    piece = one("![alt](https://x.y/z.png) ![](https://x.y/q.png)")
    assert piece.text == "alt https://x.y/q.png"
    assert [entity.url for entity in piece.entities] == ["https://x.y/z.png", "https://x.y/q.png"]
    assert [e.url for e in one("[![badge](http://i.j)](http://k.l)").entities] == ["http://k.l"]


@pytest.mark.parametrize(
    "url",
    [
        "tg://user?id=1",
        "tg://emoji?id=5368324170671202286",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "/relative",
        "http://",
        "#part",
    ],
)
def test_an_address_that_is_not_of_the_web_is_shown_and_never_linked(url: str):
    piece = one(f"[label]({url})")
    assert piece.text == f"label ({url})"
    assert styled(piece) == [("code", url)]


def test_telegrams_own_addresses_are_code_wherever_they_stand():
    assert styled(one("<tg://user?id=3> and tg://user?id=4")) == [
        ("code", "tg://user?id=3"),
        ("code", "tg://user?id=4"),
    ]


def test_formulae_are_readable():
    assert one(r"\(x^2 + \frac{1}{2}\)").text == "x² + ½"
    assert styled(one(r"so \[ E = mc^2 \] holds")) == [("pre", "E = mc²")]


def test_a_formula_that_would_lose_something_is_shown_as_written():
    assert one(r"$\frac{$ and \(see this\)").text == r"$\frac{$ and (see this)"


def test_dollars_of_money_shells_and_code_stay():
    for text in ("costs $5 and $6", "PATH=$HOME/bin:$PATH", "$10.49 (~$11.20)"):
        assert one(text) == FormattedText(text)
    assert (
        one("`\\(\\alpha\\)`\n```\n\\[a-z\\]\\sum\n```").text == "\\(\\alpha\\)\n\n\\[a-z\\]\\sum"
    )


def test_what_looks_like_the_target_of_a_link_is_not_lost():
    assert one("[Result]: 42").text == "[Result]: 42"
    assert one("see [1]\n\n[1]: http://a.b").text == "see 1"
    assert one("a[^1]\n\n[^1]: foot").text == "a[1]\n\n[1] foot"


def test_bars_tildes_and_mentions_are_text():
    for text in ("a || b || c", "~5 and ~6", "@everyone @somebody #tag"):
        assert one(text) == FormattedText(text)


def test_a_quote_in_a_quote_is_one_quote():
    assert styled(one("> a\n> > b\n\nc")) == [("blockquote", "a\n\nb")]


@pytest.mark.parametrize("nothing", ["", " \n\t", "\u200b", "```\n```", "#", "\ufe0f", "\x00"])
def test_nothing_visible_is_no_piece(nothing: str):
    assert render(nothing) == []


def test_half_a_character_is_replaced():
    assert one("\ud800 **x**").text == "\N{REPLACEMENT CHARACTER} x"


def test_code_that_is_cut_goes_on_as_code_of_its_language():
    pieces = render("```py\n" + "    x = 1\n" * 50 + "```", 100)
    assert len(pieces) > 3
    for piece in pieces:
        assert [(e.type, e.language, e.length) for e in piece.entities] == [
            ("pre", "py", len(piece.text))
        ]
        assert set(piece.text.split("\n")) == {"    x = 1"}


def test_paragraphs_then_lines_then_words_are_kept_whole():
    assert [p.text for p in render("a " * 20 + "\n\n" + "b " * 20, 64)] == [
        ("a " * 20).strip(),
        ("b " * 20).strip(),
    ]
    assert all(p.text.endswith("word") for p in render("word " * 100, 64))


def test_a_link_is_not_parted():
    pieces = render("w " * 28 + "[a label of words](https://x.y)", 64)
    assert styled(pieces[1]) == [("text_link", "a label of words")]


def test_a_family_is_not_parted():
    family = "👨‍👩‍👧‍👦"
    pieces = render(family * 40, 64)
    assert all(set(p.text.split(family)) == {""} for p in pieces)
    flags = render("🇩🇪" * 40, 66)
    assert all(len(p.text) % 2 == 0 for p in flags)


def test_a_message_has_no_more_styles_than_telegram_shows_and_none_is_lost():
    pieces = render(" ".join(f"`c{n}`" for n in range(350)))
    assert all(len(p.entities) <= 100 for p in pieces)
    assert [text for p in pieces for _, text in styled(p)] == [f"c{n}" for n in range(350)]


def test_a_message_has_no_more_addresses_than_telegram_takes_and_none_is_lost():
    urls = [f"https://x.y/{'z' * 900}{n}" for n in range(30)]
    pieces = render(" ".join(f"[l]({url})" for url in urls))
    for piece in pieces:
        assert sum(len(entity.url) for entity in piece.entities) < 9000
    assert [entity.url for piece in pieces for entity in piece.entities] == urls


def test_the_plain_fallback_is_the_source_in_pieces():
    assert render_plain("**a** `b`") == ["**a** `b`"]
    assert all(len(text) <= 64 for text in render_plain("word " * 100, 64))
    with pytest.raises(ValueError, match="at least 64"):
        render_plain("a", 10)


@pytest.mark.parametrize(
    "source",
    ["[" * 4000, "*a **b " * 600, "`a " * 1300, ">" * 4000 + "x", "\\(" * 2000, "|" * 4000],
)
@pytest.mark.timeout(60)
def test_no_answer_holds_up_the_others(source: str):
    # What took the square of its length would take minutes.
    render(source * 16)


def test_a_command_alone_can_be_tapped_and_one_with_words_is_code():
    (piece,) = render("See `/help`, or send `/memory clear yes`.")
    assert piece.text == "See /help, or send /memory clear yes."
    assert [(one.type, one.offset) for one in piece.entities] == [("code", 19)]


@pytest.mark.parametrize(
    "source",
    [
        "https://host/_a_ and https://host/_a_/_b_",
        "see https://host/*a*/***b***",
        "https://host/~~a~~ and ~b~",
        "(https://host/a_(b)_c)",
        "snake_case_words, __init__ and __init__.py",
        "object.__frobnicate__()",
    ],
)
def test_addresses_and_names_keep_the_signs_of_emphasis_that_are_a_part_of_them(source: str):
    piece = one(source)
    assert (piece.text, piece.entities) == (source, ())


def test_emphasis_around_an_address_or_behind_it_stays():
    piece = one("**https://host/_a_** _it_ [x](https://host/_b_)_too_ __bold__")
    assert piece.text == "https://host/_a_ it xtoo bold"
    assert styled(piece) == [
        ("bold", "https://host/_a_"),
        ("italic", "it"),
        ("text_link", "x"),
        ("italic", "too"),
        ("bold", "bold"),
    ]
