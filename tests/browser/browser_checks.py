"""What must hold on every page of the site, whatever a test does there."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

_CUT = ("WebSocket connection to", "net::ERR_CONNECTION", "net::ERR_EMPTY_RESPONSE")
"""How the browser itself tells of a server that is gone."""

WITHIN = 60_000
"""Milliseconds that something on a page may take before a test fails."""

OpenPage = Callable[..., Awaitable[Page]]
"""Of the fixture ``open_page``: called with a path, ``dark`` and ``phone``."""

SCREENSHOTS = os.environ.get("TAPEBOT_SCREENSHOTS")


@dataclass  # Playwright keeps its own beside methods that it calls: no slots.
class Watch:
    """Everything a browser's pages complained of, and asked others for."""

    url: str
    is_cut: bool = False
    expected: tuple[str, ...] = ()
    complaints: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("request", self._request)
        context.on("weberror", lambda error: self._complain(f"uncaught: {error.error}"))

    def check(self) -> None:
        """Fail where there was an error in the console, a refusal of the CSP, or another host."""
        assert self.complaints == []

    def _console(self, message: ConsoleMessage) -> None:
        # A refusal of the CSP is an error in the console, too.
        if message.type == "error" and not (
            self.is_cut and any(part in message.text for part in _CUT)
        ):
            self._complain(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in ("data", "blob"):
            return
        if address.netloc != urlsplit(self.url).netloc:
            self._complain(f"a request to {request.url}")

    def _complain(self, text: str) -> None:
        if not any(part in text for part in self.expected):
            self.complaints.append(text)


async def new_page(
    browser: Browser,
    watch: Watch,
    *,
    dark: bool = False,
    phone: bool = False,
    language: str = "en-GB",
) -> Page:
    context = await browser.new_context(
        color_scheme="dark" if dark else "light",
        viewport={"width": 360, "height": 740} if phone else {"width": 1280, "height": 900},
        has_touch=phone,
        is_mobile=phone,
        locale=language,
        timezone_id="UTC",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(WITHIN)
    watch.over(context)
    return await context.new_page()


async def assert_accessible(page: Page) -> None:
    """Fail where axe finds what keeps people out: violations that are serious or critical."""
    # What rises or fades in is paler than it will be.
    await page.evaluate(
        "Promise.all(document.getAnimations()"
        ".filter((one) => one.effect.getComputedTiming().endTime !== Infinity)"
        ".map((one) => one.finished.catch(() => null)))"
    )
    found = await Axe().run(page)
    bad = [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} {node['failureSummary']}"
        for one in found.response["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert bad == []


async def assert_one_heading(page: Page) -> None:
    """Fail where a page has not one heading of the first level."""
    await expect(page.locator("h1")).to_have_count(1)


async def assert_fits(page: Page) -> None:
    wide = await page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide[0] <= wide[1]


async def settled(page: Page) -> None:
    """Wait until a page has what it begins with: some rows come later, and some pages load themselves anew."""
    # Conversations and figures that were not read in time: then the page is loaded anew.
    await expect(page.locator("#unread")).to_have_count(0)
    # What is asked for may stand there long before the page is whole and its scripts have run.
    await page.wait_for_load_state()
    await expect(page.locator("#tape .tl-rows:not(.tl-live)")).to_have_count(0)
    await expect(page.locator("#tape .tl-row[aria-busy=true]")).to_have_count(0)


async def drawn(page: Page) -> None:
    """Wait until what was done to a page is drawn: it hears of a scroll, and of sizes, with the next frame."""
    await page.evaluate(
        "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
    )


async def close_answer(page: Page) -> None:
    """Close the dialog of a command's answer, and wait until the page was loaded anew and is whole."""
    # Not for a navigation: that it notes in its history where to go on counts as one.
    before = await page.evaluate("performance.timeOrigin")
    await page.keyboard.press("Escape")
    await page.wait_for_function(
        "(before) => performance.timeOrigin !== before && document.readyState === 'complete'",
        arg=before,
    )


async def check_page(page: Page) -> None:
    """Fail where a page, as it is shown now, breaks what holds for all of them."""
    await settled(page)
    await assert_one_heading(page)
    await assert_fits(page)
    await assert_accessible(page)


async def shot(page: Page, name: str) -> None:
    """Keep a picture for eyes, where a folder for them is named in TAPEBOT_SCREENSHOTS."""
    if SCREENSHOTS:
        await page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")
