"""Files that people send in Telegram: fetched, put together as one message, and holding up no other chat."""

from __future__ import annotations

import anyio
import pytest
from telegram_rig import garden

from testkit.telegram.media_files import TelegramMedia


@pytest.fixture
async def rig(tmp_path):
    async with garden(tmp_path) as rig:
        yield rig


@pytest.mark.parametrize("declared", [25 * 1024 * 1024, None])
async def test_a_file_that_telegram_does_not_give_is_told_of(rig, declared):
    rig.desk.most = 100 if declared is None else rig.desk.most
    async with rig.running():
        rig.telegram.document(rig.chat, 7, "big.zip", "", b"x" * 101, size=declared)
        [inbound] = await rig.arrived(1)
    note = inbound.attachments[0].note
    assert "larger than" in note
    assert ("20 MB" in note) == (declared is not None)


async def test_an_album_is_one_message(rig):
    pictures = [
        TelegramMedia("photo", b"one"),
        TelegramMedia("photo", b"three", caption="two cats"),
    ]
    async with rig.running():
        numbers = rig.telegram.album(rig.chat, 7, pictures)
        rig.telegram.say(rig.chat, 7, "which is older?")
        album, question = await rig.arrived(2)
        rig.telegram.edit(numbers[1], "three cats", caption=True)
        edit = (await rig.arrived(3))[2]
        await rig.until_handled()
    assert (album.id, album.text) == (str(numbers[0]), "two cats")
    assert [one.size for one in album.attachments] == [3, 5]
    assert question.text == "which is older?"
    first, second = map(str, numbers)
    assert album.parts == ((first, 0, 0), (second, 0, len("two cats")))
    assert (edit.text, edit.edited_message_id) == ("three cats", second)


async def test_a_file_on_its_way_holds_its_own_chat_in_order_and_neither_another_nor_a_stop(rig):
    gate = anyio.Event()
    rig.telegram.faults.slow(method="download", gate=gate)
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"first")
        rig.telegram.say(rig.chat, 7, "second")
        rig.telegram.say(rig.chat, 7, "/stop")
        rig.telegram.say(rig.group, 7, "@tape_bot elsewhere")
        await rig.arrived(2)
        await rig.telegram.until_confirmed()
        assert {one.text for one in rig.inbounds} == {"/stop", "elsewhere"}
        gate.set()
        await rig.arrived(4)
    assert [one.text for one in rig.inbounds[2:]] == ["first", "second"]


async def test_an_album_that_names_the_bot_anywhere_is_for_the_bot(rig):
    async with rig.running():
        silent = [TelegramMedia("photo"), TelegramMedia("photo", caption="for us")]
        rig.telegram.album(rig.group, 7, silent)
        rig.telegram.say(rig.chat, 7, "between")
        named = [TelegramMedia("photo"), TelegramMedia("photo", caption="@tape_bot which?")]
        rig.telegram.album(rig.group, 7, named)
        await rig.arrived(2)
        got = await rig.settled()
    assert [(one.text, len(one.attachments)) for one in got] == [("between", 0), ("which?", 2)]
    assert len(rig.telegram.records.downloads) == 2
