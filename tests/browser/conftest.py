"""Real pages of a real program in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from browser_checks import WITHIN, OpenPage, Watch, new_page
from browser_process import chromium
from browser_site import Site, running_site
from playwright.async_api import Browser, Page, async_playwright
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
    async with running_site(tmp_path) as running:
        yield running


@pytest.fixture
async def watch(site: Site) -> Watch:
    return Watch(site.url)


@pytest.fixture
async def open_page(browser: Browser, site: Site, watch: Watch) -> AsyncIterator[OpenPage]:
    """Returns a page where the owner is logged in, each in a browser's profile of its own."""

    async def opened(path: str = "/", **how: Any) -> Page:
        page = await new_page(browser, watch, **how)
        await page.goto(await site.link())
        await page.wait_for_url(f"{site.url}/")
        if path != "/":
            await page.goto(site.url + path)
        return page

    yield opened
    for context in browser.contexts:
        await context.close()
    watch.check()


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

    async def opened(path: str, **how: Any) -> Page:
        page = await new_page(browser, watch, **how)
        await page.context.add_cookies([rig.cookie])
        await page.goto(rig.url + path)
        return page

    yield opened
    for context in browser.contexts:
        await context.close()
    watch.check()
