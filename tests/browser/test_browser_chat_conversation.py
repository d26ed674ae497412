"""The chat's conversation in a browser: streamed, cut off, attacked, in two tabs and on a phone, it shows everything once."""

from __future__ import annotations

import anyio
import pytest
from browser_chat import answers, expect_shown, said, say, shown, until_quiet
from browser_checks import WITHIN, OpenPage, assert_fits, check_page, shot
from browser_site import Site
from playwright.async_api import Page, expect

from testkit.openai_server import Reply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.family("browser: chat")]
expect.set_options(timeout=WITHIN)

LONG = """\
## What I found

Some **bold** words, `code`, and [a link](https://example.org/page).

1. first
2. second

```python
def hello() -> None:
    print("hello")
```

| name | value |
|---|---|
| one | 1 |
"""

HOSTILE = """\
<script>document.title = "owned"</script><img src=x onerror="document.title='owned'">
<svg onload="document.title='owned'"></svg><style>body{display:none}</style>
[click](javascript:document.title='owned') [data](data:text/html,<script>1</script>)
![tracked](https://tracker.invalid/pixel.png) <img src="https://tracker.invalid/p.png">
<iframe src="https://tracker.invalid/"></iframe> <form action="https://tracker.invalid/"></form>
\u202eevil\u202c zero\u200bwidth\ufeff <a href="https://tracker.invalid" style="position:fixed">all</a>
"""


async def test_answer_is_streamed_and_shown_once(page: Page, site: Site) -> None:
    gate = anyio.Event()
    site.talk.answers["tell me"] = Reply(LONG, gate=gate, piece=12)
    await say(page, "Please tell me")
    await expect(page.locator(".chat-row.growing")).to_contain_text("What")
    await expect(page.locator("#chat-stop")).to_be_visible()
    # It is read aloud when it is whole, not word by word.
    await expect(page.locator("#chat-log")).to_have_attribute("aria-busy", "true")
    await shot(page, "chat-growing")
    gate.set()
    await expect(answers(page)).to_have_count(1)
    await expect(page.locator(".chat-row.growing")).to_have_count(0)
    await expect(page.locator("#chat-log")).not_to_have_attribute("aria-busy", "true")
    await until_quiet(page)
    await expect(page.locator(".chat-row")).to_have_count(2)
    await page.get_by_role("button", name="Copy").click()
    await page.wait_for_function(
        "(code) => navigator.clipboard.readText().then((copied) => copied === code)",
        arg='def hello() -> None:\n    print("hello")\n',
    )
    await check_page(page)
    await shot(page, "chat-light")
    await page.reload()
    await expect(answers(page)).to_have_count(1)
    await expect(page.locator(".chat-row")).to_have_count(2)


async def test_two_tabs_show_the_same_conversation(page: Page, site: Site) -> None:
    other = await page.context.new_page()
    await other.goto(site.url)
    gate = anyio.Event()
    site.talk.answers["both"] = Reply("For both of you.", gate=gate)
    await say(page, "Can both see this?")
    await expect(said(other)).to_contain_text("Can both see this?")
    await expect(other.locator(".chat-row.growing")).to_contain_text("For")
    gate.set()
    await expect(answers(other)).to_contain_text("For both of you.")
    await say(other, "The other one speaks")
    await expect(answers(page)).to_have_count(2)
    await until_quiet(page)
    await until_quiet(other)
    words = ["Can both see this?", "For both of you.", "The other one speaks", "All right."]
    await expect_shown(page, words)
    await expect_shown(other, words)


async def test_hostile_words_are_only_words_in_both_directions(
    page: Page, open_page: OpenPage, site: Site
) -> None:
    wall = "x" * 100_000
    site.talk.answers["owned"] = Reply(HOSTILE, piece=25)
    site.talk.answers["wall"] = Reply(wall, piece=5_000)
    await say(page, HOSTILE)
    await expect(answers(page)).to_have_count(1)
    await say(page, "wall" + "y" * 20_000)
    await expect(answers(page)).to_have_count(2)
    await until_quiet(page)
    for at in (page, await open_page(phone=True)):
        await expect(answers(at)).to_have_count(2)
        await expect(at).to_have_title("Chat · tapebot")
        log = at.locator("#chat-log")
        await expect(
            log.locator("script, style, iframe, form, svg, img, [onerror], [style]")
        ).to_have_count(0)
        links = await log.locator("a").evaluate_all("(all) => all.map((one) => one.protocol)")
        assert set(links) <= {"https:"}
        assert "<script>" in (await shown(at))[0]
        assert "<script>" in (await shown(at))[1]
        await assert_fits(at)
        await check_page(at)
