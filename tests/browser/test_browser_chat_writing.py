"""Writing in the chat's box in a browser: drafts, commands and files, by keys alone, and what is refused in words."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from browser_chat import BOX, Line, answers, said, say, shown, until_quiet
from browser_checks import WITHIN, Watch, check_page, shot
from browser_site import Site
from playwright.async_api import Page, expect
from waiting import until

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
    await site.end(signal.SIGKILL)
    await say(page, "kept in the tab")
    await expect(said(page)).to_have_count(1)
    kept = await page.evaluate("Object.values(sessionStorage).join()")
    assert "kept in the tab" in kept
    await site.start()
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


async def test_commands_are_completed_for_whoever_types_before_the_connection_is_there(
    page: Page,
) -> None:
    line = Line(is_held=True)
    await line.between(page)
    await page.reload()
    await page.keyboard.type("/mem")
    await expect(page.locator(BOX)).to_have_value("/mem")
    await until(lambda: line.held)
    line.release()
    await expect(page.get_by_role("option")).to_have_count(1)
    await page.keyboard.press("Tab")
    await expect(page.locator(BOX)).to_have_value("/memory ")


async def test_enter_of_a_composition_and_with_shift_send_nothing(page: Page) -> None:
    box = page.locator(BOX)
    await page.keyboard.type("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await box.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    await box.dispatch_event("keydown", {"key": "Enter", "keyCode": 229})
    await expect(box).to_have_value("one\ntwo")
    await page.keyboard.press("Enter")
    await expect(said(page)).to_have_count(1)
    await expect(answers(page)).to_have_count(1)
    assert (await shown(page))[0] == "one\ntwo"


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


async def test_file_that_is_too_large_is_refused_in_words_before_it_is_sent(
    page: Page, tmp_path: Path
) -> None:
    # How large one may be is told with the first word of the connection.
    await say(page, "Hello")
    await expect(answers(page)).to_have_count(1)
    await page.locator("#chat-picker").set_input_files(
        [{"name": "nothing.txt", "mimeType": "text/plain", "buffer": b""}]
    )
    await expect(page.locator("#toasts")).to_contain_text("“nothing.txt” is empty")
    # On the disk: a browser is long about so many bytes that it is given in a message.
    huge = tmp_path / "huge.bin"
    with huge.open("wb") as made:
        made.truncate(45_000_000)
    await page.locator("#chat-picker").set_input_files(huge)
    await expect(page.locator("#toasts")).to_contain_text("“huge.bin” is too large")
    await expect(page.locator(".chat-file")).to_have_count(0)


async def test_message_that_is_too_long_is_refused_in_words_and_stays_in_the_box(
    page: Page,
) -> None:
    await page.locator(BOX).fill("z" * 32_001)
    await page.locator(BOX).press("Enter")
    await expect(page.locator("#toasts")).to_contain_text("32,001 characters")
    await expect(page.locator(BOX)).to_have_value("z" * 32_001)
    await expect(said(page)).to_have_count(0)


async def test_a_refused_file_is_told_between_the_header_and_the_box(page: Page) -> None:
    empty = {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""}
    await page.set_input_files("#chat-picker", [empty])
    # At one moment: it rises, and goes again.
    await page.wait_for_function(
        """() => {
          const [header, toast, box] = ["header.site", "#toasts [role=alert]", ".chat-box"]
            .map((one) => document.querySelector(one)?.getBoundingClientRect());
          return toast && header.bottom < toast.top && toast.bottom <= box.top;
        }"""
    )


async def test_a_file_is_added_and_removed_by_keys_alone(page: Page) -> None:
    attach = page.get_by_role("button", name="Add files")
    # From here on the browser asks us instead of opening a window of its own.
    page.on("filechooser", lambda _: None)
    # The page puts the focus here once, when its script runs.
    await expect(page.locator(BOX)).to_be_focused()
    async with page.expect_file_chooser() as chosen:
        await attach.press("Enter")
    file = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"}
    await (await chosen.value).set_files([file])
    await expect(page.locator(BOX)).to_be_focused()
    remove = page.get_by_role("button", name="Remove notes.txt")
    await remove.focus()
    await page.keyboard.press("Enter")
    await expect(remove).to_have_count(0)
    await expect(attach).to_be_focused()
