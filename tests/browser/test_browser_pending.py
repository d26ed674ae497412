"""Facts from an import are accepted on the site in one go, with the words beside them."""

from __future__ import annotations

import json
from pathlib import Path

import anyio.to_thread
import pytest
from browser_chat import answers, say
from browser_checks import WITHIN, Watch, check_page, close_answer
from browser_site import running_site
from playwright.async_api import Browser, expect

from bot.cli.import_assistants import import_assistant
from bot.runtime.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: memory")]
expect.set_options(timeout=WITHIN)

MEMORIES = [{"conversations_memory": "Likes tea.\n\nHas a boat.\n\nLives in Bonn."}]


async def test_chosen_facts_are_accepted_together(browser: Browser, tmp_path: Path):
    (tmp_path / "memories.json").write_text(json.dumps(MEMORIES))

    def bring() -> int:
        settings = load_settings(home=tmp_path / "home", timezone="UTC")
        return import_assistant(settings, "claude", tmp_path / "memories.json", person="web:local")

    assert await anyio.to_thread.run_sync(bring) == 0
    async with running_site(tmp_path) as site:
        watch = Watch(site.url)
        context = await browser.new_context()
        watch.over(context)
        page = await context.new_page()
        await page.goto(await site.link())
        await page.wait_for_url(f"{site.url}/")
        await say(page, "/memory pending")
        await expect(answers(page).first).to_contain_text("3 pending")
        await page.goto(f"{site.url}/memory?tape=web:local")
        accept = page.get_by_role("button", name="Accept chosen")
        await expect(accept).to_be_disabled()
        await page.get_by_label("Choose fact 1").check()
        await page.get_by_label("Choose fact 3").check()
        await check_page(page)
        await expect(page.locator(".card.waiting").first).to_contain_text(
            "Claude's memory (Claude)"
        )
        await accept.click()
        await expect(page.locator("dialog")).to_contain_text("Accepted: 1. Likes tea.")
        await close_answer(page)
        await expect(page.locator("#fact-list")).to_contain_text("Lives in Bonn.")
        await expect(page.locator(".card.waiting")).to_have_count(1)
        await context.close()
        watch.check()
