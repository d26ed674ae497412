"""Buttons of the inspector that give commands, and the two pages that are made of them."""

from __future__ import annotations

import pytest
from browser_checks import WITHIN, OpenPage, Watch, close_answer, shot
from playwright.async_api import Page, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: commands")]
expect.set_options(timeout=WITHIN)

TAPE = "web:local"


async def give(page: Page, *commands: str) -> None:
    """Give commands in the owner's conversation, as the page itself would."""
    for text in commands:
        await page.evaluate(
            """async ([session, text]) => {
                const { post } = await import("/static/site.js");
                await post("/commands", { session, text });
            }""",
            [TAPE, text],
        )


async def test_button_asks_for_a_text_gives_the_command_and_shows_the_answer(
    open_page: OpenPage,
) -> None:
    page = await open_page()
    await give(page, "/problem new First")
    await page.goto(page.url + f"problems?tape={TAPE}")
    # Pages whose own script imports site.js have it twice: a press must count once.
    await page.evaluate("import('/static/site.js').then(() => null)")
    button = page.get_by_role("button", name="New problem…")
    await button.click()
    asked = page.get_by_role("dialog")
    await expect(asked.get_by_role("textbox")).to_be_focused()
    await page.keyboard.type("Taxes & $& more")
    await page.keyboard.press("Enter")
    told = page.get_by_role("dialog", name="/problem new")
    await expect(told).to_contain_text("Taxes & $& more")
    await shot(page, "command-answer")
    await close_answer(page)
    # What is shown is as it is now.
    current = page.locator("article.current")
    await expect(current).to_contain_text("Taxes & $& more")
    await expect(page.locator("article")).to_have_count(3)


async def test_buttons_of_an_answer_go_on_in_its_place(open_page: OpenPage) -> None:
    page = await open_page()
    await give(page, "/reference set deadline Friday", "/reference set deadline Monday")
    await page.goto(page.url + f"reference?tape={TAPE}&key=deadline")
    await page.get_by_role("button", name="Remove deadline").click()
    removed = page.get_by_role("dialog", name="/reference remove")
    await expect(removed).to_contain_text("Removed")
    await removed.get_by_role("button", name="Undo").click()
    back = page.get_by_role("dialog", name="/reference rollback")
    await expect(back).to_contain_text("As in version 2 again")
    await expect(page.get_by_role("dialog")).to_have_count(1)
    await close_answer(page)
    await expect(page.locator("#versions .timeline > li")).to_have_count(4)
    await page.get_by_role("button", name="Back to v1", exact=True).click()
    await expect(page.get_by_role("dialog")).to_contain_text("As in version 1 again")
    await close_answer(page)
    await expect(page.locator("#versions .current")).to_contain_text("v5")
    await expect(page.locator("article").first).to_contain_text("Friday")


async def test_who_is_no_longer_logged_in_is_led_to_the_login_and_back(
    open_page: OpenPage, watch: Watch
) -> None:
    watch.expected = ("the server responded with a status of 401",)
    page = await open_page()
    await give(page, "/problem new First")
    await page.goto(page.url + f"problems?tape={TAPE}")
    await page.context.clear_cookies()
    await page.get_by_role("button", name="Pause First").click()
    await page.wait_for_url("**/login?next=%2Fproblems%3Ftape%3Dweb%3Alocal")
