"""Whom the bot listens to in Telegram, alone and in groups, and what it tells those whom it does not."""

from __future__ import annotations

import pytest
from telegram_rig import GROUP, REFUSAL, garden

from channels.base import GroupPolicy
from testkit.telegram.media_files import TelegramMedia


@pytest.fixture
async def rig(tmp_path):
    async with garden(tmp_path) as rig:
        yield rig


# Who may.


async def test_of_a_stranger_nothing_is_fetched_kept_or_published(rig, caplog):
    """Messages, files, albums, edits, buttons and reactions."""
    eve = rig.telegram.private(13)
    async with rig.running():
        number = rig.telegram.say(eve, 13, "let me in")
        rig.telegram.photo(eve, 13)
        rig.telegram.voice(eve, 13)
        rig.telegram.album(eve, 13, [TelegramMedia("photo"), TelegramMedia("photo")])
        rig.telegram.edit(number, "let me in now")
        rig.telegram.react(number, "👍", user=13)
        rig.telegram.say(rig.group, 13, "@tape_bot hello")
        assert await rig.settled() == []
        await rig.shown(eve, 1)
    books = rig.telegram.records
    assert (books.downloads, books.called("getFile"), rig.spooled) == ([], [], [])
    assert "let me in" not in caplog.text
    assert set(books.texts(eve.id)) == {REFUSAL}
    assert books.texts(GROUP) == []


async def test_a_stranger_who_says_nothing_to_the_bot_is_told_nothing(rig):
    rig.access_control.replies_in_public = True
    rig.groups = GroupPolicy(keep_context=True)
    async with rig.running():
        rig.telegram.say(rig.group, 13, "nice weather")
        rig.telegram.album(rig.group, 13, [TelegramMedia("photo"), TelegramMedia("photo")])
        rig.telegram.say(rig.group, 13, "@tape_bot hello")
        assert await rig.settled() == []
        assert await rig.shown(rig.group, 1) == [REFUSAL]


async def test_a_code_reaches_the_door_as_it_was_written(rig):
    eve = rig.telegram.private(13)
    async with rig.running():
        rig.telegram.say(eve, 13, "/start tape-1234")
        assert await rig.shown(eve, 1) == [REFUSAL]
    [access_request] = rig.access_control.knocks
    assert (access_request.text, access_request.private, access_request.chat_ids) == (
        "/start tape-1234",
        True,
        ("13",),
    )


async def test_members_of_an_allowed_group_are_let_in_as_members(rig):
    rig.access_control.places.add(str(GROUP))
    async with rig.running():
        rig.telegram.say(rig.group, 13, "@tape_bot hello")
        [inbound] = await rig.arrived(1)
    assert (inbound.role, inbound.sender.name, inbound.private) == ("member", "Eve", False)
    assert rig.access_control.knocks[0].text is None


async def test_bots_and_channels_are_not_listened_to(rig):
    rig.access_control.places.add(str(GROUP))
    rig.access_control.people["99"] = "owner"
    news = {"id": -1009, "type": "channel", "title": "News"}
    robot = rig.telegram.world.users[99] = type(rig.telegram.me)(99, "Robot", is_bot=True)
    async with rig.running():
        rig.telegram.say(rig.group, robot, "@tape_bot hi")
        forward = {"is_automatic_forward": True, "sender_chat": news}
        rig.telegram.say(rig.group, 7, "@tape_bot news", extra=forward)
        post = {"message_id": 1, "date": 1, "chat": news, "text": "post"}
        rig.telegram.raw({"channel_post": post})
        assert await rig.settled() == []


async def test_while_the_door_cannot_record_nothing_is_confirmed(rig):
    rig.access_control.broken = True
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "Hello?")
        await rig.telegram.until(lambda books: len(books.updates[0].handed_at) > 1)
        rig.access_control.broken = False
        [inbound] = await rig.arrived(1)
    assert inbound.text == "Hello?"


# GroupPolicy.


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("@tape_bot what grows here?", "what grows here?"),
        ("what grows, @Tape_Bot , here?", "what grows, , here?"),
        ("@tape_bot, what?", "what?"),
        ("hey @tape_bot what?", "hey what?"),
        ("@tape_bot why?\n    def f(a,  b):", "why?\n    def f(a,  b):"),
        ("/memory show", "/memory show"),
        ("/memory@tape_bot show", "/memory show"),
        ("/Memory show", "/Memory show"),
        ("/start", "/start"),
        ("/weather tomorrow", None),
        ("/weather@tape_bot tomorrow", "/weather tomorrow"),
        ("@tape_bot", "@tape_bot"),
        ("@tape_bot ask @dora 🌱", "ask @dora 🌱"),
        ("what is @tape_bots?", None),
        ("mail me at x@tape_bot", None),
        ("/memory@other_bot show", None),
        ("what grows here?", None),
    ],
)
async def test_in_a_group_only_what_is_said_to_the_bot_is_answered(rig, text, heard):
    async with rig.running():
        rig.telegram.say(rig.group, 7, text)
        got = await rig.settled()
    assert [(one.text, one.expects_answer) for one in got] == (
        [] if heard is None else [(heard, True)]
    )


async def test_a_reply_to_the_bot_is_for_the_bot(rig):
    rig.answering = True
    async with rig.running():
        rig.telegram.say(rig.group, 7, "@tape_bot hi")
        await rig.until_reported(1)
        answer = rig.telegram.records.messages(GROUP)[0]
        rig.telegram.say(rig.group, 7, "and now?", reply_to=answer)
        await rig.arrived(2)
    assert (rig.inbounds[1].text, rig.inbounds[1].expects_answer) == ("and now?", True)
    assert rig.inbounds[1].quote is None, "its last answer is known to the bot"


async def test_overheard_messages_are_context_where_that_is_wanted(rig):
    rig.groups = GroupPolicy(keep_context=True)
    async with rig.running():
        rig.telegram.say(rig.group, 7, "the roses need water")
        rig.telegram.say(rig.group, 13, "from a stranger")
        rig.telegram.say(rig.group, 7, "/water@other_bot")
        got = await rig.settled()
    assert [(one.text, one.expects_answer) for one in got] == [("the roses need water", False)]
    assert rig.telegram.records.texts(GROUP) == []


async def test_a_topic_is_a_conversation_of_its_own_and_a_thread_of_replies_is_none(rig):
    forum = rig.telegram.group(-1002, "Forum", forum=True)
    topic = rig.telegram.topic(forum, "Roses", 7)
    rig.answering = True
    async with rig.running():
        rig.telegram.say(forum, 7, "@tape_bot in it", topic=topic)
        rig.telegram.say(forum, 7, "@tape_bot beside it")
        first = rig.telegram.say(rig.group, 7, "hm")
        rig.telegram.say(rig.group, 7, "@tape_bot in a thread", reply_to=first)
        await rig.arrived(3)
        await rig.telegram.until_messages(forum, 2)
    sessions = {one.text: one.session for one in rig.inbounds}
    assert sessions == {
        "in it": f"telegram:{-1002}:{topic}",
        "beside it": f"telegram:{-1002}",
        "in a thread": f"telegram:{GROUP}",
    }
    assert rig.inbounds[0].quote is None
    topics = {one.text: one.topic for one in rig.telegram.records.messages(-1002)}
    assert topics == {"echo: in it": topic, "echo: beside it": None}


async def test_whoever_adds_the_bot_to_a_group_is_told_by_the_program_how_to_allow_it(rig):
    new = rig.telegram.group(-1003, "New", bots=[])
    async with rig.running():
        rig.telegram.join(rig.telegram.me, new, 13)
        await rig.until(lambda: len(rig.said) > 1)
    assert "/pair here" in rig.said[1]
    assert "telegram:-1003" in rig.said[1]
