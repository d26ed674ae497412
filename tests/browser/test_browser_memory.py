"""Memory in a browser: found while typing, corrected, compared, and forgotten for good."""

from __future__ import annotations

import pytest
from browser_checks import WITHIN, OpenPage, Watch, check_page, close_answer
from playwright.async_api import Page, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: memory")]
expect.set_options(timeout=WITHIN)

MEMORY = "/memory?tape=web:local"
HOSTILE = "<img src=x onerror=\"document.title='owned'\"> is my favourite tag"
GIVE = """async (text) => {
  const site = await import("/static/site.js");
  return (await site.post("/commands", { session: "web:local", text })).text;
}"""


async def give(page: Page, *commands: str) -> list[str]:
    """Give commands in the owner's own conversation; return the answers."""
    return [await page.evaluate(GIVE, one) for one in commands]


async def press(page: Page, name: str) -> None:
    await page.get_by_role("button", name=name, exact=True).first.click()


async def test_facts_are_found_while_somebody_types_and_corrected_in_place(
    open_page: OpenPage, watch: Watch
):
    watch.expected = ("the server responded with a status of 401",)
    page = await open_page("/sessions")
    await give(
        page, "/memory add I live in Bonn", "/memory add I like tea", f"/memory add {HOSTILE}"
    )
    await page.goto(page.url.removesuffix("/sessions") + MEMORY)
    facts = page.locator("#fact-list .fact")
    await expect(facts).to_have_count(3)
    await page.get_by_role("searchbox").press_sequentially("favourite")
    await expect(facts).to_have_count(1)
    await expect(facts).to_contain_text("<img src=x")
    assert await page.title() != "owned"
    await page.get_by_role("searchbox").fill("bonn")
    await expect(facts).to_contain_text("I live in Bonn")
    await check_page(page)
    # Loaded twice, as by a page whose own script imports it, it gives a command once.
    await page.evaluate("import('/static/site.js').then(() => null)")
    given: list[str] = []
    page.on("request", lambda one: given.append(one.url) if one.method == "POST" else None)
    await press(page, "Edit fact 1")
    await page.locator("dialog textarea").fill("I live in Graz")
    await page.keyboard.press("Enter")
    await expect(page.locator("dialog")).to_contain_text("Changed")
    await close_answer(page)
    await page.get_by_role("searchbox").fill("graz")
    await expect(facts).to_contain_text("I live in Graz")
    assert [url.rpartition("/")[2] for url in given] == ["commands"]
    # Who is no longer logged in is led to the login, and back.
    await page.context.clear_cookies()
    await press(page, "Edit fact 4")
    await page.locator("dialog textarea").fill("I live in Linz")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/login?next=%2Fmemory%3Ftape%3D*")
