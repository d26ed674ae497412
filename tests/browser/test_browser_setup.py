"""The setup in the browser: on the site for owners, and before anybody owns the bot."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from browser_checks import WITHIN, Watch, check_page, new_page, shot
from browser_site import running_site
from playwright.async_api import Browser, Page, expect
from preloaded import environment, open_program
from waiting import until

from testkit.openai_server import Call, Reply, ScriptedOpenAI
from testkit.telegram.server import TelegramServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: setup")]
expect.set_options(timeout=WITHIN)

KEY = "sk-for-tests-only"
WRONG = "123:not-a-token"
REFUSED = "the server responded with a status of 422"
"""What Chromium writes of a form whose answers do not work."""


def answers(body):
    if body.get("tools"):
        return Reply("", calls=(Call("add_numbers", '{"a": 17, "b": 25}'),))
    return Reply("ready")


@asynccontextmanager
async def setup_program(folder: Path, **settings: str) -> AsyncIterator[tuple[Process, str]]:
    """Run ``tapebot setup --web`` within the block; yield it and its link."""
    named = {f"TAPEBOT_{name.upper()}": value for name, value in settings.items()}
    given = environment(folder, **named)
    del given["TAPEBOT_HOME"], given["TAPEBOT_WEB_LISTEN"]
    said = folder / "said.txt"
    with said.open("ab") as out:
        process = await open_program(
            ["-m", "bot", "setup", "--web"],
            environment=given,
            cwd=folder,
            stdout=out,
            stderr=out,
        )
    try:
        found = await until(lambda: re.search(r"http://\S+#\S+\n", said.read_text()), every=0.05)
        yield process, found[0].strip()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.wait()
            await process.aclose()


async def try_and_save(page: Page) -> None:
    await page.get_by_role("button", name="Try and save").click()


async def test_the_first_browser_with_the_link_sets_everything_up(browser: Browser, tmp_path: Path):
    async with (
        ScriptedOpenAI(answers) as model,
        TelegramServer() as telegram,
        setup_program(tmp_path, telegram_api_base=telegram.url) as (process, link),
    ):
        url = link.partition("/enter")[0]
        watch = Watch(url)
        # The program ends with the last page, perhaps before the browser has asked for all it needs.
        watch.expected = (REFUSED, "net::ERR_CONNECTION_REFUSED")
        page = await new_page(browser, watch, phone=True)
        await page.goto(link)
        await page.wait_for_url(f"{url}/setup")
        await check_page(page)
        await page.get_by_role("link", name="Go through all steps").click()
        await page.get_by_label("Language").select_option("de")
        await try_and_save(page)
        await page.get_by_role("link", name="Next: Time zone").click()
        await page.get_by_label("Time zone").fill("Europe/Berln")
        await try_and_save(page)
        await expect(page.get_by_role("alert")).to_contain_text("did you mean Europe/Berlin")
        await page.get_by_label("Time zone").fill("Europe/Berlin")
        await try_and_save(page)
        await page.get_by_role("link", name="Next: Language model").click()
        await page.get_by_label("Model").fill("openai/test")
        await page.get_by_label("Address").fill(model.base_url)
        await page.get_by_label("Key").fill(KEY)
        await try_and_save(page)
        await expect(page.get_by_role("status").first).to_contain_text("calls tools")
        assert KEY not in await page.content()
        await page.get_by_role("link", name="Next: Telegram").click()
        await page.get_by_label("Token").fill(WRONG)
        await try_and_save(page)
        await expect(page.get_by_role("alert")).to_contain_text("does not accept the token")
        assert WRONG not in await page.content()
        await check_page(page)
        await shot(page, "setup-refused")
        await page.get_by_label("Token").fill(telegram.token)
        await try_and_save(page)
        await expect(page.get_by_role("status").first).to_contain_text(
            f"https://t.me/{telegram.me.username}"
        )
        assert telegram.token not in await page.content()
        await check_page(page)
        await page.goto(f"{url}/setup")
        await expect(page.get_by_role("list").first).to_contain_text("openai/test")
        await page.get_by_role("button", name="Finish").click()
        await expect(page.get_by_role("heading")).to_have_text("Done")
        with anyio.fail_after(60):
            assert await process.wait() == 0
        await page.context.close()
        watch.check()
    env = (tmp_path / ".tapebot" / ".env").read_text()
    assert KEY in env
    assert telegram.token in env
    said = (tmp_path / "said.txt").read_text()
    assert "/claim CODE" in said
    assert not any(secret in said for secret in (KEY, WRONG, telegram.token))


async def test_the_link_lets_one_browser_in_and_no_other(browser: Browser, tmp_path: Path):
    async with setup_program(tmp_path) as (_, link):
        url = link.partition("/enter")[0]
        first, second = await browser.new_context(), await browser.new_context()
        stranger = await second.new_page()
        answer = await stranger.goto(f"{url}/setup")
        assert answer is not None
        assert answer.status == 403
        page = await first.new_page()
        await page.goto(link)
        await page.wait_for_url(f"{url}/setup")
        await stranger.goto(link)
        await expect(stranger.locator("main")).to_contain_text("works once")
        refused = await stranger.request.post(f"{url}/setup/timezone", form={"timezone": "UTC"})
        assert refused.status == 403
        forged = await page.request.post(f"{url}/setup/timezone", form={"timezone": "UTC"})
        assert forged.status == 403
        await first.close()
        await second.close()
    assert not (tmp_path / ".tapebot" / "tapebot.toml").exists()


async def test_an_owner_changes_settings_on_the_site(browser: Browser, tmp_path: Path):
    async with TelegramServer() as telegram:
        near = tmp_path / ".env"
        near.write_text(f"# mine\nTAPEBOT_TELEGRAM_API_BASE={telegram.url}\n")
        async with running_site(tmp_path) as site:
            watch = Watch(site.url)
            page = await new_page(browser, watch)
            await page.goto(await site.link())
            await page.wait_for_url(f"{site.url}/")
            await page.get_by_role("link", name="Setup").click()
            await check_page(page)
            await shot(page, "setup")
            await expect(page.locator("main")).to_contain_text("start it again")
            await page.get_by_role("link", name="Telegram").click()
            await page.get_by_label("Token").fill(telegram.token)
            await try_and_save(page)
            await expect(page.locator("main")).to_contain_text(f"Saved in {near}")
            await page.get_by_role("link", name="Time zone").click()
            await page.get_by_label("Time zone").fill("Asia/Tokyo")
            await try_and_save(page)
            await expect(page.locator("main")).to_contain_text(
                "But TAPEBOT_TIMEZONE is set in the environment"
            )
            await page.get_by_role("link", name="Site", exact=True).click()
            await try_and_save(page)
            await expect(page.get_by_role("status").first).to_contain_text("tapebot runs already")
            assert "/enter#" not in await page.content()
            token = await site.program.run("web", "token", "script")
            bearer = {"Authorization": f"Bearer {token}"}
            program = await browser.new_context(extra_http_headers=bearer)
            refused = await program.request.get(f"{site.url}/setup")
            assert refused.status == 403
            assert "not by a token" in await refused.text()
            await program.close()
            await check_page(page)
            await page.context.close()
            watch.check()
        assert near.read_text().startswith(f"# mine\nTAPEBOT_TELEGRAM_API_BASE={telegram.url}\n")
        assert f"TAPEBOT_TELEGRAM_TOKEN={telegram.token}\n" in near.read_text()
        log = tmp_path / "home" / "logs" / "tapebot.log"
        assert telegram.token not in log.read_text() + (tmp_path / "said.txt").read_text()
