"""Who gets through: cookies, tokens, roles, and what another site can make a browser send."""

from __future__ import annotations

import re

import pytest
from access_rig import HTML, HTTPS, URL, open_site
from web_rig import open_web

from bot.bus import AccessRequest, Address, Sender
from bot.inspector.access.origin import csrf_token

PAGES = {"/sessions", "/timeline", "/memory", "/fact", "/turns", "/turn", "/schedules"}
PAGES |= {"/problems", "/reference"}
MEMBERS = {"/api/v1/commands", "/api/v1/spending"}
"""What members may ask of the site's API."""


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


async def test_a_member_gets_no_further_on_what_is_the_owners(site):
    for visitor, role in (("local", "owner"), ("telegram.42", "owner"), ("telegram.8", "member")):
        browser = await site.browser(await site.logins.log_in(visitor, "Ada"))
        assert (await browser.get("/probe")).json() == {"id": visitor, "role": role}
    refused = await browser.get("/probe/owner")
    assert (refused.status_code, refused.json()["error"]) == (403, "owners_only")
    await site.logins.login_store.make_token("local", "backup")
    page = await browser.get("/account", headers=HTML)
    assert "backup" not in page.text
    assert 'name="site"' not in page.text


async def test_no_route_answers_strangers_and_those_of_owners_no_members():
    async with open_web() as rig:
        await rig.talk("fake:1", "/memory add I live in Graz")
        document = (await rig.client.get("/api/v1/openapi.json")).json()
        linked = re.findall(r'href="(/[a-z]*)', await rig.page("/sessions"))
        own = {"/", "/account", "/budget", "/api/v1/openapi.json"} | {*linked} - PAGES
        routes = {("get", path) for path in (PAGES | own) - {"/static"}}
        routes |= {(how, path) for path, asked in document["paths"].items() for how in asked}
        assert len(routes) > 35
        for method, path in sorted(routes):
            for wrong in ({}, {"Authorization": "Bearer tape_wrong"}):
                answer = await rig.stranger.request(method, path, headers=wrong)
                assert (path, answer.status_code) == (path, 401)
                assert "Graz" not in answer.text
            if path not in MEMBERS | own:
                answer = await rig.member.request(method, f"{path}?tape=fake:1")
                assert (path, answer.status_code) == (path, 403)
                assert "Graz" not in answer.text


async def test_whoever_was_taken_off_is_out_with_the_next_request(tmp_path):
    async with open_site(tmp_path) as site:
        place = Address("telegram", "9")
        knock = AccessRequest(place, Sender("9", "Eve"), private=True, text="hello")
        reply = (await site.access_control.authorize(knock)).reply or ""
        await site.access_control.approve(reply.split("/pair ")[1].split()[0])
        browser = await site.browser(await site.logins.log_in("telegram.9", "Eve"))
        token = await site.logins.login_store.make_token("telegram.9", "editor")
        assert (await browser.get("/probe")).status_code == 200
        assert await site.logins.authenticator.token_of(token) is not None
        assert await site.access_control.remove("telegram:9") == "removed"
        assert (await browser.get("/probe")).status_code == 401
        assert await site.logins.authenticator.token_of(token) is None


async def test_what_changes_something_brings_the_logins_own_csrf_token(site):
    opened, other = [await site.logins.log_in("local", "Ada") for _ in range(2)]
    browser = await site.browser(opened)
    for method in ("POST", "DELETE"):
        for token in (None, "", other.csrf, "é".encode(), "x" * 10_000):
            headers = {} if token is None else {"X-CSRF-Token": token}
            refused = await browser.request(method, "/probe", headers=headers)
            assert (refused.status_code, refused.json()["error"]) == (403, "forged"), token
        good = await browser.request(method, "/probe", headers={"X-CSRF-Token": opened.csrf})
        assert good.status_code == 200
    assert (await browser.post("/probe", data={"csrf": opened.csrf})).status_code == 200
    assert (await browser.post("/probe", data={"csrf": "no"})).status_code == 403
    assert (await browser.post("/probe", json={"csrf": opened.csrf})).status_code == 403
    many = "&".join(f"a{n}=1" for n in range(50)) + f"&csrf={opened.csrf}"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await browser.post("/probe", content=many, headers=form)).status_code == 403


async def test_a_request_of_another_origin_changes_nothing_even_with_the_token(site):
    browser = await site.owner()
    for said in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "https://127.0.0.1:8020"},
        {"Origin": "http://127.0.0.1:8020.evil.example"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert (await browser.post("/probe", headers=said)).status_code == 403, said
        assert (await browser.get("/probe", headers=said)).status_code == 200
    for said in ({"Origin": URL}, {"Sec-Fetch-Site": "same-origin"}, {}):
        assert (await browser.post("/probe", headers=said)).status_code == 200, said


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


async def test_a_program_calls_with_a_token_for_as_long_as_its_owner_owns_the_bot(site):
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


async def test_no_secret_is_on_the_tape(site):
    opened = await site.logins.log_in("local", "Ada")
    token = await site.logins.login_store.make_token("local", "backup")
    link = await site.logins.create_login_link("local", "Ada")
    made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
    kept = repr(await site.host.store.read("workspace:web"))
    secrets = (opened.secret, opened.csrf, token, link.partition("#")[2], made.code)
    for secret in (*secrets, made.code.replace("-", ""), csrf_token(opened.secret)):
        assert secret not in kept


async def test_a_login_leads_to_a_page_of_this_site_and_nowhere_else(site):
    wanted = "/timeline?tape=telegram:42&entry=3"
    for given in (wanted, "https://evil.example", "//evil.example", "/\\evil.example", "/a\tb",
                  "/a\r\nSet-Cookie: x=y", "javascript:alert(1)", "", "/" + "a" * 5_000):  # fmt: skip
        made = await site.logins.create_login_code("telegram", "42", "Ada", "telegram:42")
        entered = await (await site.browser()).post(
            "/login", data={"code": made.code, "next": given}
        )
        followed = wanted if given == wanted else "/"
        assert (entered.status_code, entered.headers["location"]) == (303, followed)
        assert len(entered.headers.get_list("set-cookie")) == 1
