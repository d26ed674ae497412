"""The inspector as an owner uses it: from a fact to its words, from version to version, and back again."""

from __future__ import annotations

import pytest
from browser_chat import answers, say
from browser_checks import (
    WITHIN,
    OpenPage,
    Watch,
    check_page,
    close_answer,
    new_page,
    settled,
    shot,
)
from browser_site import Site
from playwright.async_api import Browser, Page, expect
from sampling import some
from web_rig import Rig

from bot.bus import Sender

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: inspector")]
expect.set_options(timeout=WITHIN)

GROUP = "telegram:-1001234567890"
BOB = Sender("8", "<b>Bob</b>")
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<style>*{display:none}</style> ![x](https://tracker.invalid/x.png) {{ 7 * 7 }} $& \u202eevil"
)
STATUS = "performance.getEntriesByType('navigation')[0].responseStatus"
PAGES = (
    "/sessions",
    "/sessions?words=nobody",
    "/timeline?tape={tape}",
    "/timeline?tape={tape}&entry=3",
    "/timeline?tape={tape}&words=tracker",
    "/timeline?tape={tape}&words=xyzzy",
    "/memory?tape={tape}",
    "/memory?tape={tape}&status=all",
    "/memory?tape={tape}&words=xyzzy",
    "/memory?tape=fake:empty",
    "/memory?tape={group}",
    "/memory?tape=workspace:shared",
    "/memory?tape=person:fake:7",
    "/fact?tape={tape}&number=1",
    "/fact?tape={group}&number=1",
    "/problems?tape={tape}",
    "/problems?tape=fake:empty",
    "/reference?tape={tape}&key=deadline",
    "/reference?tape=fake:empty",
    "/turns?tape={tape}",
    "/turns?tape=fake:empty",
    "{turn}",
    "/budget",
    "/budget?whose=all",
    "/account",
)


async def pages(rig: Rig) -> list[str]:
    """Return the paths of all pages, with what was talked of in ``fake:1`` and the group."""
    (turn, *_) = (await rig.get("/turns", tape="fake:1"))["turns"]
    known = {"tape": "fake:1", "group": GROUP, "turn": f"/turn?tape=fake:1&turn={turn['id']}"}
    return [path.format(**known) for path in PAGES]


async def press(page: Page, name: str) -> None:
    await page.get_by_role("button", name=name, exact=True).first.click()


async def test_a_fact_leads_to_its_words_in_the_timeline_and_to_the_gates_decision(rig, opened):
    await rig.talk("fake:1", *[(f"Question {n}", "An answer.") for n in range(12)])
    await rig.talk("fake:1", "remember: I live in Bonn")
    await rig.talk("fake:1", *[(f"Later {n}", "An answer.") for n in range(12)])
    page = await opened("/memory?tape=fake:1")
    await page.get_by_role("link", name="Fact 1: why").click()
    decision = page.get_by_role("region", name="Decisions of the write gate")
    await expect(decision).to_contain_text("approved")
    await expect(decision.get_by_role("row", name="Source quality")).to_contain_text("own words")
    evidence = page.get_by_role("region", name="Evidence")
    await evidence.get_by_role("link", name="Entry #").click()
    marked = page.locator(".tl-live .tl-row.current")
    await expect(marked).to_have_count(1)
    await expect(marked).to_contain_text("I live in Bonn")
    await expect(marked).to_be_in_viewport()
    await expect(marked).to_have_attribute("aria-selected", "true")
    await page.focus("#tape")
    await page.keyboard.press("Enter")
    await page.get_by_role("dialog").get_by_role("link", name="live in Bonn").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Fact 1")
    await decision.get_by_role("link", name="#").first.click()
    await expect(marked).to_have_attribute("data-category", "gate")


async def test_undo_by_its_button_is_felt_in_memory_and_in_the_chat(
    open_page: OpenPage, site: Site
) -> None:
    page = await open_page()
    for number, text in enumerate(("/memory add I live in Bonn", "/memory add I like tea"), 1):
        await say(page, text)
        await expect(answers(page)).to_have_count(number)
    await page.goto(f"{site.url}/memory?tape=web:local")
    await press(page, "Undo last change")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await close_answer(page)
    await page.goto(f"{site.url}/memory?tape=web:local")
    await expect(page.locator("#fact-list")).to_contain_text("I live in Bonn")
    await expect(page.locator("#fact-list")).not_to_contain_text("I like tea")
    await page.goto(site.url)
    await say(page, "/memory")
    newest = answers(page).last
    await expect(newest).to_contain_text("I live in Bonn")
    await expect(newest).not_to_contain_text("I like tea")


async def test_a_code_from_the_chat_logs_in_and_logout_ends_it(rig: Rig, browser: Browser) -> None:
    watch = Watch(rig.url, expected=("a status of 403",))
    page = await new_page(browser, watch)
    await page.goto(f"{rig.url}/memory?tape=fake:1")
    await page.wait_for_url("**/login?next=*")
    await check_page(page)
    await expect(page.get_by_label("Code")).to_be_focused()
    await page.keyboard.type("AAAA-BBBB-CCCC")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    await check_page(page)
    (told,) = await rig.talk("fake:1", "/login")
    await page.get_by_label("Code").fill(told.partition("`")[2].partition("`")[0])
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/memory?tape=fake*")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Memory")
    await page.get_by_role("link", name="Account").click()
    await expect(page.get_by_role("main")).to_contain_text("You are Ada, an owner")
    await page.get_by_role("button", name="Log out").click()
    await page.wait_for_url("**/login")
    await page.go_back()
    await page.wait_for_url("**/login*")
    await page.context.close()
    watch.check()


@pytest.mark.parametrize(
    ("dark", "phone"), [(False, False), (True, True)], ids=["light-wide", "dark-phone"]
)
@pytest.mark.timeout(900)
async def test_every_page_can_be_used_by_everybody_whatever_is_on_the_tape(
    rig: Rig, opened: OpenPage, *, dark: bool, phone: bool
) -> None:
    await rig.talk("fake:1", (HOSTILE, f"{HOSTILE}\n\n| a | b |\n|---|---|\n| {'c' * 90} | 2 |"))
    await rig.talk("fake:1", f"/memory add {HOSTILE}", f"/memory edit 1 {HOSTILE} {'x' * 200}",
                   "/memory add أحب القهوة", "/memory add 私はお茶が好きです", "/memory share 2",
                   f"/problem new {HOSTILE[:50]}", f"/problem note must {HOSTILE}",
                   f"/reference set deadline {HOSTILE}", "/reference set deadline Monday", "/new")  # fmt: skip
    await rig.talk("fake:1", ("Hello", HOSTILE))
    said = f"/memory add Always answer {HOSTILE}"
    await rig.talk(GROUP, said, sender=BOB, private=False, role="member")
    await rig.talk("fake:empty", "/help", sender=Sender("9", HOSTILE), role="member")
    page = await opened("/sessions", dark=dark, phone=phone)
    await settled(page)
    name = f"{'dark' if dark else 'light'}-{'phone' if phone else 'wide'}"
    for number, path in some([*enumerate(await pages(rig))], apart=name):
        await page.goto(rig.url + path)
        # The page's own word: Playwright does not always know of the response.
        assert await page.evaluate(STATUS) == 200, path
        await check_page(page)
        await page.evaluate(
            "document.querySelectorAll('details').forEach((one) => (one.open = true))"
        )
        await check_page(page)
        assert await page.title() != "owned", path
        assert (
            await page.locator("main img, main script, main style, main b:text('Bob')").count() == 0
        )
        await shot(page, f"all-{number:02}-{name}")
