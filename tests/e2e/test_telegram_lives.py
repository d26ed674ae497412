"""Edits, files and commands on Telegram above real sessions, across restarts."""

from __future__ import annotations

import pytest
from chat_lives import PICTURE, Members, Told, life
from forget_steps import until_clean

from testkit.telegram.media_files import TelegramMedia
from testkit.telegram.server import TelegramServer

GROUP = -1001


@pytest.fixture
async def telegram():
    async with TelegramServer() as server:
        server.user(7, "Ada", "ada")
        server.user(13, "Eve", "eve")
        yield server


def newest_text(told: Told) -> str:
    content = told.requests[-1].messages[-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


@pytest.mark.parametrize("restart", [False, True])
async def test_an_edit_of_a_part_changes_the_message_that_the_parts_made(
    telegram, tmp_path, restart
):
    told, chat = Told(), telegram.private(7)
    album = [TelegramMedia("photo", PICTURE, caption="a cat"), TelegramMedia("photo", PICTURE)]

    async def edits(host) -> list:
        telegram.edit(rest, "c", chat=chat)
        telegram.edit(other, "two dogs", chat=chat, caption=True)
        telegram.edit(rest, "d", chat=chat)
        telegram.edit(paste, "b" * 4096, chat=chat)
        await telegram.until_confirmed()
        telegram.say(chat, 7, "and now?")
        await telegram.until_messages(chat, 3)
        return await host.tape("telegram:7")

    async with life(tmp_path, telegram, told.model(), Members(7)) as host:
        paste, rest = telegram.say(chat, 7, "a" * 4096), telegram.say(chat, 7, "b")
        await telegram.until_messages(chat, 1)
        _, other = telegram.album(chat, 7, album)
        await telegram.until_messages(chat, 2)
        await host.wait_for_pending(0)
        if not restart:
            tape = await edits(host)
    if restart:
        async with life(tmp_path, telegram, told.model(), Members(7)) as host:
            tape = await edits(host)
    said = [(e.payload["content"], e.meta.get("edits")) for e in tape if e.kind == "message"]
    changed = [text for text, edited in said if edited == str(paste)]
    assert changed == ["a" * 4096 + "c", "a" * 4096 + "d", "b" * 4096 + "d"]
    assert [edited for text, edited in said if text == "a cat\ntwo dogs"] == [str(other - 1)]
    assert len(telegram.records.texts(7)) == 3


PIECES = {
    "the second part of a long paste": ("@tape_bot " + "a" * 4086, "b", "c"),
    "a caption of an album": ("@tape_bot a cat", "a dog", "two dogs"),
    "a message whose name for the bot goes": ("", "@tape_bot a cat", "a dog"),
}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("piece", PIECES)
async def test_an_edit_in_a_group_that_keeps_no_context_changes_what_was_for_the_bot_alone(
    telegram, tmp_path, piece, restart
):
    told, group = Told(), telegram.group(GROUP, "Garden")
    other, (first, before, after) = telegram.group(-1002, "Yard"), PIECES[piece]
    captions = "album" in piece

    async def edits(host) -> list:
        telegram.edit(named, after, chat=group, caption=captions)
        for chat, number in ((group, aside), (other, apart)):
            telegram.edit(number, "a secret word", chat=chat)
        await telegram.until_confirmed()
        await until_clean(host, tmp_path, ["a secret word"])
        assert "telegram:-1002" not in await host.store.list_tapes()
        return await host.tape(f"telegram:{GROUP}")

    async with life(tmp_path, telegram, told.model(), Members(7)) as host:
        aside, apart = (telegram.say(chat, 7, "an aside") for chat in (group, other))
        if captions:
            media = [TelegramMedia("photo", PICTURE, caption=text) for text in (first, before)]
            _, named = telegram.album(group, 7, media)
        else:
            _, named = (telegram.say(group, 7, text) for text in (first or "well", before))
        await telegram.until_messages(group, 1)
        await host.wait_for_pending(0)
        if not restart:
            tape = await edits(host)
    if restart:
        async with life(tmp_path, telegram, told.model(), Members(7)) as host:
            tape = await edits(host)
    said = [one for one in tape if one.kind == "message" and one.payload["role"] == "user"]
    [edit] = [one for one in said if "edits" in one.meta]
    kept = said[0].payload["content"].removesuffix(before.removeprefix("@tape_bot "))
    assert (edit.payload["content"], len(said)) == (kept + after, 2)
    assert (len(telegram.records.texts(GROUP)), len(told.requests)) == (1, 1)


REPLIED = {
    "photo": TelegramMedia("photo", PICTURE, caption="the sign"),
    "document": TelegramMedia("document", b"a sign of the times", name="sign.txt"),
    "voice": TelegramMedia("voice", b"OggS the sign"),
    "video note": TelegramMedia("video_note", b"\x00\x00\x00\x18ftypmp42"),
}


@pytest.mark.parametrize("kind", REPLIED)
async def test_a_question_about_a_file_brings_the_file_that_is_replied_to(telegram, tmp_path, kind):
    told, chat = Told(), telegram.private(7)
    asked = telegram.send(chat, 7, REPLIED[kind])
    async with life(tmp_path, telegram, told.model(), Members(7)) as host:
        await telegram.until_messages(chat, 1)
        await host.wait_for_pending(0)
    async with life(tmp_path, telegram, told.model(), Members(7)) as host:
        telegram.say(chat, 7, "what is this?", reply_to=asked)
        await telegram.until_messages(chat, 2)
        tape = await host.tape("telegram:7")
    [file] = next(e for e in tape if e.payload.get("content") == "what is this?").meta[
        "attachments"
    ]
    assert file["blob"]
    assert file["quoted"]
    assert "of the message that is replied to" in told.newest
    assert told.images() == (kind == "photo")
    assert ("a sign of the times" in told.newest) == (kind == "document")


async def test_a_file_that_the_bot_sent_is_brought_by_a_reply_to_it(telegram, tmp_path):
    told, chat = Told(), telegram.private(7)
    async with life(tmp_path, telegram, told.model(), Members(7)):
        telegram.document(chat, 7, "sign.txt", "text/plain", b"a sign", caption="/files keep")
        await telegram.until_messages(chat, 1)
        telegram.say(chat, 7, "/files send sign.txt")
        await telegram.until_messages(chat, 3)
        telegram.say(chat, 7, "what is this?", reply_to=telegram.records.messages(7)[-1])
        await telegram.until_messages(chat, 4)
    assert telegram.records.texts(7)[0] == "Kept as sign.txt, 6 bytes."
    assert "sign.txt; of the message that is replied to" in told.newest


async def test_a_file_of_a_stranger_in_a_group_is_not_fetched(telegram, tmp_path):
    told, group = Told(), telegram.group(GROUP, "Garden")
    async with life(tmp_path, telegram, told.model(), Members(7)):
        hers = telegram.photo(group, 13, PICTURE)
        telegram.say(group, 7, "@tape_bot what is this?", reply_to=hers)
        await telegram.until_messages(group, 1)
        assert (told.images(), len(telegram.records.downloads)) == (0, 0)
        assert "its sender may not use this bot" in telegram.records.texts(GROUP)[0]
        own = telegram.photo(group, 7, PICTURE)
        telegram.say(group, 7, "@tape_bot and this?", reply_to=own)
        await telegram.until_messages(group, 2)
    assert (told.images(), len(telegram.records.downloads)) == (1, 1)


async def test_a_file_of_another_chat_is_brought_by_a_reply_to_it(telegram, tmp_path):
    told, chat = Told(), telegram.private(7)
    shown = telegram.photo(telegram.group(-1002, "Far"), 13, PICTURE)
    photo = telegram.world.rooms[-1002].messages[shown]["photo"]
    far = {"id": -1002, "type": "supergroup", "title": "Far"}
    origin = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}
    external = {"external_reply": {"origin": origin, "chat": far, "photo": photo}}
    async with life(tmp_path, telegram, told.model(), Members(7)):
        telegram.say(chat, 7, "what is this?", extra=external)
        await telegram.until_messages(chat, 1)
        assert told.images() == 1
        here = {"external_reply": {**external["external_reply"], "chat": {**far, "id": GROUP}}}
        telegram.say(telegram.group(GROUP, "Garden"), 7, "@tape_bot this?", extra=here)
        await telegram.until_messages(GROUP, 1)
    assert told.images() == 0


async def test_files_that_come_with_a_command_are_the_commands(telegram, tmp_path):
    told, chat = Told(), telegram.private(7)
    note = "(/{} uses no files. To keep what you sent with it, send /files keep.)"
    async with life(tmp_path, telegram, told.model(), Members(7)) as host:
        telegram.document(chat, 7, "old.txt", "text/plain", b"old")
        await telegram.until_messages(chat, 1)
        album = [
            TelegramMedia("document", b"one", caption="/files keep", name="one.txt"),
            TelegramMedia("document", b"two", name="two.txt"),
        ]
        telegram.album(chat, 7, album)
        await telegram.until_messages(chat, 2)
        telegram.document(chat, 7, "four.txt", "text/plain", b"four", caption="/status")
        await telegram.until_messages(chat, 3)
        telegram.say(chat, 7, "/files keep")
        await telegram.until_messages(chat, 4)
        big = TelegramMedia("document", b"x" * 1_000_001, caption="/files keep", name="big.txt")
        telegram.send(chat, 7, big)
        await telegram.until_messages(chat, 5)
        asked = telegram.document(chat, 7, "three.txt", "text/plain", b"three")
        telegram.say(chat, 7, "something else")
        await telegram.until_messages(chat, 7)
        await host.wait_for_pending(0)
    async with life(tmp_path, telegram, told.model(), Members(7)):
        telegram.say(chat, 7, "/files keep", reply_to=asked)
        await telegram.until_messages(chat, 8)
        for place, command in enumerate(("/new", "/stop", "/retry", "/memory")):
            telegram.document(chat, 7, "lost.txt", "text/plain", b"lost", caption=command)
            await telegram.until_messages(chat, 9 + place)
    shown = telegram.records.texts(7)
    assert shown[1] == "Kept as one.txt, 3 bytes.\nKept as two.txt, 3 bytes."
    assert shown[2].endswith(note.format("status"))
    assert shown[3] == "Kept as four.txt, 4 bytes."
    assert shown[4].startswith("I could not read big.txt: larger than")
    assert shown[7] == "Kept as three.txt, 5 bytes."
    assert [note.format(name) in shown[8 + n] for n, name in enumerate(("new", "stop"))] == [
        True,
        True,
    ]


async def test_an_edited_command_is_told_that_it_changes_nothing(telegram, tmp_path):
    told, chat = Told(), telegram.private(7)
    line = "Editing a message neither runs a command nor undoes one"
    async with life(tmp_path, telegram, told.model(), Members(7)) as host:
        command = telegram.say(chat, 7, "/memory add I live in Rome")
        spoken = telegram.say(chat, 7, "hello")
        await telegram.until_messages(chat, 2)
        await host.wait_for_pending(0)
    async with life(tmp_path, telegram, told.model(), Members(7)) as host:
        telegram.edit(command, "/memory add I live in Rome", chat=chat)
        telegram.edit(command, "/memory add I live in Oslo", chat=chat)
        await telegram.until_messages(chat, 3)
        telegram.edit(command, "never mind", chat=chat)
        await telegram.until_messages(chat, 4)
        telegram.edit(spoken, "/new", chat=chat)
        await telegram.until_messages(chat, 5)
        telegram.edit(spoken, "hello there", chat=chat)
        telegram.say(chat, 7, "and now?")
        await telegram.until_messages(chat, 6)
        await host.wait_for_pending(0)
        tape = await host.tape("telegram:7")
    shown = telegram.records.messages(7)
    assert [one.text.startswith(line) for one in shown] == [False, False, True, True, True, False]
    assert [one.reply_to for one in shown[2:5]] == [command, command, spoken]
    said = [entry.payload["content"] for entry in tape if entry.kind == "message"]
    assert not any("Oslo" in text or text == "/new" for text in said)
    assert "hello there" in said


async def test_status_names_the_channels_that_have_no_connection(telegram, tmp_path):
    chat = telegram.private(7)
    async with life(tmp_path, telegram, Told().model(), Members(7)) as host:
        host.services.problems["Discord"] = "Discord: no connection to discord.com; retrying (x)"
        telegram.say(chat, 7, "/status")
        await telegram.until_messages(chat, 1)
    assert "Discord: no connection to discord.com; retrying (x)" in telegram.records.texts(7)[0]
