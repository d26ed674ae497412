"""Links, codes and logins: each good once and for a while, in every process, whatever the clock does."""

from __future__ import annotations

import anyio
import pytest
from access_rig import HTML, URL, open_site

from bot.bus.access.codes import CLAIM_CODE_LENGTH, new_code
from bot.core.errors import HttpError

DAY = 86_400.0


@pytest.fixture
async def site(tmp_path):
    async with open_site(tmp_path) as opened:
        yield opened


async def test_looking_at_a_link_does_not_use_it_up(site):
    link = await site.logins.create_login_link("local", "Ada")
    address, _, secret = link.partition("#")
    assert address == f"{URL}/enter"
    browser = await site.browser()
    for _ in range(3):
        looked = await browser.get("/enter", headers=HTML)
        assert looked.status_code == 200
        assert secret not in looked.text
        assert "set-cookie" not in looked.headers
    assert (await browser.post("/enter", data={"token": secret})).status_code == 303
    assert (await browser.get("/probe")).json()["id"] == "local"


async def test_of_many_who_use_one_link_at_once_one_is_let_in(site):
    secret = (await site.logins.create_login_link("local", "Ada")).partition("#")[2]
    told: list[int] = []

    async def enter() -> None:
        browser = await site.browser()
        told.append((await browser.post("/enter", data={"token": secret})).status_code)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(enter)
    assert sorted(told) == [303] + [403] * 7
    refused = await (await site.browser()).post("/enter", data={"token": secret}, headers=HTML)
    assert "tapebot web link" in refused.text


@pytest.mark.parametrize("seconds", [601.0, -601.0], ids=["later", "put back"])
async def test_a_code_is_good_for_ten_minutes_whatever_the_clock_does(site, seconds):
    made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    site.clock.advance(seconds)
    with pytest.raises(HttpError):
        await site.slowly(site.logins.log_in_with_code(made.code))


async def test_a_form_of_another_site_logs_nobody_in(site):
    link = await site.logins.create_login_link("local", "Mallory")
    made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    browser = await site.browser()
    for origin in ("https://evil.example", "null", "http://127.0.0.1:9999"):
        said = {"Origin": origin}
        for path, form in (("/enter", {"token": link}), ("/login", {"code": made.code})):
            refused = await browser.post(path, data=form, headers=said)
            assert refused.status_code == 403
            assert "set-cookie" not in refused.headers


@pytest.mark.slow
async def test_ten_thousand_guesses_find_nothing_and_keep_nobody_out(site):
    made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    waited = refused = 0
    for _ in range(10_000):
        guess = site.logins.log_in_with_code(new_code(CLAIM_CODE_LENGTH))
        try:
            await (site.slowly(guess) if waited < 5 else guess)
        except HttpError as refusal:
            waited += refusal.status == 403
            refused += refusal.status == 429
            headers = refusal.headers
    assert (waited, refused) == (5, 9_995)
    assert 0 < int(headers["Retry-After"]) <= 900
    typed = made.code.lower().replace("-", " ")
    assert (await site.logins.log_in_with_code(typed)).visitor.id == "telegram.42"
    browser = await site.browser()
    many = await browser.post("/login", data={"code": "AAAA"}, headers=HTML)
    assert (many.status_code, "try again in" in many.text) == (429, True)
    site.clock.advance(901)
    with pytest.raises(HttpError) as caught:
        await site.slowly(site.logins.log_in_with_code("AAAA-BBBB-CCCC"))
    assert caught.value.status == 403


@pytest.mark.parametrize("then", [31 * DAY, -40 * DAY], ids=["later", "put back"])
async def test_a_login_ends_thirty_days_after_its_last_use_whatever_the_clock_does(site, then):
    browser = await site.browser(await site.logins.log_in("local", "Ada"))
    for _ in range(3):
        site.clock.advance(20 * DAY)
        assert (await browser.get("/probe")).status_code == 200
    site.clock.advance(then)
    assert (await browser.get("/probe")).status_code == 401


async def test_logging_out_ends_the_login_and_not_only_the_cookie(site):
    opened = await site.logins.log_in("local", "Ada")
    browser = await site.browser(opened)
    refused = await browser.post("/logout")
    assert refused.status_code == 403
    out = await browser.post("/logout", data={"csrf": opened.csrf})
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert (await browser.get("/probe")).status_code == 401


async def test_people_end_their_own_logins_and_nobody_elses(site):
    mine = [await site.logins.log_in("telegram.42", "Ada") for _ in range(3)]
    theirs = await site.logins.log_in("local", "Root")
    code = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    browser = await site.browser(mine[0])
    browser.headers["X-CSRF-Token"] = mine[0].csrf
    page = await browser.get("/account", headers=HTML)
    assert page.text.count("this one") == 1
    entry = (await site.logins.login_store.login(mine[1].secret)).entry
    other = (await site.logins.login_store.login(theirs.secret)).entry
    for which in (entry, other):
        ended = await browser.post("/account/logins", data={"login": str(which)})
        assert ended.status_code == 303
    assert await site.logins.login_store.login(mine[1].secret) is None
    assert await site.logins.login_store.login(theirs.secret) is not None
    await browser.post("/account/logins", data={"login": "others"})
    assert len(await site.logins.login_store.logins_of("telegram.42")) == 1
    assert await site.logins.login_store.login(theirs.secret) is not None
    assert (await browser.get("/probe")).status_code == 200
    # A code that one of these asked for is worth nothing, either.
    with pytest.raises(HttpError):
        await site.slowly(site.logins.log_in_with_code(code.code))
