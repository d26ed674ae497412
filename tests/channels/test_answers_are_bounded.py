"""What a platform's servers send may be of any size: it costs neither the memory nor the connection."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest
from telegram_rig import rigged

from channels.discord import channel as channel_module
from channels.response_limits import MAX_RESPONSE_BYTES

pytestmark = [pytest.mark.slow, pytest.mark.family("answers without an end")]

MOST_GROWTH = 200 * 1024 * 1024
"""Bytes; the servers for tests are in this process, too, and what they do not get rid of is theirs."""


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) * 1024 < MOST_GROWTH


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("method", ["getUpdates", "getMe", "sendMessage"])
async def test_telegrams_answer_that_does_not_end_is_broken_off_and_asked_for_again(
    tmp_path, method, packed
):
    async with rigged(tmp_path) as rig:
        rig.telegram.faults.endless(method=method, packed=packed)
        async with rig.running():
            rig.telegram.say(rig.chat, 7, "Hello?")
            assert await rig.shown(rig.chat, 1) == ["echo: Hello?"]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("where", ["GET /users/@me", r"POST /channels/\d+/messages"])
async def test_discords_answer_that_does_not_end_is_broken_off_and_asked_for_again(
    rig, server, ada, place, monkeypatch, where, packed
):
    monkeypatch.setattr(channel_module, "MIN_BACKOFF_SECONDS", 0.1)
    server.faults.endless(where, packed=packed)
    async with rig.running():
        await server.until_connected()
        server.say(place, ada, "Hello?")
        [heard] = await rig.hear()
        assert (await rig.answer(heard.address, "Hello!")).delivered


async def test_a_message_of_discords_gateway_that_is_too_large_costs_the_connection_alone(
    rig, server, ada, place, monkeypatch
):
    monkeypatch.setattr(channel_module, "MIN_BACKOFF_SECONDS", 0.1)
    async with rig.connected():
        server.faults.shout(2 * MAX_RESPONSE_BYTES)
        await server.until(lambda books: books.count_gateway_events("connect") == 2)
        server.say(place, ada, "Hello?")
        [heard] = await rig.hear()
    assert heard.text == "Hello?"
