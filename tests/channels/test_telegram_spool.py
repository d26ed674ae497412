"""What takes long survives a kill, and no chat waits for another's."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
import pytest
from telegram_rig import rigged

from channels.folder_spool import FolderSpool
from testkit.telegram.media_files import TelegramMedia

pytestmark = pytest.mark.slow


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        yield rig


async def test_a_file_whose_fetching_was_killed_is_fetched_after_the_restart(rig):
    rig.telegram.faults.slow(method="download", gate=anyio.Event(), times=1)
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"first")
        rig.telegram.say(rig.chat, 7, "second")
        await rig.telegram.until(
            lambda books: (
                len(books.updates) == 2 and not books.unconfirmed and books.called("getFile")
            )
        )
        assert len(rig.spooled) == 2
        assert rig.inbounds == []
    rig.telegram.faults.clear()
    rig.telegram.say(rig.chat, 7, "third")
    async with rig.running():
        await rig.arrived(3)
        await rig.shown(rig.chat, 3)
        await rig.until_handled()
    assert [one.text for one in rig.inbounds] == ["first", "second", "third"]


async def test_an_album_that_was_killed_before_its_last_part_came_waits_for_it(rig):
    items = [TelegramMedia("photo", b"1"), TelegramMedia("photo", b"22", caption="two")]
    rig.telegram.album(rig.chat, 7, items)
    first = rig.telegram.records.updates[0].update
    await FolderSpool(rig.folder / "telegram" / "spool").store_claimed(first["update_id"], first)
    bot = rig.telegram.world.bots[rig.telegram.token]
    bot.confirm(first["update_id"] + 1, rig.telegram.records)
    # Longer than the next part is waited for, and much shorter than one of before the start is.
    rig.timing = replace(rig.timing, message_group_wait=0.8)
    rig.telegram.faults.slow(1.2, method="getUpdates")
    async with rig.running():
        [inbound] = await rig.arrived(1)
        await rig.shown(rig.chat, 1)
    assert (inbound.text, len(inbound.attachments)) == ("two", 2)


async def test_who_was_shut_out_meanwhile_stays_out(rig):
    rig.telegram.faults.slow(method="download", gate=anyio.Event(), times=1)
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"first")
        await rig.telegram.until(lambda books: books.called("getFile"))
        await rig.telegram.until_confirmed()
    rig.telegram.faults.clear()
    before = len(rig.telegram.records.downloads)
    rig.access_control.people.clear()
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "and now?")
        await rig.shown(rig.chat, 1)
        await rig.until_handled()
    assert rig.inbounds == []
    assert len(rig.telegram.records.downloads) == before


async def test_a_spool_that_cannot_be_written_leaves_the_update_with_telegram(rig):
    (rig.folder / "telegram").mkdir()
    blocked = rig.folder / "telegram" / "spool"
    blocked.write_text("not a folder")
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"first")
        [word] = await rig.shown(rig.chat, 1)
        assert "could not be kept" in word
        assert rig.telegram.records.unconfirmed
        blocked.unlink()
        assert (await rig.shown(rig.chat, 2))[-1] == "echo: first"


async def test_damaged_files_are_set_aside_and_the_others_handled(rig):
    folder = rig.folder / "telegram" / "spool"
    folder.mkdir(parents=True)
    (folder / "5.json").write_text("{")
    (folder / "6.json").write_text(json.dumps({"update_id": 6, "message": {"message_id": "x"}}))
    (folder / "7.json.new").write_text("{}")
    (folder / "README").write_text("mine")
    message = {
        "message_id": 900,
        "date": 1_700_000_000,
        "chat": rig.chat.as_json(),
        "from": rig.telegram.world.users[7].as_json(),
        "text": "kept",
    }
    (folder / "8.json").write_text(json.dumps({"update_id": 8, "message": message}))
    async with rig.running():
        assert await rig.shown(rig.chat, 1) == ["echo: kept"]
        await rig.until_handled(left=2)
    assert rig.spooled == ["5.damaged", "README"]
