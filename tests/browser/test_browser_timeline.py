"""Conversations and the timeline in a browser: a long tape scrolled, read, searched, and watched as it grows."""

from __future__ import annotations

import re

import pytest
from browser_checks import WITHIN, drawn, settled
from playwright.async_api import Page, expect

from bot.tape.entries import message

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: timeline")]
expect.set_options(timeout=WITHIN)

LONG = "/timeline?tape=fake:long"

ROWS = """() => {
  const view = document.getElementById("tape");
  const { top, height } = view.getBoundingClientRect();
  const rows = [...view.querySelectorAll(".tl-row")].map((row) => {
    const box = row.getBoundingClientRect();
    return { id: Number(row.dataset.id), top: box.top - top, bottom: box.bottom - top };
  }).filter((row) => row.bottom > 1 && row.top < height - 1);
  const torn = rows.slice(1).filter((row, at) => row.id !== rows[at].id + 1 || Math.abs(row.top - rows[at].bottom) > 1);
  return { first: rows[0].id, last: rows.at(-1).id, top: rows[0].top, bottom: rows.at(-1).bottom - height, torn: torn.length,
    made: view.querySelectorAll(".tl-row").length };
}"""
MOVED = f"(least) => ({ROWS})().first >= least"
STILL = """() => {
  const { scrollTop } = document.getElementById("tape");
  const still = window.scrolledTo === scrollTop;
  window.scrolledTo = scrollTop;
  return still;
}"""


async def rows(page: Page) -> dict[str, float]:
    """Return which rows are in view, once what was scrolled is drawn and all of them were read."""
    await expect(page.locator("#tape .tl-live")).to_have_count(1)
    await drawn(page)
    await settled(page)
    seen = await page.evaluate(ROWS)
    assert seen["torn"] == 0
    assert seen["top"] <= 1
    assert seen["made"] < 100
    return seen


@pytest.mark.parametrize(
    "entries",
    [20_000, *(pytest.param(many, marks=pytest.mark.night) for many in (100_000, 250_000))],
)
async def test_a_long_tape_is_scrolled_without_holes(rig, opened, entries):
    await rig.long_tape(entries)
    version = await rig.store.version("fake:long")
    page = await opened("/sessions")
    await settled(page)
    await page.goto(rig.url + LONG)
    assert (await rows(page))["last"] == version
    await page.focus("#tape")
    await page.keyboard.press("Home")
    assert (await rows(page))["first"] == 1
    await page.keyboard.press("PageDown")
    await page.keyboard.press("PageDown")
    assert 1 < (await rows(page))["first"] < 30
    await page.evaluate(
        "() => { const v = document.getElementById('tape'); v.scrollTop = v.scrollHeight / 2; }"
    )
    middle = (await rows(page))["first"]
    assert abs(middle - version / 2) < version / 100
    await page.mouse.move(700, 500)
    await page.mouse.wheel(0, 360)
    # A wheel scrolls by and by.
    await page.wait_for_function(MOVED, arg=middle + 5)
    await page.wait_for_function(STILL, polling=200)
    assert 5 <= (await rows(page))["first"] - middle <= 15
    for _ in range(20):
        await page.evaluate("() => { document.getElementById('tape').scrollTop += 30_000; }")
        await page.evaluate("() => new Promise(requestAnimationFrame)")
    await rows(page)
    await page.keyboard.press("End")
    seen = await rows(page)
    assert seen["last"] == version
    assert abs(seen["bottom"]) <= 3


async def test_an_entry_of_a_link_is_in_view_and_opens_by_keys(rig, opened):
    await rig.long_tape(5_000)
    page = await opened(f"{LONG}&entry=2000")
    seen = await rows(page)
    assert seen["first"] < 2000 < seen["last"]
    await expect(page.locator(".tl-row.current")).to_contain_text("#2000")
    await page.keyboard.press("g")
    await page.keyboard.type("777")
    await page.keyboard.press("Enter")
    await rows(page)
    await expect(page.locator(".tl-row.current")).to_contain_text("#777")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.locator("dialog h2")).to_have_text("Entry 778")
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_have_count(0)
    await expect(page.locator("#tape")).to_be_focused()
    await expect(page).to_have_url(re.compile("entry=778"))
    await page.keyboard.press("/")
    await expect(page.locator("#words")).to_be_focused()


async def test_the_page_grows_with_the_tape_and_leaves_a_reader_where_they_are(rig, opened):
    await rig.long_tape(1_000)
    page = await opened(LONG)
    await rows(page)
    await rig.store.append("fake:long", message("user", "one more"))
    await expect(page.locator("#tape")).to_contain_text("one more")
    await page.focus("#tape")
    await page.keyboard.press("Home")
    before = await rows(page)
    await rig.store.append("fake:long", message("user", "two more"))
    await expect(page.locator("#newest")).to_have_text("1 new")
    assert await rows(page) == before
    await page.locator("#newest").click()
    await expect(page.locator(".tl-row.current")).to_contain_text("two more")
    await expect(page.locator("#newest")).to_have_text("Newest")


async def test_words_that_are_erased_leave_a_page_that_is_open(rig, opened):
    await rig.talk("fake:1", "My cat is called Xylophone.")
    page = await opened("/timeline?tape=fake:1")
    await expect(page.locator("#tape")).to_contain_text("Xylophone")
    await rig.talk("fake:1", "/memory forget Xylophone")
    [button, *_] = rig.channel("fake").answers[-1].buttons
    await rig.talk("fake:1", button.command)
    await expect(page.locator("#tape")).not_to_contain_text("Xylophone")
