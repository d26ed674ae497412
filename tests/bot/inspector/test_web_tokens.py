"""A token is one program's, for one person: its rights, its sessions, and its end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from access_rig import HTML, Site, open_site


@pytest.fixture
async def site(tmp_path) -> AsyncIterator[Site]:
    async with open_site(tmp_path, allow=["telegram:8", "telegram:9"]) as on:
        yield on


async def status(site: Site, token: str) -> int:
    browser = await site.browser()
    answer = await browser.get("/probe", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code


async def test_only_an_owners_token_with_the_right_calls_the_sites_api(site):
    make = site.logins.login_store.make_token
    assert await status(site, await make("local", "all")) == 200
    assert await status(site, await make("local", "editor", ["read", "chat"])) == 403
    assert await status(site, await make("local", "own", own_sessions=True)) == 403
    assert await status(site, await make("telegram.8", "all")) == 403
    assert await status(site, await make("telegram.8", "site", ["site"])) == 401
    assert await status(site, await make("telegram.666", "all")) == 401


async def test_a_token_is_shown_once_on_the_page_where_it_is_made(site):
    await site.logins.login_store.make_token("local", "editor")
    opened = await site.logins.log_in("telegram.8", "Ben")
    browser = await site.browser(opened)
    browser.headers["X-CSRF-Token"] = opened.csrf
    given = {"name": "editor", "read": "on", "site": "on", "own_sessions": "on"}
    made = await browser.post("/account/tokens", data=given, headers=HTML)
    token = "tapebot_" + made.text.partition("tapebot_")[2].partition("<")[0]
    found = await site.logins.login_store.token(token)
    assert found is not None
    assert (found.visitor, found.rights, found.own_sessions) == ("telegram.8", {"read"}, True)
    assert token not in (await browser.get("/account", headers=HTML)).text
    for name in ("editor", "<b>backup</b>"):
        refused = await browser.post("/account/tokens", data={**given, "name": name}, headers=HTML)
        assert (refused.status_code, "<b>backup" in refused.text) == (422, False)
    # What others have is not one's own to end.
    await browser.post("/account/tokens/end", data={"name": "editor", "as": "local"})
    assert [one.visitor for one in await site.logins.login_store.tokens()] == ["local"]
    assert await status(site, token) == 401


async def test_a_token_makes_and_ends_no_credentials_whatever_its_rights(site):
    browser, store = await site.browser(), site.logins.login_store
    browser.headers["Authorization"] = f"Bearer {await store.make_token('local', 'script')}"
    for path, form in (
        ("/account/tokens", {"name": "more", "chat": "on", "read": "on", "site": "on"}),
        ("/account/tokens/end", {"name": "script"}),
        ("/account/logins", {"login": "others"}),
        ("/account/language", {"language": "de"}),
    ):
        answer = await browser.post(path, data=form)
        assert (answer.status_code, "by a token" in answer.text) == (403, True), path
    assert (await browser.get("/account")).status_code == 403
    assert [one.name for one in await store.tokens()] == ["script"]
