"""Polling: nothing is confirmed to Telegram before it is safe, and nothing ends it but a person."""

from __future__ import annotations

import anyio
import pytest
from refusals import refused
from telegram_rig import Desk, rigged

from bot.bus import BusError
from channels.base import NOT_TAKEN_TEXT


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        yield rig


async def test_what_was_sent_while_the_bot_was_away_is_answered_in_order(rig):
    for text in ("one", "two", "three"):
        rig.telegram.say(rig.chat, 7, text)
    async with rig.running():
        assert await rig.shown(rig.chat, 3) == ["echo: one", "echo: two", "echo: three"]


async def test_an_update_is_confirmed_only_after_its_message_is_on_the_bus(rig):
    rig.port().gate = anyio.Event()
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "keep me")
        await rig.telegram.until(lambda books: books.updates[0].handed_at)
        assert rig.telegram.records.unconfirmed
    assert rig.telegram.records.unconfirmed, "a kill while it is published loses nothing"
    rig.port().gate = None
    async with rig.running():
        assert await rig.shown(rig.chat, 1) == ["echo: keep me"]
        await rig.telegram.until_confirmed()
    assert len(rig.inbounds) == 1


async def test_what_the_bus_refuses_is_not_confirmed_and_tried_again(rig):
    rig.port().refusals += [BusError("the disk is full"), BusError("the disk is full")]
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "one")
        rig.telegram.say(rig.chat, 7, "two")
        shown = await rig.shown(rig.chat, 3)
    # The channel's own word is in nobody's way, so that an answer may overtake it.
    assert [text for text in shown if "disk" not in text] == ["echo: one", "echo: two"]
    assert [text for text in shown if "disk" in text] == ["The disk is full I will retry."]
    assert len(rig.telegram.records.updates[0].handed_at) == 3


async def test_an_update_that_comes_again_is_answered_once(rig):
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "once")
        await rig.shown(rig.chat, 1)
        await rig.telegram.until_confirmed()
        rig.telegram.redeliver(rig.telegram.records.updates[0])
        rig.telegram.say(rig.chat, 7, "after")
        assert await rig.shown(rig.chat, 2) == ["echo: once", "echo: after"]
    async with rig.running():
        rig.telegram.redeliver(rig.telegram.records.updates[0])
        rig.telegram.say(rig.chat, 7, "later")
        assert (await rig.shown(rig.chat, 3))[2:] == ["echo: later"]


def _update(chat: dict, sender: int, **odd) -> dict:
    who = {"id": sender, "is_bot": False, "first_name": "Somebody"}
    whole = {"message_id": 5, "date": 1, "chat": chat, "from": who, "text": "@tape_bot hello"}
    return {"message": {**whole, **odd}}


ADAS = {"id": 7, "type": "private", "first_name": "Ada"}
GARDEN = {"id": -1001, "type": "supergroup", "title": "Garden"}
NAMED = [{"type": "mention", "offset": 0, "length": 9}]


@pytest.mark.parametrize(
    ("update", "told"),
    [
        (_update(ADAS, 7, text={"odd": True}), True),
        (_update(GARDEN, 7, date="yesterday", entities=NAMED), True),
        ({"edited_message": _update(ADAS, 7, date="yesterday")["message"]}, True),
        (_update(ADAS, 7, text=None, photo=[{"file_id": "1"}]), True),
        (_update(ADAS, 7, text=None, kind_of_tomorrow={}), True),
        (_update(ADAS, 7, text=None, group_chat_created=True), False),
        (_update(GARDEN, 7, date="yesterday"), False),
        (_update(GARDEN, 13, date="yesterday", entities=NAMED), False),
        (_update({"id": 13, "type": "private"}, 13, date="yesterday"), False),
        (_update({"id": "here", "type": "private"}, 7), False),
    ],
)
async def test_who_sent_what_cannot_be_read_is_told_once(rig, update, told):
    rig.telegram.private(13)
    rig.telegram.group(-1001, "Garden")
    rig.telegram.raw(update)
    rig.telegram.say(rig.chat, 7, "fine")
    async with rig.running():
        await rig.arrived(1)
        await rig.telegram.until(lambda _: len(rig.telegram.records.shown) >= 1 + told)
        await rig.telegram.until_confirmed()
    texts = [one.text for one in rig.telegram.records.shown]
    assert (texts.count("echo: fine"), texts.count(NOT_TAKEN_TEXT)) == (1, int(told))


async def test_a_message_that_breaks_down_is_told_and_does_not_come_again(rig, caplog):
    class Broken(Desk):
        async def receive(self, file):
            raise RuntimeError("a fault of our own")

    rig.desk = Broken()
    rig.telegram.voice(rig.chat, 7)
    async with rig.running():
        assert await rig.shown(rig.chat, 1) == [NOT_TAKEN_TEXT]
        await rig.until_handled()
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "after")
        assert await rig.shown(rig.chat, 2) == [NOT_TAKEN_TEXT, "echo: after"]
    assert "a fault of our own" in caplog.text


async def test_an_outage_is_waited_out(rig):
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "before")
        await rig.shown(rig.chat, 1)
        async with rig.telegram.outage():
            rig.telegram.say(rig.chat, 7, "during")
            await rig.until(lambda: len(rig.said) == 2)
        assert await rig.shown(rig.chat, 2) == ["echo: before", "echo: during"]
        await rig.until(lambda: len(rig.said) == 3)
    assert "no connection" in rig.said[1]
    assert "connected again" in rig.said[2]


@pytest.mark.parametrize("method", ["getMe", "getUpdates", "deleteWebhook"])
@pytest.mark.parametrize("kind", ["html", "hang_up", "garbage"])
async def test_broken_answers_are_waited_out(rig, method, kind):
    getattr(rig.telegram.faults, kind)(method=method, times=3)
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "Hello?")
        assert await rig.shown(rig.chat, 1) == ["echo: Hello?"]


@pytest.mark.parametrize(
    ("token", "word"),
    [
        pytest.param("nonsense", "is not a bot token", id="no token"),
        pytest.param("123:never-heard-of", "does not accept the token", id="unknown"),
    ],
)
async def test_a_wrong_token_is_refused_by_the_name_of_its_setting(rig, token, word):
    with refused() as texts, anyio.fail_after(30):
        await rig.channel(token=token).run(rig.port())
    (text,) = texts
    assert "TAPEBOT_TELEGRAM_TOKEN" in text
    assert word in text
    assert "never-heard" not in text


async def test_a_token_that_is_revoked_later_ends_the_channel(rig):
    rig.telegram.say(rig.chat, 7, "Hello?")

    async def revoke() -> None:
        await rig.shown(rig.chat, 1)
        rig.telegram.revoke(rig.telegram.token)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(revoke)
            with refused("revoked or mistyped") as texts:
                await rig.channel().run(rig.port())
    assert rig.telegram.token.partition(":")[2] not in texts[0]


@pytest.mark.slow
async def test_the_token_is_in_no_log_line_and_in_no_word_to_anybody(rig, caplog):
    caplog.set_level("DEBUG")
    secret = rig.telegram.token.partition(":")[2]
    faults = rig.telegram.faults
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "one")
        await rig.shown(rig.chat, 1)
        faults.html(404, method="download")
        faults.hang_up(method="sendMessage")
        faults.hang_up(method="getUpdates", times=3)
        faults.garbage(method="sendChatAction")
        rig.telegram.photo(rig.chat, 7)
        await rig.shown(rig.chat, 2)
        async with rig.telegram.outage():
            rig.telegram.say(rig.chat, 7, "two")
        await rig.shown(rig.chat, 3)
    assert secret not in caplog.text
    assert secret not in str(rig.said)
    assert secret not in str(rig.telegram.records.texts(7))
    assert secret not in str(rig.inbounds)


@pytest.mark.slow
async def test_a_network_that_swallows_everything_is_soon_told(rig, caplog):
    gate = anyio.Event()
    rig.telegram.faults.slow(method="getMe", gate=gate)
    async with rig.running():
        # Long before a call is given up.
        await rig.until(lambda: rig.said, within=10)
        gate.set()
        await rig.until(lambda: len(rig.said) == 3)
    [warning] = [one for one in caplog.records if one.levelname == "WARNING"]
    assert warning.getMessage() == rig.said[0]
    assert rig.said[0].startswith("Telegram: no connection to 127.0.0.1; retrying (")
    assert rig.said[1] == "Telegram: connected again"
