"""Edits, files and commands on Telegram above real sessions, across restarts."""

from __future__ import annotations

import pytest
from chat_lives import PICTURE, Members, Told, life
from forget_traces import until_clean

from testkit.telegram.media_files import TelegramMedia
from testkit.telegram.server import TelegramServer

GROUP = -1001


@pytest.fixture
async def telegram():
    async with TelegramServer() as server:
        server.user(7, "Ada", "ada")
        server.user(13, "Eve", "eve")
        yield server


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
        telegram.edit(paste, "short", chat=chat)
        telegram.edit(other, "", chat=chat, caption=True)
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
    assert changed == ["a" * 4096 + "c", "a" * 4096 + "d", "short\nd"]
    assert [one for one, edited in said if edited == str(other - 1)] == ["a cat\ntwo dogs", "a cat"]
    assert len(telegram.records.texts(7)) == 3
