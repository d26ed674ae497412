"""A token is one program's, for one person: its rights, its sessions, and its end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from access_rig import HTML, Site, open_site

from bot.bus import AccessRequest, Address, Sender
from bot.core.errors import HttpError, TapebotError
from bot.core.i18n import use_language
from bot.inspector.access.control_handlers import web_handlers
from bot.inspector.access.login_fold import MOST_TOKENS, RIGHTS, TOKEN_ENDED, TOKEN_MADE, LoginFold
from bot.tape.entries import event
from tests.fullwidth_language import LANGUAGE, untranslated_words, write_catalogue


@pytest.fixture
async def site(tmp_path) -> AsyncIterator[Site]:
    async with open_site(
        tmp_path, owners=["telegram:42"], allow=["telegram:8", "telegram:9"]
    ) as on:
        yield on


async def status(site: Site, token: str) -> int:
    browser = await site.browser()
    answer = await browser.get("/probe", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code


async def test_only_an_owners_token_with_the_right_calls_the_sites_api(site):
    make = site.logins.login_store.make_token
    assert await status(site, await make("local", "all")) == 200
    assert await status(site, await make("local", "editor", ["read", "chat"])) == 403
    assert await status(site, await make("telegram.8", "all")) == 403
    assert await status(site, await make("telegram.8", "site", ["site"])) == 401
    assert await status(site, await make("telegram.666", "all")) == 401


async def test_a_token_lasts_as_long_as_its_persons_access(tmp_path):
    async with open_site(tmp_path) as site:
        knock = AccessRequest(
            Address("telegram", "9"), Sender("9", "Eve"), private=True, text="hello"
        )
        reply = (await site.access_control.authorize(knock)).reply or ""
        await site.access_control.approve(reply.split("/pair ")[1].split()[0])
        token = await site.logins.login_store.make_token("telegram.9", "editor")
        assert await site.logins.authenticator.token_of(token) is not None
        await site.access_control.remove("telegram:9")
        assert await site.logins.authenticator.token_of(token) is None


async def test_people_name_their_tokens_without_regard_to_others(site):
    store = site.logins.login_store
    mine, theirs = (
        await store.make_token("local", "editor"),
        await store.make_token("telegram.8", "editor"),
    )
    with pytest.raises(HttpError, match="already a token"):
        await store.make_token("telegram.8", "editor")
    assert await store.end_token("telegram.8", "editor")
    assert await store.token(theirs) is None
    assert await store.token(mine) is not None


async def test_a_token_needs_a_right_and_a_person_has_so_many(site):
    store = site.logins.login_store
    with pytest.raises(HttpError, match="one right at least"):
        await store.make_token("telegram.8", "editor", [])
    for number in range(MOST_TOKENS):
        await store.make_token("telegram.8", f"editor {number}")
    with pytest.raises(HttpError, match="end some first"):
        await store.make_token("telegram.8", "one more")
    await store.make_token("telegram.9", "editor")


async def test_commands_on_tokens_answer_in_the_language_of_the_bot(
    site, tmp_path_factory, monkeypatch
):
    write_catalogue(tmp_path_factory.mktemp("locale"), monkeypatch)
    handlers = web_handlers(site.logins, "Ada")
    names = ("editor", "telegram:42", "telegram:8", "console:local", *RIGHTS, "nobody", "wrong")
    asked = (
        ("tokens", {}),
        ("token", {"name": "editor", "for": "nobody"}),
        ("token", {"name": "editor", "for": "telegram:666"}),
        ("token", {"name": "editor", "rights": ["wrong"]}),
        ("token", {"name": "editor", "rights": []}),
        ("token", {"name": "editor", "for": "telegram:8", "rights": ["site"]}),
        ("token", {"name": "editor"}),
        ("token", {"name": "editor"}),
        ("tokens", {}),
        ("revoke", {"name": "editor"}),
        ("revoke", {"name": "editor"}),
    )
    with use_language(LANGUAGE):
        for what, given in asked:
            try:
                told = str((await handlers[f"web {what}"](given))["text"])
            except TapebotError as error:
                told = str(error)
            if not told.startswith("tapebot_"):
                assert not untranslated_words(told, (*names, "tapebot web token NAME")), told


async def test_its_last_use_is_recorded_once_a_day(site):
    store = site.logins.login_store
    token = await store.make_token("local", "editor")
    assert (await store.tokens())[0].used is None
    for days in (0, 0, 2):
        site.clock.advance(days * 86_400)
        for _ in range(3):
            await status(site, token)
        assert (await store.tokens())[0].used == site.clock.now()
    used = [one for one in await site.host.store.read("workspace:web") if one.name == "token.used"]
    assert len(used) == 2


async def test_a_member_makes_and_ends_their_own_tokens_on_the_site(site):
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
    await browser.post("/account/tokens/end", data={"name": "editor", "as": "local"})
    assert [one.visitor for one in await site.logins.login_store.tokens()] == ["local"]


def test_tokens_of_earlier_versions_keep_what_they_could_do():
    fold, made = (
        LoginFold(),
        {"name": "old", "digest": "d", "as": "local", "at": "2026-02-10T10:00:00Z"},
    )
    fold.apply(event(TOKEN_MADE, made))
    token = fold.token("d")
    assert token is not None
    assert (token.rights, token.own_sessions) == ({"chat", "site"}, False)
    fold.apply(event(TOKEN_ENDED, {"name": "old", "at": "2026-02-10T10:00:00Z"}))
    assert fold.token("d") is None


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/account/tokens", {"name": "more", "chat": "on", "read": "on", "site": "on"}),
        ("/account/tokens/end", {"name": "script"}),
        ("/account/logins", {"login": "others"}),
        ("/account/language", {"language": "de"}),
        ("/account", None),
    ],
)
async def test_a_token_makes_and_ends_no_credentials_whatever_its_rights(site, path, form):
    browser, store = await site.browser(), site.logins.login_store
    given = {"Authorization": f"Bearer {await store.make_token('local', 'script')}"}
    call = (
        browser.get(path, headers=given)
        if form is None
        else browser.post(path, data=form, headers=given)
    )
    answer = await call
    assert (answer.status_code, "by a token" in answer.text) == (403, True)
    assert [one.name for one in await store.tokens()] == ["script"]


async def test_a_token_with_sessions_of_its_own_does_not_read_all_by_the_sites_api(site):
    store = site.logins.login_store
    token = await store.make_token("local", "editor", own_sessions=True)
    assert await status(site, token) == 403
    assert (await store.tokens())[0].rights == {"chat", "read", "propose"}
