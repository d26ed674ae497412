"""Links, codes and logins: each good once and for a while, in every process, whatever the clock does."""

from __future__ import annotations

import anyio
import pytest
from access_rig import HTML, URL, open_site

from bot.bus.access.codes import CLAIM_CODE_LENGTH, new_code
from bot.bus.access.control import open_access_control
from bot.core.errors import HttpError, TapeWriteError
from bot.inspector.access.logins import LoginService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

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


async def test_a_link_that_was_used_says_what_to_do(site):
    secret = (await site.logins.create_login_link("local", "Ada")).partition("#")[2]
    first, second = await site.browser(), await site.browser()
    assert (await first.post("/enter", data={"token": secret})).status_code == 303
    refused = await second.post("/enter", data={"token": secret}, headers=HTML)
    assert refused.status_code == 403
    assert "tapebot web link" in refused.text
    assert (await second.get("/probe")).status_code == 401


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


@pytest.mark.parametrize("seconds", [601.0, -601.0], ids=["later", "put back"])
async def test_a_code_is_good_for_ten_minutes_whatever_the_clock_does(site, seconds):
    made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    site.clock.advance(seconds)
    with pytest.raises(HttpError):
        await site.slowly(_code(site.logins, made.code))


async def _code(logins, code):
    return await logins.log_in_with_code(code)


async def test_a_code_may_be_typed_as_people_type(site):
    made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    opened = await site.logins.log_in_with_code(made.code.lower().replace("-", " "))
    assert (opened.visitor.id, opened.visitor.role) == ("telegram.42", "owner")


async def test_a_code_is_not_good_for_whom_the_door_does_not_know_any_more(site):
    made = await site.logins.create_login_code("telegram", "9", "Eve", "telegram:9")
    browser = await site.browser()
    refused = await browser.post("/login", data={"code": made.code}, headers=HTML)
    assert refused.status_code == 403
    assert "may no longer use this bot" in refused.text


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
    assert (await site.logins.log_in_with_code(made.code)).visitor.id == "telegram.42"


async def test_wrong_codes_are_looked_at_again_after_a_quarter_of_an_hour(site):
    for _ in range(5):
        with pytest.raises(HttpError):
            await site.slowly(_code(site.logins, "AAAA-BBBB-CCCC"))
    browser = await site.browser()
    many = await browser.post("/login", data={"code": "AAAA"}, headers=HTML)
    assert many.status_code == 429
    assert int(many.headers["retry-after"]) > 0
    assert "try again in" in many.text
    site.clock.advance(901)
    with pytest.raises(HttpError) as caught:
        await site.slowly(_code(site.logins, "AAAA-BBBB-CCCC"))
    assert caught.value.status == 403


@pytest.mark.slow
async def test_a_login_ends_thirty_days_after_its_last_use(site):
    browser = await site.browser(await site.logins.log_in("local", "Ada"))
    for _ in range(4):
        site.clock.advance(20 * DAY)
        assert (await browser.get("/probe")).status_code == 200
    site.clock.advance(31 * DAY)
    assert (await browser.get("/probe")).status_code == 401


async def test_use_is_noted_once_a_day_at_most(site):
    browser = await site.browser(await site.logins.log_in("local", "Ada"))
    before = await site.host.store.version("workspace:web")
    for _ in range(5):
        await browser.get("/probe")
    assert await site.host.store.version("workspace:web") == before
    site.clock.advance(DAY)
    for _ in range(5):
        await browser.get("/probe")
    assert await site.host.store.version("workspace:web") == before + 1


async def test_a_clock_that_is_put_back_far_ends_logins_and_prolongs_none(site):
    browser = await site.browser(await site.logins.log_in("local", "Ada"))
    site.clock.advance(-DAY / 2)
    assert (await browser.get("/probe")).status_code == 200
    site.clock.advance(-40 * DAY)
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


async def test_a_new_login_ends_the_one_that_the_browser_had(site):
    before = await site.logins.log_in("local", "Ada")
    browser = await site.browser(before)
    link = await site.logins.create_login_link("local", "Ada")
    assert (await browser.post("/enter", data={"token": link})).status_code == 303
    assert await site.logins.login_store.login(before.secret) is None
    assert len(await site.logins.login_store.logins_of("local")) == 1


async def test_people_end_their_own_logins_and_nobody_elses(site):
    mine = [await site.logins.log_in("telegram.42", "Ada") for _ in range(3)]
    theirs = await site.logins.log_in("local", "Root")
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


async def test_a_token_is_shown_once_on_the_page_where_it_is_made(site):
    browser = await site.owner()
    made = await browser.post("/account/tokens", data={"name": "<b>backup</b>"}, headers=HTML)
    assert made.status_code == 422
    assert "<b>backup" not in made.text
    made = await browser.post(
        "/account/tokens", data={"name": "backup", "site": "on"}, headers=HTML
    )
    token = made.text.partition("tapebot_")[2].partition("<")[0]
    given = {"Authorization": f"Bearer tapebot_{token}"}
    assert (await (await site.browser()).get("/probe", headers=given)).status_code == 200
    assert token not in (await browser.get("/account", headers=HTML)).text
    again = await browser.post(
        "/account/tokens", data={"name": "backup", "chat": "on"}, headers=HTML
    )
    assert again.status_code == 422
    await browser.post("/account/tokens/end", data={"name": "backup"})
    assert (await (await site.browser()).get("/probe", headers=given)).status_code == 401


async def test_two_processes_know_the_same_logins_at_once(tmp_path):
    clock, store = ManualClock(), InMemoryTapeStore()
    async with open_access_control(tmp_path, owners=["telegram:42"], clock=clock) as access_control:
        one, other = [LoginService(store, access_control, clock, URL) for _ in range(2)]
        link = await one.create_login_link("telegram.42", "Ada")
        secret = link.partition("#")[2]
        told: list[str] = []

        async def enter(logins) -> None:
            try:
                told.append((await logins.log_in_with_link(secret)).secret)
            except HttpError:
                told.append("refused")

        async with anyio.create_task_group() as tasks:
            for logins in (one, other) * 4:
                tasks.start_soon(enter, logins)
        assert told.count("refused") == 7
        cookie = next(given for given in told if given != "refused")
        assert await one.login_store.login(cookie) is not None
        assert await other.login_store.login(cookie) is not None
        assert await other.login_store.end_logins(lambda _: True) == 1
        assert await one.login_store.login(cookie) is None


async def test_a_login_is_good_after_a_restart(tmp_path):
    clock, store = ManualClock(), InMemoryTapeStore()
    async with open_access_control(tmp_path, clock=clock) as access_control:
        opened = await LoginService(store, access_control, clock, URL).log_in("local", "Ada")
        again = LoginService(store, access_control, clock, URL)
        assert await again.login_store.login(opened.secret) is not None


class Full(InMemoryTapeStore):
    """Takes nothing more once it is full."""

    full = False

    async def append_many(self, tape, entries, *, expect=None):
        if self.full:
            raise TapeWriteError("the disk is full")
        return await super().append_many(tape, entries, expect=expect)


async def test_on_a_full_disk_whoever_is_logged_in_stays_so_and_a_link_is_kept(tmp_path):
    clock, store = ManualClock(), Full()
    async with open_access_control(tmp_path, clock=clock) as access_control:
        logins = LoginService(store, access_control, clock, URL)
        opened = await logins.log_in("local", "Ada")
        link = (await logins.create_login_link("local", "Ada")).partition("#")[2]
        store.full = True
        with pytest.raises(TapeWriteError):
            await logins.log_in_with_link(link)
        store.full = False
        assert (await logins.log_in_with_link(link)).visitor.id == "local"
        assert await logins.login_store.login(opened.secret) is not None


async def test_who_ends_all_other_logins_ends_the_codes_that_were_asked_for_by_them(site):
    mine = await site.logins.log_in("telegram.42", "Ada")
    theirs = (await site.logins.create_login_link("local", "Root")).partition("#")[2]
    code = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    browser = await site.browser(mine)
    browser.headers["X-CSRF-Token"] = mine.csrf
    await browser.post("/account/logins", data={"login": "others"})
    with pytest.raises(HttpError):
        await site.slowly(site.logins.log_in_with_code(code.code))
    again = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    assert (await site.logins.log_in_with_code(again.code)).visitor.id == "telegram.42"
    assert (await site.logins.log_in_with_link(theirs)).visitor.id == "local"
