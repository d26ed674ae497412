"""Conversations and the timeline in a browser: a long tape scrolled, read, searched, and watched as it grows."""

from __future__ import annotations

import re

import pytest
from browser_checks import WITHIN, check_page, drawn, settled, shot
from playwright.async_api import Page, expect

from bot.tape.entries import message
from bot.tape.search import SearchQuery

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: timeline")]
expect.set_options(timeout=WITHIN)

LONG = "/timeline?tape=fake:long"
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"

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


async def test_what_is_hostile_does_nothing_on_any_part_of_the_page(rig, opened):
    await rig.talk("fake:1", (HOSTILE, f"{HOSTILE} **bold** ![x](https://tracker.invalid/x.png)"))
    page = await opened("/timeline?tape=fake:1")
    await rows(page)
    for number in range(1, await rig.store.version("fake:1") + 1):
        await page.locator(f"#entry-{number}").click()
        await expect(page.locator("dialog h2")).to_have_text(f"Entry {number}")
        await page.locator("dialog summary").click()
        assert await page.locator("dialog img, dialog script").count() == 0
        await page.keyboard.press("Escape")
        await expect(page.locator("dialog")).to_have_count(0)
    await page.goto(f"{rig.url}/timeline?tape=fake:1&words=document")
    assert await page.title() != "owned"
    assert await page.locator("main img, main script").count() == 0


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


async def test_chapters_lead_to_their_places(rig, opened):
    await rig.long_tape(3_000)
    page = await opened(LONG)
    await rows(page)
    await page.get_by_role("link", name="Chapter 1 ").click()
    marks = [one.at for one in await rig.store.list_anchors("fake:long") if one.is_boundary]
    await rows(page)
    await expect(page.locator(".tl-row.current")).to_contain_text(f"#{marks[0]}")


async def test_what_is_found_leads_to_its_place_in_the_timeline(rig, opened):
    await rig.long_tape(3_000)
    hits = await rig.store.search(SearchQuery("harbour 200", tapes=("fake:long",), limit=1))
    page = await opened(LONG)
    await page.fill("#words", "harbour 200")
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="Show in the timeline").first.click()
    await page.wait_for_url(re.compile("entry="))
    await rows(page)
    await expect(page.locator(".tl-row.current")).to_contain_text(f"#{hits[0].entry.id}")


async def test_conversations_are_put_in_order_though_an_answer_knew_of_no_more_of_them(rig, opened):
    await rig.get("/sessions")
    for number in range(60):
        await rig.store.create_tape(f"fake:{number}", f"Conversation {number}")
    # As while another page's request reads them: one at a time does.
    async with rig.app.state.directory._reading:
        page = await opened("/sessions")
        await expect(page.locator("#unread")).to_have_count(1)
        # It asks on after such an answer.
        async with page.expect_response(re.compile("/api/v1/sessions")):
            pass
    await expect(page.locator("#unread")).to_have_count(0)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
async def test_pages_can_be_used_by_everybody(rig, opened, dark, phone):
    await rig.talk("fake:1", "I live in Hamburg.", ("And?", "**Yes.**"), "/problem new Boats")
    await rig.long_tape(500)
    name = f"{'dark' if dark else 'light'}-{'phone' if phone else 'wide'}"
    page = await opened("/sessions", dark=dark, phone=phone)
    await check_page(page)
    await shot(page, f"sessions-{name}")
    await page.goto(f"{rig.url}/timeline?tape=fake:1&entry=6")
    await rows(page)
    await check_page(page)
    await shot(page, f"timeline-{name}")
    await page.focus("#tape")
    await page.keyboard.press("Enter")
    await expect(page.locator("dialog h2")).to_have_text("Entry 6")
    await check_page(page)
    await shot(page, f"entry-{name}")
    await page.goto(f"{rig.url}/timeline?tape=fake:1&words=hamburg&category=message")
    await check_page(page)
    await shot(page, f"found-{name}")


async def test_rows_grow_with_the_text_that_somebody_has_set(rig, opened):
    await rig.long_tape(400)
    page = await opened(LONG)
    await rows(page)
    row = page.locator(".tl-live .tl-row").last
    before = (await row.bounding_box())["height"]
    await page.evaluate(
        """() => {
          const larger = new CSSStyleSheet();
          larger.replaceSync("html { font-size: 200% }");
          document.adoptedStyleSheets = [larger];
        }"""
    )
    await page.set_viewport_size({"width": 1280, "height": 1000})
    await expect(row).to_have_css("height", f"{2 * before:g}px")
    await rows(page)
