"""Real pages of a real program in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio.to_thread
import pytest
from browser_checks import WITHIN, OpenPage, Watch
from browser_process import chromium
from browser_site import Site, running_site
from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from web_rig import Rig, open_web


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """The system's Chromium: one for the whole run, with a profile for each page that is opened."""
    url = await anyio.to_thread.run_sync(chromium)
    async with async_playwright() as playwright:
        running = await playwright.chromium.connect(url, timeout=WITHIN)
        yield running
        await running.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A tapebot with its site, in a folder of its own."""
    async with running_site(tmp_path) as running:
        yield running


@pytest.fixture
async def watch(site: Site) -> Watch:
    """What pages complain of; a test fails of it at its end."""
    return Watch(site.url)


@pytest.fixture
async def open_page(browser: Browser, site: Site, watch: Watch) -> AsyncIterator[OpenPage]:
    """Returns a page where the owner is logged in, each in a browser's profile of its own."""

    async def opened(path: str = "/", *, dark: bool = False, phone: bool = False) -> Page:
        context = await _context(browser, dark=dark, phone=phone)
        watch.over(context)
        page = await context.new_page()
        await page.goto(await site.link())
        await page.wait_for_url(f"{site.url}/")
        if path != "/":
            await page.goto(site.url + path)
        return page

    yield opened
    for context in browser.contexts:
        await context.close()
    watch.check()


async def _context(browser: Browser, *, dark: bool, phone: bool) -> BrowserContext:
    context = await browser.new_context(
        color_scheme="dark" if dark else "light",
        viewport={"width": 360, "height": 640} if phone else {"width": 1100, "height": 760},
        has_touch=phone,
        is_mobile=phone,
        locale="en-GB",
        timezone_id="UTC",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(WITHIN)
    return context


@pytest.fixture
async def page(open_page: OpenPage) -> Page:
    return await open_page()


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """The site over tapes that a test fills as it likes; it has no chat."""
    async with open_web() as rig, rig.served():
        yield rig


@pytest.fixture
async def opened(rig: Rig, browser: Browser) -> AsyncIterator[OpenPage]:
    """Returns a page of the rig's owner; at the end nothing may have been complained of."""
    watch = Watch(rig.url)

    async def opened(path: str, *, dark: bool = False, phone: bool = False) -> Page:
        context = await browser.new_context(
            color_scheme="dark" if dark else "light",
            viewport={"width": 360, "height": 740} if phone else {"width": 1280, "height": 900},
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(WITHIN)
        await context.add_cookies([rig.cookie])
        watch.over(context)
        page = await context.new_page()
        await page.goto(rig.url + path)
        return page

    yield opened
    for context in browser.contexts:
        await context.close()
    watch.check()
