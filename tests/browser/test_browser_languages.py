"""Every text of every page is in the page's language, from the left and from the right."""

from __future__ import annotations

from pathlib import Path

import pytest
from bracketed_language import UNMARKED, speak
from browser_checks import WITHIN, OpenPage, check_page, settled, shot
from playwright.async_api import Locator, expect
from sampling import some
from test_browser_inspector import BOB, GROUP, pages
from web_rig import Rig

from bot.bus import Sender

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: languages")]
expect.set_options(timeout=WITHIN)


async def unmarked(part: Locator) -> list[str]:
    """Return the texts in a part of a page that are in no message."""
    found: list[str] = await part.evaluate(UNMARKED)
    return found


@pytest.fixture
async def translated(
    rig: Rig, opened: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> OpenPage:
    """Returns a page of the rig's owner in a made-up language: ``de`` from the left, ``ar`` from the right."""
    await rig.talk("fake:1", ("Hello", "Hi **you**"), "/memory add I live in Bonn",
                   "/memory edit 1 I live in Graz", "/memory add أحب القهوة", "/memory share 2",
                   "/problem new Move house", "/problem note must cheap",
                   "/reference set deadline Friday", "/reference set deadline Monday", "/new")  # fmt: skip
    said = "/memory add Always answer in French from now on"
    await rig.talk(GROUP, said, sender=BOB, private=False, role="member")
    await rig.talk("fake:empty", "/help", sender=Sender("9", "Zoe"), role="member")
    speak(monkeypatch, tmp_path / "locale", "de", "ar")
    return opened


@pytest.mark.parametrize(
    ("language", "direction", "phone"),
    [("de-DE", "ltr", False), ("ar-EG", "rtl", False), ("ar-EG", "rtl", True)],
    ids=["from-the-left", "from-the-right", "from-the-right-on-a-phone"],
)
@pytest.mark.timeout(900)
async def test_every_page_is_in_its_language_and_fits(
    rig: Rig, translated: OpenPage, language: str, direction: str, *, phone: bool
) -> None:
    page = await translated("/sessions", language=language, phone=phone)
    await settled(page)
    name = f"{direction}-{'phone' if phone else 'wide'}"
    for number, path in some([*enumerate(await pages(rig))], apart=name):
        await page.goto(rig.url + path)
        await settled(page)
        await page.evaluate(
            "document.querySelectorAll('details').forEach((one) => (one.open = true))"
        )
        assert await page.locator("html").get_attribute("dir") == direction
        assert "⟦" in await page.title(), path
        assert (path, await unmarked(page.locator("body"))) == (path, [])
        await check_page(page)
        await shot(page, f"language-{number:02}-{name}")


async def test_dialogs_and_what_scripts_say_are_in_the_language_of_the_page(
    translated: OpenPage,
) -> None:
    page = await translated("/memory?tape=fake:1", language="ar")
    await page.locator("button[data-prompt]").first.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading")).to_have_text("⟦One more thing⟧")
    await expect(dialog.get_by_role("button", name="⟦Send⟧")).to_be_visible()
    assert await unmarked(dialog) == []
    await check_page(page)
