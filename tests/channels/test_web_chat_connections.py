"""Connections to the web channel: who may have one, how many, and which are closed while others go on."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import pytest
from web_chat import ADA, EVE, opened
from web_stage import closed, joined, program, talked
from websockets.exceptions import InvalidStatus

from bot.bus import Answer
from bot.testing.scripted_model import ScriptedModel
from channels.web.conversation import MAX_QUEUED_FRAMES
from channels.web.socket import MAX_PAGES_PER_USER, NOT_LOGGED_IN, TOO_MANY, TOO_SLOW, WRONG_ORIGIN


@pytest.mark.parametrize(
    ("mark", "headers"),
    [
        ("a" * 8_192, {}),
        ("", {"X-Long": "a" * 8_192}),
        ("", {f"X-{number}": "a" for number in range(128)}),
    ],
    ids=["address", "header", "headers"],
)
async def test_a_handshake_that_is_too_long_is_refused_at_once(stage, mark, headers):
    url = f"{stage.site.url}/chat/socket?mark={mark}".replace("http", "ws", 1)
    with pytest.raises(InvalidStatus) as refused:
        await joined(url, additional_headers=headers)
    assert refused.value.response.status_code == 400


@pytest.mark.slow
async def test_a_page_that_does_not_read_is_closed_while_others_go_on(stage, page):
    url = f"{stage.site.url}/chat/socket?after=0".replace("http", "ws", 1)
    headers = {"Authorization": f"Bearer {ADA.id}"}
    async with joined(url, additional_headers=headers, max_queue=1, compression=None) as slow:
        await slow.recv()
        for number in range(MAX_QUEUED_FRAMES + 80):
            notice = Answer(ADA.address, f"big-{number}", "word " * 40_000)
            await stage.host.bus.send(notice)
            # The page that reads is never far behind, however busy the machine is.
            await page.until(lambda: len(page.said("notice")) >= number - 20)  # noqa: B023
        await page.until(lambda: len(page.said("notice")) >= MAX_QUEUED_FRAMES + 80)
        await talked(page, "and now?")
        assert await closed(slow, ignoring=True) in (TOO_SLOW, 1006)
    assert page.codes == []


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
    stage.access_control.inside.clear()
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
