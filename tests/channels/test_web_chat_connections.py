"""Connections to the web channel: who may have one, how many, and which are closed while others go on."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import pytest
from web_chat import ADA, EVE, opened
from web_stage import closed, joined, program, talked

from bot.testing.scripted_model import ScriptedModel
from channels.web.socket import MAX_PAGES_PER_USER, NOT_LOGGED_IN, TOO_MANY, WRONG_ORIGIN


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Authorization": "Bearer nobody"}, NOT_LOGGED_IN),
        ({"Authorization": "Bearer local", "Origin": "https://evil.example"}, WRONG_ORIGIN),
        ({"Authorization": "Bearer local", "Origin": "null"}, WRONG_ORIGIN),
    ],
    ids=["nobody", "elsewhere", "sandboxed"],
)
async def test_a_connection_of_nobody_or_of_another_site_is_closed(stage, headers, code):
    url = f"{stage.site.url}/chat/socket".replace("http", "ws", 1)
    async with joined(url, additional_headers=headers) as socket:
        assert await closed(socket) == code


async def test_a_visitor_has_so_many_pages_open_and_no_more(stage):
    url = f"{stage.site.url}/chat/socket".replace("http", "ws", 1)
    headers = {"Authorization": f"Bearer {ADA.id}"}
    async with AsyncExitStack() as stack:
        for _ in range(MAX_PAGES_PER_USER):
            one = await stack.enter_async_context(joined(url, additional_headers=headers))
            assert json.loads(await one.recv())["type"] == "welcome"
        async with joined(url, additional_headers=headers) as more:
            assert await closed(more) == TOO_MANY


async def test_who_may_not_is_told_and_nothing_of_theirs_is_taken(stage):
    async with opened(stage.site, EVE.id) as page:
        await page.until(lambda: page.welcome)
        await page.say("let me in", files=())
        await page.until(lambda: page.refused)
    assert "may no longer use this bot" in page.refused[0]
    assert await stage.lines("web:telegram.13") == []
    assert (await stage.host.bus.statistics())["pending"] == 0
    assert stage.access_control.knocks[-1].sender.id == EVE.id


async def test_who_is_shut_out_meanwhile_is_refused_with_the_next_message(stage, page):
    await talked(page, "hi")
    stage.access_control.people.clear()
    await page.say("and now?")
    await page.until(lambda: page.refused)
    assert page.said("person") == ["hi"]


async def test_a_login_that_ends_is_noticed_without_a_word(tmp_path):
    async with AsyncExitStack() as stack:
        running = program(tmp_path, ScriptedModel(), check_seconds=0.05)
        stage = await stack.enter_async_context(running)
        page = await stack.enter_async_context(opened(stage.site))
        await page.until(lambda: page.welcome)
        del stage.site.people[ADA.id]
        await page.until(lambda: page.codes)
        ended = [frame for frame in page.frames if frame["type"] == "ended"]
        assert "Log in" in ended[0]["text"]
        assert page.codes[0] == NOT_LOGGED_IN
