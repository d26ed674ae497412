"""Who gets through: cookies, tokens, roles, and what another site can make a browser send."""

from __future__ import annotations

import pytest
from access_rig import HTML, HTTPS, URL, open_site

from bot.bus import AccessRequest, Address, Sender
from bot.inspector.access.origin import csrf_token, local_path


@pytest.fixture
async def site(tmp_path):
    async with open_site(tmp_path, allow=["telegram:8"]) as opened:
        yield opened


async def test_nobody_gets_through_without_a_login_and_pages_lead_to_it(site):
    browser = await site.browser()
    refused = await browser.get("/probe")
    assert (refused.status_code, refused.json()["error"]) == (401, "not_logged_in")
    page = await browser.get("/account?a=b", headers=HTML)
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Faccount%3Fa%3Db")


async def test_a_login_says_who_somebody_is_and_the_door_what_they_may_do(site):
    for visitor, role in (("local", "owner"), ("telegram.42", "owner"), ("telegram.8", "member")):
        browser = await site.browser(await site.logins.log_in(visitor, "Ada"))
        assert (await browser.get("/probe")).json() == {"id": visitor, "role": role}


async def test_a_member_gets_no_further_on_what_is_the_owners(site):
    browser = await site.browser(await site.logins.log_in("telegram.8", "Ben"))
    refused = await browser.get("/probe/owner")
    assert (refused.status_code, refused.json()["error"]) == (403, "owners_only")
    await site.logins.login_store.make_token("local", "backup")
    page = await browser.get("/account", headers=HTML)
    assert "backup" not in page.text
    assert 'name="site"' not in page.text


async def test_whoever_was_taken_off_is_out_with_the_next_request(tmp_path):
    async with open_site(tmp_path) as site:
        place = Address("telegram", "9")
        access_request = AccessRequest(place, Sender("9", "Eve"), private=True, text="hello")
        code = (
            ((await site.access_control.authorize(access_request)).reply or "")
            .split("/pair ")[1]
            .split()[0]
        )
        await site.access_control.approve(code)
        browser = await site.browser(await site.logins.log_in("telegram.9", "Eve"))
        assert (await browser.get("/probe")).status_code == 200
        assert await site.access_control.remove("telegram:9") == "removed"
        assert (await browser.get("/probe")).status_code == 401
        access_request = AccessRequest(place, Sender("9", "Eve"), private=True, text=None)
        assert (await site.access_control.authorize(access_request)).reply is None


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_what_changes_something_brings_the_logins_own_csrf_token(site, method):
    opened, other = [await site.logins.log_in("local", "Ada") for _ in range(2)]
    browser = await site.browser(opened)
    for token in (None, "", other.csrf, "é".encode(), "x" * 10_000):
        headers = {} if token is None else {"X-CSRF-Token": token}
        refused = await browser.request(method, "/probe", headers=headers)
        assert (refused.status_code, refused.json()["error"]) == (403, "forged"), token
    good = await browser.request(method, "/probe", headers={"X-CSRF-Token": opened.csrf})
    assert good.status_code == 200


async def test_a_form_brings_the_token_in_a_field_and_no_other_body_does(site):
    opened = await site.logins.log_in("local", "Ada")
    browser = await site.browser(opened)
    assert (await browser.post("/probe", data={"csrf": opened.csrf})).status_code == 200
    assert (await browser.post("/probe", data={"csrf": "no"})).status_code == 403
    assert (await browser.post("/probe", json={"csrf": opened.csrf})).status_code == 403
    many = "&".join(f"a{n}=1" for n in range(50)) + f"&csrf={opened.csrf}"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await browser.post("/probe", content=many, headers=form)).status_code == 403


@pytest.mark.parametrize(
    "said",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "https://127.0.0.1:8020"},
        {"Origin": "http://127.0.0.1:8020.evil.example"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=lambda said: next(iter(said.values())),
)
async def test_a_request_of_another_origin_changes_nothing_even_with_the_token(site, said):
    browser = await site.owner()
    assert (await browser.post("/probe", headers=said)).status_code == 403
    assert (await browser.get("/probe", headers=said)).status_code == 200


async def test_a_request_of_this_origin_goes_through(site):
    browser = await site.owner()
    for said in ({"Origin": URL}, {"Sec-Fetch-Site": "same-origin"}, {}):
        assert (await browser.post("/probe", headers=said)).status_code == 200


async def test_a_socket_is_opened_for_pages_of_this_site_alone(site):
    opened = await site.logins.log_in("local", "Ada")
    cookie = f"{site.logins.cookie}={opened.secret}"
    assert await site.socket(cookie=cookie, origin=URL) == "websocket.accept"
    assert await site.socket(cookie=cookie, origin="http://127.0.0.1:9999") == "websocket.close"
    assert await site.socket(cookie=cookie, origin="https://evil.example") == "websocket.close"
    assert await site.socket(cookie=cookie, origin=URL, host="evil.example") == "websocket.close"
    assert await site.socket(origin=URL) == "websocket.close"


async def test_a_cookie_of_another_site_is_no_login(site, tmp_path):
    opened = await site.logins.log_in("local", "Ada")
    browser = await site.browser()
    for cookie in (
        f"tapebot-8021={opened.secret}",
        f"__Host-tapebot={opened.secret}",
        f"tapebot-8020={opened.secret[:-1]}",
        f"tapebot-8020={opened.secret}" + "x" * 60_000,
        "tapebot-8020=",
        "a=" + "b" * 60_000,
    ):
        assert (await browser.get("/probe", headers={"Cookie": cookie})).status_code == 401
    async with open_site(tmp_path / "other", url=HTTPS) as other:
        far = await other.browser()
        cookie = f"{other.logins.cookie}={opened.secret}"
        assert (await far.get("/probe", headers={"Cookie": cookie})).status_code == 401


async def test_the_cookie_is_out_of_reach_of_pages_and_of_other_sites(tmp_path):
    for url, name in ((URL, "tapebot-8020"), (HTTPS, "__Host-tapebot")):
        async with open_site(tmp_path / name, url=url) as site:
            link = await site.logins.create_login_link("local", "Ada")
            browser = await site.browser()
            entered = await browser.post("/enter", data={"token": link})
            assert (entered.status_code, entered.headers["location"]) == (303, "/")
            cookie = entered.headers["set-cookie"]
            assert cookie.startswith(f"{name}=")
            attributes = {one.strip().lower() for one in cookie.split(";")[1:]}
            assert {"httponly", "samesite=lax", "path=/"} <= attributes
            assert ("secure" in attributes) == (url == HTTPS)
            assert not any(one.startswith("domain") for one in attributes)


async def test_a_program_calls_with_a_token_for_as_long_as_its_owner_owns_the_bot(tmp_path):
    async with open_site(tmp_path, owners=["telegram:42"], allow=["telegram:8"]) as site:
        make, browser = site.logins.login_store.make_token, await site.browser()
        for visitor, status in (("local", 200), ("telegram.42", 200), ("telegram.8", 403)):
            token = await make(visitor, visitor)
            given = {"Authorization": f"Bearer {token}"}
            # No CSRF token: a browser sends such a header of its own accord for nobody.
            assert (await browser.post("/probe", headers=given)).status_code == status
        for wrong in ("Bearer ", "Bearer tapebot_x", f"Basic {token}", "Bearer " + "x" * 10_000):
            refused = await browser.get("/probe", headers={"Authorization": wrong})
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"


async def test_a_token_that_was_ended_is_good_for_nothing(site):
    token = await site.logins.login_store.make_token("local", "backup")
    browser, given = await site.browser(), {"Authorization": f"Bearer {token}"}
    assert (await browser.get("/probe", headers=given)).status_code == 200
    assert await site.logins.login_store.end_token("local", "backup")
    assert (await browser.get("/probe", headers=given)).status_code == 401
    assert not await site.logins.login_store.end_token("local", "backup")


async def test_no_secret_is_on_the_tape(site):
    opened = await site.logins.log_in("local", "Ada")
    token = await site.logins.login_store.make_token("local", "backup")
    link = await site.logins.create_login_link("local", "Ada")
    made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    assert made is not None
    kept = repr(await site.host.store.read("workspace:web"))
    secrets = (opened.secret, opened.csrf, token, link.partition("#")[2], made.code)
    for secret in (*secrets, made.code.replace("-", ""), csrf_token(opened.secret)):
        assert secret not in kept


@pytest.mark.parametrize(
    ("given", "followed"),
    [
        ("/timeline?tape=telegram:42&entry=3", "/timeline?tape=telegram:42&entry=3"),
        ("https://evil.example", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("/a\tb", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
        (None, "/"),
        ("/" + "a" * 5_000, "/"),
    ],
    ids=range(10),
)
async def test_a_login_leads_to_a_page_of_this_site_and_nowhere_else(site, given, followed):
    assert local_path(given) == followed
    made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    assert made is not None
    browser = await site.browser()
    form = {"code": made.code, **({} if given is None else {"next": given})}
    entered = await browser.post("/login", data=form)
    assert (entered.status_code, entered.headers["location"]) == (303, followed)
    assert len(entered.headers.get_list("set-cookie")) == 1
