"""Writing in the chat's box in a browser: drafts, commands and files, by keys alone, and what is refused in words."""

from __future__ import annotations

import re
import signal

import pytest
from browser_chat import BOX, answers, said, say, until_quiet
from browser_checks import WITHIN, Watch, check_page, shot
from browser_site import Site
from playwright.async_api import Page, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: chat")]
expect.set_options(timeout=WITHIN)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgaPj/HwAEgQKA6qKmOQAAAABJRU5ErkJggg=="
"""A PNG of one pixel, in base64."""


async def test_draft_and_unsent_messages_outlive_a_reload(
    page: Page, site: Site, watch: Watch
) -> None:
    await page.locator(BOX).fill("a draft\nof two lines")
    await page.reload()
    await expect(page.locator(BOX)).to_have_value("a draft\nof two lines")
    # The page's own network is cut: what is said stays in the tab, over a reload from its cache, too.
    watch.is_cut = True
    await site.program.end(signal.SIGKILL)
    await say(page, "kept in the tab")
    await expect(said(page)).to_have_count(1)
    kept = await page.evaluate("Object.values(sessionStorage).join()")
    assert "kept in the tab" in kept
    await site.program.start()
    await expect(answers(page)).to_have_count(1)
    await until_quiet(page)
    watch.is_cut = False
    # It is let go of when the bot has said that it has it.
    await page.wait_for_function(
        "(text) => !Object.values(sessionStorage).join().includes(text)", arg="kept in the tab"
    )


async def test_commands_are_completed_by_keys_alone(page: Page) -> None:
    box = page.locator(BOX)
    await expect(box).to_be_focused()
    await page.keyboard.type("/mem")
    options = page.get_by_role("option")
    await expect(options).to_have_count(1)
    await expect(box).to_have_attribute("aria-activedescendant", "chat-option-0")
    await check_page(page)
    await page.keyboard.press("Tab")
    await expect(box).to_have_value("/memory ")
    await expect(options).not_to_have_count(1)
    await shot(page, "chat-commands")
    await page.keyboard.type("und")
    await expect(options).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(box).to_have_value("/memory undo")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("listbox", name="Commands")).to_be_hidden()
    await expect(box).not_to_have_attribute("role", re.compile(""))
    await page.keyboard.press("Enter")
    await expect(answers(page)).to_have_count(1)
    await page.keyboard.type("/")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await expect(box).to_have_attribute("aria-activedescendant", "chat-option-1")
    await page.keyboard.press("Escape")
    await expect(box).to_have_value("/")


async def test_dropped_image_is_previewed_sent_and_shown(page: Page) -> None:
    carried = await page.evaluate_handle(
        """(base64) => {
          const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
          const carried = new DataTransfer();
          carried.items.add(new File([bytes], "dot.png", {type: "image/png"}));
          carried.items.add(new File(["plain words"], "notes.txt", {type: "text/plain"}));
          return carried;
        }""",
        PIXEL,
    )
    await page.dispatch_event("#chat-log", "dragenter", {"dataTransfer": carried})
    await expect(page.locator("#chat-drop")).to_be_visible()
    await page.dispatch_event("#chat-log", "drop", {"dataTransfer": carried})
    await expect(page.locator("#chat-drop")).to_be_hidden()
    await expect(page.locator(".chat-file")).to_have_count(2)
    await page.locator(BOX).fill("Look at these")
    await check_page(page)
    await shot(page, "chat-files")
    await page.locator(BOX).press("Enter")
    await expect(answers(page)).to_have_count(1)
    await until_quiet(page)
    image = said(page).locator("img")
    await expect(image).to_have_attribute("alt", "dot.png")
    # It comes from the bot now, and is really there.
    await expect(image).to_have_attribute("src", re.compile("/chat/attachments"))
    assert await image.evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 1
    await expect(said(page).get_by_role("link", name="notes.txt")).to_be_visible()
