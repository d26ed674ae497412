"""What people do in Telegram, and what of it reaches the bus."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio
import pytest
from telegram_rig import REFUSAL, rigged

from bot.bus import Address, Sender, SessionFull
from channels.base import GroupPolicy, MenuCommand
from testkit.telegram.media_files import TelegramMedia

GROUP = -1001
FORUM = -1002


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        rig.chat = rig.telegram.private(7)
        rig.group = rig.telegram.group(GROUP, "Garden")
        rig.answering = False
        rig.commands = (MenuCommand("memory", "What I know"),)
        yield rig


async def settled(rig) -> list:
    """Return all that reached the bus once nothing is on its way."""
    await rig.telegram.until_confirmed()
    mark = rig.telegram.say(rig.chat, 7, "the last")
    await rig.until(lambda: any(one.id == str(mark) for one in rig.inbounds))
    return [one for one in rig.inbounds if one.id != str(mark)]


# Who may.


async def test_a_private_message_says_who_wrote_it_where_and_when(rig):
    async with rig.running():
        number = rig.telegram.say(rig.chat, 7, "  Grüße 👋  ")
        [inbound] = await rig.arrived(1)
    assert inbound.address == Address("telegram", "7")
    assert (inbound.id, inbound.sender) == (str(number), Sender("7", "Ada"))
    assert (inbound.text, inbound.private, inbound.expects_answer) == ("Grüße 👋", True, True)
    assert (inbound.role, inbound.quote, inbound.edited_message_id, inbound.pressed_message_id) == (
        "owner",
        None,
        None,
        None,
    )
    assert abs((datetime.now(UTC) - inbound.sent_at).total_seconds()) < 60


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
        assert await settled(rig) == []
        await rig.shown(eve, 1)
    books = rig.telegram.records
    assert (books.downloads, books.called("getFile"), rig.spooled) == ([], [], [])
    assert "let me in" not in caplog.text
    assert set(books.texts(eve.id)) == {REFUSAL}
    assert books.texts(GROUP) == []


async def test_a_stranger_who_says_nothing_to_the_bot_is_told_nothing(rig):
    rig.access_control.silent_in_groups = False
    rig.groups = GroupPolicy(keep_context=True)
    async with rig.running():
        rig.telegram.say(rig.group, 13, "nice weather")
        rig.telegram.album(rig.group, 13, [TelegramMedia("photo"), TelegramMedia("photo")])
        rig.telegram.say(rig.group, 13, "@tape_bot hello")
        assert await settled(rig) == []
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
    rig.access_control.chats.add(str(GROUP))
    async with rig.running():
        rig.telegram.say(rig.group, 13, "@tape_bot hello")
        [inbound] = await rig.arrived(1)
    assert (inbound.role, inbound.sender.name, inbound.private) == ("member", "Eve", False)
    assert rig.access_control.knocks[0].text is None


async def test_an_anonymous_administrator_is_the_group_itself(rig):
    rig.access_control.chats.add(str(GROUP))
    anonymous = rig.telegram.world.users[1087968824] = type(rig.telegram.me)(
        1087968824, "Group", "GroupAnonymousBot", is_bot=True
    )
    async with rig.running():
        chat = {"id": GROUP, "type": "supergroup", "title": "Garden"}
        rig.telegram.say(rig.group, anonymous, "@tape_bot hi", extra={"sender_chat": chat})
        [inbound] = await rig.arrived(1)
    assert inbound.sender == Sender(str(GROUP), "Garden")


async def test_bots_and_channels_are_not_listened_to(rig):
    rig.access_control.chats.add(str(GROUP))
    rig.access_control.roles["99"] = "owner"
    robot = rig.telegram.world.users[99] = type(rig.telegram.me)(99, "Robot", is_bot=True)
    async with rig.running():
        rig.telegram.say(rig.group, robot, "@tape_bot hi")
        rig.telegram.say(
            rig.group,
            7,
            "@tape_bot news",
            extra={
                "is_automatic_forward": True,
                "sender_chat": {"id": -1009, "type": "channel", "title": "News"},
            },
        )
        rig.telegram.raw(
            {
                "channel_post": {
                    "message_id": 1,
                    "date": 1,
                    "chat": {"id": -1009, "type": "channel", "title": "News"},
                    "text": "post",
                }
            }
        )
        assert await settled(rig) == []


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
        got = await settled(rig)
    assert [(one.text, one.expects_answer) for one in got] == (
        [] if heard is None else [(heard, True)]
    )


async def test_a_mention_without_a_handle_counts_and_one_of_somebody_else_is_a_name(rig):
    me = rig.telegram.me.as_json()
    dora = {"id": 5, "is_bot": False, "first_name": "Dora"}
    async with rig.running():
        rig.telegram.say(
            rig.group,
            7,
            "🌱 Tape, ask Dora",
            entities=[
                {"type": "text_mention", "offset": 3, "length": 4, "user": me},
                {"type": "text_mention", "offset": 13, "length": 4, "user": dora},
            ],
        )
        [inbound] = await rig.arrived(1)
    assert inbound.text == "🌱 , ask @Dora"


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


async def test_where_everything_is_answered_everything_asks(rig):
    rig.groups = GroupPolicy(always_answer=frozenset({f"telegram:{GROUP}"}))
    async with rig.running("telegram-work"):
        rig.telegram.say(rig.group, 7, "what grows here?")
        [inbound] = await rig.arrived(1)
    assert (inbound.expects_answer, inbound.address.channel) == (True, "telegram-work")


async def test_overheard_messages_are_context_where_that_is_wanted(rig):
    rig.groups = GroupPolicy(keep_context=True)
    async with rig.running():
        rig.telegram.say(rig.group, 7, "the roses need water")
        rig.telegram.say(rig.group, 13, "from a stranger")
        rig.telegram.say(rig.group, 7, "/water@other_bot")
        got = await settled(rig)
    assert [(one.text, one.expects_answer) for one in got] == [("the roses need water", False)]
    assert rig.telegram.records.texts(GROUP) == []


async def test_a_command_of_nobody_knows_which_bot_is_overheard_as_any_text(rig):
    rig.groups = GroupPolicy(keep_context=True)
    async with rig.running():
        rig.telegram.say(rig.group, 7, "/weather tomorrow")
        rig.telegram.say(rig.chat, 7, "/weather tomorrow")
        got = await rig.arrived(2)
    assert [(one.text, one.private, one.expects_answer) for one in got] == [
        ("/weather tomorrow", False, False),
        ("/weather tomorrow", True, True),
    ]


async def test_privacy_mode_is_told_of_where_it_is_in_the_way(rig):
    rig.telegram.world.bots[rig.telegram.token].privacy = True
    async with rig.running():
        await rig.until(lambda: len(rig.said) == 1)
    rig.groups = GroupPolicy(keep_context=True)
    async with rig.running():
        await rig.until(lambda: len(rig.said) == 3)
    assert "/setprivacy" in rig.said[1]


async def test_a_topic_is_a_conversation_of_its_own_and_a_thread_of_replies_is_none(rig):
    forum = rig.telegram.group(FORUM, "Forum", forum=True)
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
        "in it": f"telegram:{FORUM}:{topic}",
        "beside it": f"telegram:{FORUM}",
        "in a thread": f"telegram:{GROUP}",
    }
    assert rig.inbounds[0].quote is None
    topics = {one.text: one.topic for one in rig.telegram.records.messages(FORUM)}
    assert topics == {"echo: in it": topic, "echo: beside it": None}


async def test_whoever_adds_the_bot_to_a_group_is_told_by_the_program_how_to_allow_it(rig):
    new = rig.telegram.group(-1003, "New", bots=[])
    async with rig.running():
        rig.telegram.join(rig.telegram.me, new, 13)
        await rig.until(lambda: len(rig.said) > 1)
    assert "/pair here" in rig.said[1]
    assert "telegram:-1003" in rig.said[1]


# Links.


def link(offset: int, length: int, url: str) -> dict:
    return {"type": "text_link", "offset": offset, "length": length, "url": url}


async def test_a_link_behind_words_is_read_with_them(rig):
    mention = {"type": "mention", "offset": 0, "length": 9}
    async with rig.running():
        rig.telegram.say(
            rig.group,
            7,
            "@tape_bot 🌱 read this and that",
            entities=[
                mention,
                link(18, 4, "https://a.example/x?y=1"),
                link(27, 4, "https://b.example/"),
            ],
        )
        rig.telegram.photo(
            rig.chat,
            7,
            caption="the shop",
            extra={"caption_entities": [link(4, 4, "https://c.example/")]},
        )
        first, second = await rig.arrived(2)
    assert first.text == "🌱 read this (https://a.example/x?y=1) and that (https://b.example/)"
    assert second.text == "the shop (https://c.example/)"


@pytest.mark.parametrize(
    ("words", "url"),
    [
        ("example.com/a", "http://example.com/a"),
        ("https://example.com", "https://example.com/"),
        ("Dora", "tg://user?id=5"),
        ("much", "https://example.com/" + "x" * 1000),
    ],
)
async def test_a_link_that_says_itself_or_names_a_person_is_its_words(rig, words, url):
    async with rig.running():
        rig.telegram.say(rig.chat, 7, words, entities=[link(0, len(words), url)])
        [inbound] = await rig.arrived(1)
    assert inbound.text == words


async def test_links_of_what_is_answered_or_forwarded_are_quoted(rig):
    eve = rig.telegram.world.users[13]
    links = {"entities": [link(0, 4, "https://a.example/")]}
    dora = {"type": "text_mention", "offset": 0, "length": 4, "user": eve.as_json()}
    async with rig.running():
        theirs = rig.telegram.say(rig.group, 13, "here it is", entities=links["entities"])
        rig.telegram.say(rig.group, 7, "@tape_bot is it good?", reply_to=theirs)
        marked = {"quote": {"text": "here", "position": 0, "is_manual": True} | links}
        rig.telegram.say(rig.group, 7, "@tape_bot this?", reply_to=theirs, extra=marked)
        rig.telegram.say(rig.chat, 7, "here it is", forward_from=eve, **links)
        named = rig.telegram.say(rig.group, 13, "Dora knows", entities=[dora])
        rig.telegram.say(rig.group, 7, "@tape_bot who?", reply_to=named)
        got = await rig.arrived(4)
    assert [one.quote.partition("\n")[2] for one in got] == [
        "here (https://a.example/) it is",
        "here (https://a.example/)",
        "here (https://a.example/) it is",
        "Dora knows",
    ]


# Quotes.


async def test_forwarded_text_is_not_the_persons_own(rig):
    eve = rig.telegram.world.users[13]
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "/new", forward_from=eve)
        rig.telegram.say(rig.chat, 7, "x" * 3000, forward_from="Somebody Hidden")
        first, second = await rig.arrived(2)
    assert (first.text, first.quote) == ("", 'Forwarded from "Eve" (13):\n/new')
    assert second.quote.startswith('Forwarded from "Somebody Hidden":\nxxx')
    assert len(second.quote.partition("\n")[2]) == 2000


async def test_a_forwarded_voice_message_is_not_the_persons_own_either(rig):
    origin = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"buy it", extra={"forward_origin": origin})
        [inbound] = await rig.arrived(1)
    assert (inbound.text, inbound.quote) == ("", 'Forwarded from "Eve":\nbuy it')


async def test_what_a_message_replies_to_is_quoted(rig):
    rig.access_control.chats.add(str(GROUP))
    async with rig.running():
        theirs = rig.telegram.say(rig.group, 13, "roses are red")
        rig.telegram.say(rig.group, 7, "@tape_bot is that so?", reply_to=theirs)
        rig.telegram.say(rig.group, 7, "@tape_bot all?", reply_to=theirs, quote="roses")
        picture = rig.telegram.photo(rig.group, 13)
        rig.telegram.say(rig.group, 7, "@tape_bot what?", reply_to=picture)
        quotes = [one.quote for one in await rig.arrived(3)]
    assert quotes == [
        'In reply to "Eve" (13):\nroses are red',
        'In reply to "Eve" (13):\nroses',
        'In reply to "Eve" (13):\n(photo)',
    ]
    assert rig.telegram.records.downloads == []


async def test_an_older_answer_of_the_bot_is_quoted_and_a_part_of_the_last_one_too(rig):
    rig.answering = True
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "one")
        await rig.until_reported(1)
        rig.telegram.say(rig.chat, 7, "two")
        await rig.until_reported(2)
        old, last = rig.telegram.records.messages(7)
        rig.answering = False
        rig.telegram.say(rig.chat, 7, "the old", reply_to=old)
        rig.telegram.say(rig.chat, 7, "the last", reply_to=last)
        rig.telegram.say(rig.chat, 7, "a part", reply_to=last, quote="echo")
        quotes = [one.quote for one in (await rig.arrived(5))[2:]]
    assert quotes == [
        "In reply to your message:\necho: one",
        None,
        "In reply to your message:\necho",
    ]


# Files.


async def test_a_photo_is_taken_in_the_largest_useful_size(rig):
    async with rig.running():
        rig.telegram.photo(rig.chat, 7, b"a picture", caption="my cat")
        [inbound] = await rig.arrived(1)
    assert inbound.text == "my cat"
    [photo] = inbound.attachments
    assert (photo.kind, photo.mime, photo.size) == ("image", "image/jpeg", len(b"a picture"))
    assert len(rig.telegram.records.downloads) == 1


async def test_what_a_voice_message_says_is_the_message(rig):
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"buy milk")
        [inbound] = await rig.arrived(1)
    assert (inbound.text, inbound.attachments[0].kind) == ("buy milk", "voice")


async def test_a_document_keeps_its_name(rig):
    async with rig.running():
        rig.telegram.document(rig.chat, 7, "plan.pdf", "application/pdf", b"%PDF")
        [inbound] = await rig.arrived(1)
    [document] = inbound.attachments
    assert (document.kind, document.name, document.mime) == (
        "document",
        "plan.pdf",
        "application/pdf",
    )


@pytest.mark.parametrize("declared", [25 * 1024 * 1024, None])
async def test_a_file_that_telegram_does_not_give_is_told_of(rig, declared):
    rig.desk.most = 100 if declared is None else rig.desk.most
    async with rig.running():
        rig.telegram.document(rig.chat, 7, "big.zip", "", b"x" * 101, size=declared)
        [inbound] = await rig.arrived(1)
    note = inbound.attachments[0].note
    assert "larger than" in note
    assert ("20 MB" in note) == (declared is not None)


async def test_a_file_is_fetched_through_a_bad_network(rig):
    rig.telegram.faults.html(502, method="download")
    rig.telegram.faults.hang_up(method="download")
    rig.telegram.faults.hang_up(method="getFile")
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"buy milk")
        [inbound] = await rig.arrived(1)
    assert inbound.text == "buy milk"


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
    assert (edit.text, edit.edited_message_id) == ("three cats", album.id)


async def test_an_edit_of_a_part_keeps_what_the_other_parts_say(rig):
    pictures = [
        TelegramMedia("photo", caption="@tape_bot a cat"),
        TelegramMedia("photo", caption="a dog"),
    ]
    async with rig.running():
        album, other = rig.telegram.album(rig.group, 7, pictures)
        await rig.arrived(1)
        rig.telegram.edit(other, "two dogs", caption=True)
        rig.telegram.edit(album, "@tape_bot two cats", caption=True)
        edits = (await rig.arrived(3))[1:]
        paste = rig.telegram.say(rig.chat, 7, "a" * 4096)
        rest = rig.telegram.say(rig.chat, 7, "b")
        await rig.arrived(4)
        rig.telegram.edit(rest, "c")
        long = (await rig.arrived(5))[4]
    assert [(one.text, one.edited_message_id, one.expects_answer) for one in edits] == [
        ("a cat\ntwo dogs", str(album), True),
        ("two cats\ntwo dogs", str(album), True),
    ]
    assert (long.text, long.edited_message_id) == ("a" * 4096 + "c", str(paste))


async def test_an_edit_of_a_part_that_is_forgotten_is_of_that_part_alone(rig):
    pictures = [TelegramMedia("photo", caption="a cat"), TelegramMedia("photo", caption="a dog")]
    async with rig.running():
        _, other = rig.telegram.album(rig.chat, 7, pictures)
        await rig.arrived(1)
        await rig.telegram.until_confirmed()
    async with rig.running():
        rig.telegram.edit(other, "two dogs", caption=True)
        edit = (await rig.arrived(2))[1]
    assert (edit.text, edit.edited_message_id) == ("two dogs", str(other))


async def test_an_album_whose_next_part_is_slow_to_take_stays_one(rig):
    rig.access_control.holds[2] = anyio.Event()
    async with rig.running():
        rig.telegram.album(
            rig.chat, 7, [TelegramMedia("photo"), TelegramMedia("photo", caption="two")]
        )
        with anyio.fail_after(30):
            await rig.access_control.held.wait()
        await anyio.sleep(
            2 * rig.timing.message_group_wait
        )  # the first part has waited long enough
        rig.access_control.holds[2].set()
        [album] = await rig.arrived(1)
    assert (album.text, len(album.attachments)) == ("two", 2)


async def test_an_album_that_names_the_bot_anywhere_is_for_the_bot(rig):
    async with rig.running():
        silent = [TelegramMedia("photo"), TelegramMedia("photo", caption="for us")]
        rig.telegram.album(rig.group, 7, silent)
        rig.telegram.say(rig.chat, 7, "between")
        named = [TelegramMedia("photo"), TelegramMedia("photo", caption="@tape_bot which?")]
        rig.telegram.album(rig.group, 7, named)
        await rig.arrived(2)
        got = await settled(rig)
    assert [(one.text, len(one.attachments)) for one in got] == [("between", 0), ("which?", 2)]
    assert len(rig.telegram.records.downloads) == 2


async def test_a_long_text_that_telegram_split_is_one_message(rig):
    async with rig.running():
        first = rig.telegram.say(rig.chat, 7, "a" * 4096)
        rig.telegram.say(rig.chat, 7, "b" * 4050)
        rig.telegram.say(rig.chat, 7, "the end")
        rig.telegram.say(rig.chat, 7, "something else")
        paste, other = await rig.arrived(2)
    assert (paste.id, paste.text) == (str(first), "a" * 4096 + "b" * 4050 + "\nthe end")
    assert other.text == "something else"


@pytest.mark.parametrize("command", ["/stop", "/memory show"])
async def test_a_command_never_becomes_the_rest_of_a_long_text(rig, command):
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "a" * 4096)
        rig.telegram.say(rig.chat, 7, command)
        assert [one.text for one in await rig.arrived(2)] == ["a" * 4096, command]


async def test_a_file_on_its_way_holds_its_own_chat_in_order_and_no_other(rig):
    gate = anyio.Event()
    rig.telegram.faults.slow(method="download", gate=gate)
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"first")
        rig.telegram.say(rig.chat, 7, "second")
        rig.telegram.say(rig.group, 7, "@tape_bot elsewhere")
        await rig.arrived(1)
        await rig.telegram.until_confirmed()
        assert [one.text for one in rig.inbounds] == ["elsewhere"]
        gate.set()
        await rig.arrived(3)
    assert [one.text for one in rig.inbounds] == ["elsewhere", "first", "second"]


async def test_a_stop_waits_for_no_file(rig):
    gate = anyio.Event()
    rig.telegram.faults.slow(method="download", gate=gate)
    async with rig.running():
        rig.telegram.voice(rig.chat, 7, b"first")
        rig.telegram.say(rig.chat, 7, "second")
        rig.telegram.say(rig.chat, 7, "/stop")
        await rig.arrived(1)
        assert [one.text for one in rig.inbounds] == ["/stop"]
        gate.set()
        await rig.arrived(3)
    assert [one.text for one in rig.inbounds] == ["/stop", "first", "second"]


# Other messages.


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "(location: 52.5, 13.4)"),
        (
            {
                "venue": {
                    "location": {"latitude": 52.5, "longitude": 13.4},
                    "title": "Zoo",
                    "address": "A 1",
                },
                "location": {"latitude": 52.5, "longitude": 13.4},
            },
            "(place: 52.5, 13.4)",
        ),
        (
            {"contact": {"phone_number": "+49", "first_name": "Eve", "last_name": "Mo"}},
            "(contact)",
        ),
        ({"dice": {"emoji": "🎲", "value": 4}}, "(dice 🎲: 4)"),
        (
            {
                "poll": {
                    "id": "1",
                    "question": "Tea?",
                    "options": [
                        {"persistent_id": "1", "text": one, "voter_count": 0}
                        for one in ("yes", "no")
                    ],
                    "total_voter_count": 0,
                    "is_closed": False,
                    "is_anonymous": True,
                    "type": "regular",
                    "allows_multiple_answers": False,
                    "allows_revoting": True,
                    "members_only": False,
                }
            },
            "(poll: Tea? Options: yes; no)",
        ),
        ({"new_chat_title": "Service"}, None),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
async def test_what_is_no_text_is_told_in_words(rig, content, text):
    message = {
        "message_id": 900,
        "date": 1_700_000_000,
        "chat": rig.chat.as_json(),
        "from": rig.telegram.world.users[7].as_json(),
    }
    async with rig.running():
        rig.telegram.raw({"message": message | content})
        got = await settled(rig)
    assert [one.text for one in got] == ([] if text is None else [text])


async def test_a_sticker_is_its_emoji(rig):
    async with rig.running():
        rig.telegram.sticker(rig.chat, 7)
        [inbound] = await rig.arrived(1)
    assert (inbound.text, inbound.attachments) == ("(sticker 🙂)", ())


# Edits and reactions.


async def test_an_edit_names_the_message_whose_place_it_takes(rig):
    async with rig.running():
        number = rig.telegram.say(rig.chat, 7, "I live in Bonn")
        rig.telegram.edit(number, "I live in Berlin")
        rig.telegram.edit(number, "I live in Bremen")
        await rig.arrived(3)
    edits = rig.inbounds[1:]
    assert [(one.text, one.edited_message_id) for one in edits] == [
        ("I live in Berlin", str(number)),
        ("I live in Bremen", str(number)),
    ]
    assert len({one.id for one in rig.inbounds}) == 3
    assert all(one.id.startswith(f"{number}.e") and one.expects_answer for one in edits)


async def test_an_edit_that_changes_no_text_is_nothing(rig):
    async with rig.running():
        number = rig.telegram.say(rig.chat, 7, "see https://example.org")
        rig.telegram.edit(number, "see https://example.org")
        assert [one.edited_message_id for one in await settled(rig)] == [None]


async def test_a_reaction_is_overheard_and_taking_it_back_is_nothing(rig):
    async with rig.running():
        number = rig.telegram.say(rig.chat, 7, "Hello?")
        await rig.arrived(1)
        rig.telegram.react(number, "👍", user=7)
        await rig.arrived(2)
        rig.telegram.react(number, "", user=7)
        rig.telegram.react(rig.telegram.say(rig.group, 7, "hm"), "👍", user=7)
        _, reaction = await settled(rig)
    assert reaction.text == "(reacted with 👍 to an earlier message)"
    assert (reaction.expects_answer, reaction.private) == (False, True)


async def test_a_full_session_is_told_and_holds_up_nothing(rig):
    rig.port().refusals.append(SessionFull("50 messages already wait here"))
    async with rig.running():
        rig.telegram.say(rig.chat, 7, "one")
        rig.telegram.say(rig.chat, 7, "two")
        [inbound] = await rig.arrived(1)
        assert await rig.shown(rig.chat, 1) == ["50 messages already wait here"]
        await rig.telegram.until_confirmed()
    assert inbound.text == "two"


async def test_of_a_full_session_only_those_hear_who_spoke_to_the_bot(rig):
    """At once, and in the chat's lane behind a file."""
    rig.groups = GroupPolicy(keep_context=True)
    rig.port().refusals += [SessionFull("full")] * 4
    async with rig.running():
        rig.telegram.say(rig.group, 7, "the roses need water")
        await rig.until_tried(1)
        rig.telegram.photo(rig.group, 7, caption="see")
        await rig.until_tried(2)
        rig.telegram.say(rig.group, 7, "@tape_bot help")
        await rig.until_tried(3)
        rig.telegram.photo(rig.group, 7, caption="@tape_bot see")
        assert await rig.shown(rig.group, 2) == ["full", "full"]
        assert await settled(rig) == []
    assert rig.telegram.records.texts(GROUP) == ["full", "full"]
