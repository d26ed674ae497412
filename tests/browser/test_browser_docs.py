"""The documentation as a site: built without a warning, and read in a browser, on a phone, and by everybody."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import anyio
import pytest
from browser_checks import (
    WITHIN,
    Watch,
    assert_accessible,
    assert_fits,
    assert_one_heading,
    new_page,
    shot,
)
from playwright.async_api import Browser, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
expect.set_options(timeout=WITHIN)

ROOT = Path(__file__).parents[2]
SAMPLE = (
    "docs/index",
    "docs/tour",
    "docs/howto/link",
    "docs/memory-commands",
    "docs/reference/settings",
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    """Build the site as ``make docs`` does: a broken link, or a page that nothing leads to, is an error."""
    site = tmp_path / "site"
    options = "-q -W --keep-going -c docs/website -d".split()
    command = [sys.executable, "-m", "sphinx", *options, str(tmp_path / "read"), ".", str(site)]
    done = await anyio.run_process(command, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_the_docs_build_without_a_warning_and_are_read_by_everybody(
    browser: Browser, address: str
) -> None:
    watch = Watch(address)
    for phone in (False, True):
        page = await new_page(browser, watch, dark=phone, phone=phone)
        for name in SAMPLE:
            await page.goto(f"{address}/{name}.html")
            await assert_one_heading(page)
            await assert_fits(page)
            await assert_accessible(page)
            await shot(page, f"docs-{name.replace('/', '-')}-{phone}")
        await page.goto(f"{address}/search.html?q=passphrase")
        await expect(page.locator("#search-results a").first).to_be_visible()
        await page.goto(f"{address}/")
        await page.wait_for_url(f"{address}/docs/index.html")
        await page.context.close()
    watch.check()
