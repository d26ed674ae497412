"""What becomes of web pages that are read, hostile ones among them."""

from __future__ import annotations

import anyio
import pytest

from bot.bus.media.documents import read_page

ADDRESS = "https://page.example/news/"
PARAGRAPH = "<p>The ferry to the island leaves at nine, and it comes back at noon every day.</p>"
PAGE = (
    "<html><head><title>Ferry times</title><meta property='article:published_time' content='2026-05-06'>"
    f"</head><body><nav>Home Contact</nav><article><h1>Ferry times</h1>{PARAGRAPH * 4}"
    "<p>See the <a href='map'>map of the port</a>.</p></article><script>steal()</script></body></html>"
)


async def test_a_page_is_read_as_its_main_text_with_title_date_and_whole_links():
    found = await read_page(PAGE, ADDRESS)
    assert (found.title, found.date, found.note) == ("Ferry times", "2026-05-06", None)
    assert "leaves at nine" in (found.text or "")
    assert "[map of the port](https://page.example/news/map)" in (found.text or "")
    assert "Contact" not in (found.text or "")
    assert "steal" not in (found.text or "")


@pytest.mark.parametrize(
    "page", ["<html><body><script>draw()</script></body></html>", "", "\0" * 1_000, "<" * 1_000]
)
async def test_a_page_without_text_says_so(page):
    found = await read_page(page, ADDRESS)
    assert found.text is None
    assert "no text" in (found.note or "")


async def test_a_page_of_a_few_words_is_read_as_it_is():
    assert (await read_page("<html><body>It is \ud800 open.</body></html>", ADDRESS)).text == (
        "It is ? open."
    )


async def test_a_long_page_is_cut_with_a_word_that_it_was():
    many = "".join(PARAGRAPH.replace("nine", str(number)) for number in range(200))
    found = await read_page(PAGE.replace(PARAGRAPH, many), ADDRESS, limit=500)
    assert len(found.text or "") == 500
    assert found.note == "only the first 500 characters were read"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 200_000 + "deep",
        "<p>wide</p>" * 200_000,
        "<a href='x'>link</a>" * 100_000,
        "<table><tr><td>" * 50_000,
        "<html><body>" + "&amp;" * 500_000,
        "<!--" * 500_000,
    ],
    ids=lambda page: page[:10],
)
async def test_a_hostile_page_costs_bounded_time(page):
    with anyio.fail_after(30):
        found = await read_page(page, ADDRESS, seconds=4)
    assert found.text or found.note
