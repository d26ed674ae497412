"""The Telegram of the tests lives in a process of its own while bots come and go."""

from __future__ import annotations

import base64
import json

import aiohttp
import pytest

from testkit.telegram.process import TelegramProcess


async def call(telegram, method, **params):
    url = f"{telegram.url}/bot{telegram.token}/{method}"
    async with aiohttp.ClientSession() as http, http.post(url, data=params) as answer:
        return await answer.json()


async def test_another_process_drives_it_and_reads_its_books(tmp_path):
    file = tmp_path / "books.jsonl"
    async with TelegramProcess(file) as telegram:
        await telegram.do("user", id=7, name="Ada")
        await telegram.do("private", user=7)
        asked = await telegram.do("say", chat=7, user=7, text="hello")
        data = base64.b64encode(b"bytes").decode()
        await telegram.do("document", chat=7, user=7, name="a", mime="text/plain", data=data)
        found = (await call(telegram, "getUpdates"))["result"]
        assert found[0]["message"]["message_id"] == asked
        sent = await call(telegram, "sendMessage", chat_id=7, text="hello to you")
        assert sent["ok"]
        await telegram.do("until_messages", chat=7, count=1)
        assert await telegram.texts(7) == ["hello to you"]
        await call(telegram, "getUpdates", offset=found[-1]["update_id"] + 1)
        await telegram.do("until_confirmed")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    kinds = {line["fact"] for line in lines}
    assert kinds >= {"update", "handed", "shown", "call", "confirmed"}


async def test_faults_are_set_from_outside():
    async with TelegramProcess() as telegram:
        await telegram.do("user", id=7, name="Ada")
        await telegram.do("private", user=7)
        await telegram.do("faults.flood_once", chat=7, retry_after=3)
        refused = await call(telegram, "sendMessage", chat_id=7, text="x")
        assert refused["parameters"] == {"retry_after": 3}
        await telegram.do("fault", kind="refuse", method="sendMessage", status=400)
        assert (await call(telegram, "sendMessage", chat_id=7, text="x"))["error_code"] == 400
        await telegram.do("missing", method="sendMessageDraft")
        assert (await call(telegram, "sendMessageDraft", chat_id=7))["error_code"] == 404
        with pytest.raises(RuntimeError, match="no act 'dance'"):
            await telegram.do("dance")
        with pytest.raises(TimeoutError, match="shown: \\[\\]"):
            await telegram.until(lambda books: books["shown"], within=0.1)


async def test_it_is_controlled_while_it_is_down():
    async with TelegramProcess() as telegram:
        await telegram.do("down")
        with pytest.raises(aiohttp.ClientConnectionError):
            await call(telegram, "getMe")
        assert (await telegram.records())["shown"] == []
        await telegram.do("up")
        assert (await call(telegram, "getMe"))["ok"]
