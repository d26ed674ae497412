"""What people say on Discord reaches the bus: theirs, whole, once, and only if they may."""

from __future__ import annotations

import anyio
import pytest
from discord_rig import Rig

from bot.bus import Address
from testkit.discord.records import DiscordUpload


@pytest.fixture
def general(server, home) -> int:
    return server.channel(home, "general")


@pytest.fixture
def rig(server, ada, tmp_path) -> Rig:
    made = Rig(server, tmp_path)
    made.doors.people[str(ada)] = "owner"
    return made


async def test_a_direct_message_is_a_private_question_with_its_facts(rig, server, ada):
    async with rig.connected():
        number = server.say(server.direct(ada), ada, "hello <@&1> there")
        (inbound,) = await rig.hear()
    assert inbound.address == Address("discord", str(server.direct(ada)))
    assert (inbound.id, inbound.text) == (str(number), "hello <@&1> there")
    assert (inbound.sender.id, inbound.sender.name) == (str(ada), "Ada")
    assert (inbound.private, inbound.expects_answer, inbound.role) == (True, True, "owner")
    assert rig.doors.knocks[-1].text == "hello <@&1> there"


async def test_a_stranger_is_told_what_access_says_and_nothing_of_theirs_is_fetched(
    rig, server, eve
):
    rig.doors.reply = "Your code is 1234."
    async with rig.connected():
        place = server.direct(eve)
        server.say(place, eve, "hi", attachments=[DiscordUpload("secret.txt", b"x")])
        (told,) = await server.until_messages(place, 1)
        assert told.content == "Your code is 1234."
        assert not rig.heard
        assert not server.records.downloads
        assert not server.records.requests("GET", "/messages")
    assert "marks" not in str(list((rig.folder / "discord").glob("*")))


async def test_in_a_channel_only_a_mention_a_reply_and_a_command_are_questions(
    rig, server, ada, eve, general
):
    async with rig.connected():
        server.say(general, ada, "just talking about tapebot")
        server.say(general, ada, f"<@{server.bot_id}> what about <@{eve}> in <#{general}>?")
        await rig.hear()
        address = rig.heard[0].address
        report = await rig.answer(address, "an answer", reply_to=rig.heard[0].id)
        mine = int(report.platform_ids[0])
        server.say(general, ada, "and this?", reply_to=mine, ping=False)
        server.say(general, ada, "/memory undo")
        server.say(general, ada, "/etc is a folder")
        server.say(general, ada, f"<@{server.bot_id}> /unknown")
        await rig.hear(4)
    assert rig.texts() == [
        "what about @Eve in #general?",
        "and this?",
        "/memory undo",
        "/unknown",
    ]
    assert all(each.expects_answer and not each.private for each in rig.heard)
    assert address == Address("discord", str(general))


async def test_context_is_published_unasked_where_it_is_kept_and_from_nobody_unknown(
    server, ada, eve, general, tmp_path
):
    rig = Rig(server, tmp_path, keep_context=True)
    rig.doors.people[str(ada)] = "member"
    rig.doors.reply, rig.doors.replies_in_public = "no", True
    async with rig.connected():
        server.say(general, eve, "a stranger's")
        server.say(general, ada, "context")
        await rig.hear()
        assert not server.answers(general)
    assert [(each.text, each.expects_answer, each.role) for each in rig.heard] == [
        ("context", False, "member")
    ]


async def test_a_thread_is_a_conversation_of_its_own_and_is_allowed_by_its_channel_or_server(
    rig, server, ada, eve, home, general
):
    rig.doors.places.add(str(home))
    thread = server.thread(general, "plans", user=ada)
    async with rig.connected():
        server.say(thread, eve, f"<@{server.bot_id}> in the thread")
        server.say(general, eve, f"<@{server.bot_id}> outside")
        await rig.hear(2)
        fresh = server.thread(general, "later", user=ada)
        server.say(fresh, eve, f"<@{server.bot_id}> in a new one")
        await rig.hear(3)
    found = {each.text: each.address for each in rig.heard}
    assert found["in the thread"] == Address("discord", str(general), str(thread))
    assert found["outside"] == Address("discord", str(general))
    assert found["in a new one"] == Address("discord", str(general), str(fresh))
    access_request = next(each for each in rig.doors.knocks if each.address.topic == str(thread))
    assert access_request.chat_ids == (str(thread), str(general), str(home))


async def test_what_is_replied_to_or_forwarded_is_a_quote_and_not_the_persons_words(
    rig, server, ada, eve, general
):
    async with rig.connected():
        said = server.say(general, eve, "the tea is cold" + "!" * 3000)
        server.say(general, ada, "is it?", reply_to=said, mentions=[server.bot_id])
        snapshot = {
            "type": 0,
            "content": "secret plan",
            "embeds": [],
            "attachments": [],
            "timestamp": "2026-01-01T00:00:00+00:00",
            "edited_timestamp": None,
        }
        forward = {
            "message_snapshots": [{"message": snapshot}],
            "message_reference": {"type": 1, "message_id": "1", "channel_id": "2"},
        }
        server.say(server.direct(ada), ada, "look", extra=forward)
        await rig.hear(2)
    quotes = {each.text: each.quote for each in rig.heard}
    assert quotes["is it?"].startswith(f'In reply to "Eve" ({eve}):\nthe tea is cold!')
    assert len(quotes["is it?"]) == 2000
    assert quotes["look"] == "Forwarded from another conversation:\nsecret plan"


async def test_a_reply_to_the_last_answer_quotes_nothing_and_one_to_an_older_does(rig, server, ada):
    place = server.direct(ada)
    async with rig.connected():
        server.say(place, ada, "one")
        await rig.hear()
        address = rig.heard[0].address
        first = await rig.answer(address, "first answer", number="a1")
        second = await rig.answer(address, "second answer", number="a2")
        server.say(place, ada, "to the last", reply_to=int(second.platform_ids[0]))
        server.say(place, ada, "to the older", reply_to=int(first.platform_ids[0]))
        await rig.hear(3)
    assert [each.quote for each in rig.heard[1:]] == [
        None,
        "In reply to your message:\nfirst answer",
    ]


async def test_files_are_taken_in_order_and_a_voice_message_speaks(rig, server, ada):
    place = server.direct(ada)
    async with rig.connected():
        files = [
            DiscordUpload("a.png", b"png", "image/png"),
            DiscordUpload("b.pdf", b"pdf", "application/pdf"),
            DiscordUpload("c.bin", b"x" * 5000),
        ]
        server.say(place, ada, "look", attachments=files)
        voice = DiscordUpload("voice-message.ogg", b"what I said", "audio/ogg", seconds=2.0)
        server.say(place, ada, "", attachments=[voice], extra={"flags": 1 << 13})
        await rig.hear(2)
    first, second = rig.heard
    assert [(each.kind, each.name) for each in first.attachments] == [
        ("image", "a.png"),
        ("document", "b.pdf"),
        ("document", "c.bin"),
    ]
    assert "larger" in first.attachments[2].note
    assert (second.text, second.attachments[0].kind) == ("what I said", "voice")


async def test_a_long_file_in_one_chat_delays_no_other_chat(rig, server, ada, general):
    rig.shelf.gate = anyio.Event()
    place = server.direct(ada)
    async with rig.connected():
        server.say(place, ada, "slow", attachments=[DiscordUpload("a.png", b"x", "image/png")])
        await rig.shelf.arrived.wait()
        server.say(place, ada, "after it")
        server.say(general, ada, f"<@{server.bot_id}> quick")
        await rig.hear()
        assert rig.texts() == ["quick"]
        rig.shelf.gate.set()
        await rig.hear(3)
    assert rig.texts() == ["quick", "slow", "after it"]


async def test_bots_webhooks_and_discord_itself_are_ignored(rig, server, ada):
    robot = server.user("robot", bot=True)
    place = server.direct(ada)
    rig.doors.people[str(robot)] = "owner"
    async with rig.connected():
        server.say(place, robot, "beep")
        server.say(place, ada, "from a webhook", extra={"webhook_id": "123456789012345678"})
        server.say(place, ada, "pinned", extra={"type": 6})
        server.say(place, ada, "real")
        await rig.hear()
    assert rig.texts() == ["real"]


async def test_malformed_and_unknown_events_end_nothing(rig, server, ada):
    async with rig.connected():
        server.raw("NEVER_HEARD_OF", {"a": 1})
        server.raw("MESSAGE_CREATE", {"id": "1"})
        server.say(server.direct(ada), ada, "still here")
        await rig.hear()
        assert server.records.count_gateway_events("identify") == 1
    assert rig.texts() == ["still here"]
