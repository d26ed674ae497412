"""Buttons on foreign servers: each acts on what it was made for, and tells who pressed it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from acting import writing_tool
from chat_lives import Members, life

from bot.testing.host import Host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel
from testkit.discord.server import DiscordServer
from testkit.telegram.server import TelegramServer

ADA, BOB, FORUM = 7, 8, -1005


@asynccontextmanager
async def program(
    server: TelegramServer | DiscordServer, folder, model=None, owner: int = ADA
) -> AsyncIterator[Host]:
    """Run the program with a bot on the server; everybody may, and one is the owner."""
    if isinstance(server, TelegramServer):
        server.user(ADA, "Ada")
        server.user(BOB, "Bob")
    sessions = {
        "tools": [writing_tool(folder / "acts.txt")],
        "clock": ManualClock(datetime.now(UTC)),
        "schedules": True,
    }
    people, model = Members(owner, others="member"), model or ScriptedModel([])
    async with life(folder, server, model, people, sessions) as host:
        yield host


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


async def shown(server: TelegramServer, chat, words: str):
    """Return the newest message with these words, once it is there."""
    found = lambda: [one for one in server.records.messages(chat) if words in one.text]  # noqa: E731
    await server.until(lambda _: found())
    return found()[-1]


def key(message, label: str) -> str:
    return next(
        one["callback_data"] for row in message.buttons for one in row if one["text"] == label
    )


async def alert(server: TelegramServer, query: str) -> str:
    await server.until(lambda books: any(one.callback == query for one in books.pressed))
    return next(one.text for one in server.records.pressed if one.callback == query)


async def live(host: Host, session: str) -> list[int]:
    ended = {entry.data["number"] for entry in await host.events("schedule.ended", session)}
    made = {entry.data["number"] for entry in await host.events("schedule.set", session)}
    return sorted(made - ended)


async def test_a_button_below_a_message_that_is_shown_no_more_acts_in_its_own_topic(
    server, tmp_path
):
    """Of such a message Telegram tells neither text nor topic; also after a restart."""
    forum = server.group(FORUM, "House", forum=True)
    topic = server.topic(forum, "Garden", server.user(ADA, "Ada"))
    general, garden = f"telegram:{FORUM}", f"telegram:{FORUM}:{topic}"
    async with program(server, tmp_path):
        server.say(forum, ADA, "/remind every day at 8 water the roses", topic=topic)
        made = await shown(server, FORUM, "roses")
        server.say(forum, ADA, "/remind every day at 9 pay the rent")
        await shown(server, FORUM, "rent")
    del server.world.rooms[FORUM].messages[made.id]
    async with program(server, tmp_path) as host:
        server.press(made, key(made, "Cancel"), user=ADA, chat=forum)
        await shown(server, FORUM, "Deleted: reminder 1 (water the roses)")
        assert (await live(host, general), await live(host, garden)) == ([1], [])


async def test_a_press_in_another_chat_or_of_no_conversation_acts_nowhere(server, tmp_path):
    """A modified client may send any id: rights count in the chat of the press alone."""
    group, own = server.group(FORUM, "House"), server.private(server.user(BOB, "Bob"))
    async with program(server, tmp_path) as host:
        server.say(group, ADA, "/remind in 50 minutes water the roses")
        made = await shown(server, FORUM, "roses")
        server.say(own, BOB, "/remind every day at 9 read")
        bobs = await shown(server, BOB, "read")
        await host.bus.drain()
        data, house = key(made, "Cancel"), f"telegram:{FORUM}"
        del server.world.rooms[FORUM].messages[made.id], server.world.rooms[BOB].messages[bobs.id]
        before = [one.id for one in await host.tape(house)]
        for message, chat, forged in (
            (bobs, own, data),
            (bobs, own, data.partition("@")[0] + f"@{house}"),
            (bobs, own, data.partition("@")[0] + "@:31337"),
            (bobs, own, data.partition("@")[0] + "@web:31337"),
            (made, group, data.partition("@")[0] + f"@:{FORUM}:31337"),
            (made, group, "0" * 16 + data[16:]),
        ):
            query = server.press(message, forged, user=BOB, chat=chat, forged=True)
            assert "does nothing any more" in await alert(server, query)
        await host.bus.drain()
        assert [one.id for one in await host.tape(house)] == before
        assert await live(host, house) == [1]
        tapes = [
            one for one in await host.store.list_tapes() if one.startswith(("telegram", "web"))
        ]
        assert sorted(tapes) == [house, f"telegram:{BOB}"]


async def test_somebody_elses_press_and_a_second_one_leave_the_message_as_it_is(server, tmp_path):
    group = server.group(FORUM, "House")
    async with program(server, tmp_path) as host:
        server.say(group, ADA, "/remind every day at 8 water the roses")
        made = await shown(server, FORUM, "roses")
        data = key(made, "Cancel")
        query = server.press(made, data, user=BOB)
        assert "only who set it" in await alert(server, query)
        [now] = server.records.messages(FORUM)
        assert (len(now.versions), key(now, "Cancel")) == (1, data)
        server.press(made, data, user=ADA)
        await shown(server, FORUM, "Deleted: reminder 1")
        query = server.press(made, data, user=ADA)
        assert "does nothing any more" in await alert(server, query)
        assert len(server.records.messages(FORUM)[0].versions) == 2
        assert len(server.records.messages(FORUM)) == 1
        assert await live(host, f"telegram:{FORUM}") == []


@pytest.mark.parametrize(
    ("asks", "label", "words", "word", "restart"),
    [
        ("/memory clear", "Clear it", "To continue, say yes", "yes", True),
        ("/memory clear", "Clear it", "To continue, say yes", "no", False),
        ("/memory forget 1", "Erase", "say yes", "yes", False),
        ("/memory forget 1", "Erase", "say yes", "no", True),
    ],
)
async def test_a_question_that_is_answered_in_words_has_no_button_left(
    server, tmp_path, asks, label, words, word, restart
):
    chat = server.private(server.user(ADA, "Ada"))
    async with program(server, tmp_path) as host:
        server.say(chat, ADA, "/memory add I like zebras")
        await shown(server, ADA, "Added")
        server.say(chat, ADA, asks)
        asked = await shown(server, ADA, words)
        assert key(asked, label)
        await host.bus.drain()
        if not restart:
            await answered_in_words(server, chat, word, asked)
    if restart:
        async with program(server, tmp_path):
            await answered_in_words(server, chat, word, asked)


async def answered_in_words(server: TelegramServer, chat, word: str, asked) -> None:
    number = server.say(chat, ADA, word)
    await server.until_messages(chat, 3)
    await server.until(lambda books: not books.messages(ADA)[1].buttons)
    question, answer = server.records.messages(ADA)[1:]
    assert (question.id, len(question.versions)) == (asked.id, 2)
    # The question of an erasure shows the erased words: what became of it takes its place.
    erased = word == "yes" and "zebras" in question.versions[0].text
    assert (answer.id > number, answer.text == question.text) == (True, erased)
    assert erased == (question.text != question.versions[0].text)
    assert not erased or "zebras" not in question.text


async def test_the_message_of_a_question_that_was_pressed_stays_as_its_answer(server, tmp_path):
    chat = server.private(server.user(ADA, "Ada"))
    async with program(server, tmp_path) as host:
        server.say(chat, ADA, "/memory add I like zebras")
        await shown(server, ADA, "Added")
        for count in (2, 3):
            server.say(chat, ADA, "/memory clear")
            await server.until_messages(chat, count)
        _, first, asked = server.records.messages(ADA)
        server.press(asked, key(asked, "Keep it"), user=ADA)
        await shown(server, ADA, "zebras")
        # The same question was asked twice: the press has answered both.
        await server.until(lambda books: not books.messages(ADA)[1].buttons)
        server.say(chat, ADA, "/status")
        await shown(server, ADA, "Model")
        await host.bus.drain()
    _, before, now, _ = server.records.messages(ADA)
    assert (before.id, now.id, len(now.versions)) == (first.id, asked.id, 2)
    assert "zebras" in now.text


async def test_on_discord_a_refusal_is_shown_to_the_presser_alone(tmp_path):
    async with DiscordServer() as server:
        ada, bob = server.user("Ada"), server.user("Bob")
        place = server.channel(server.guild("House", members=[ada, bob]), "garden")
        async with program(server, tmp_path, owner=ada) as host:
            server.say(place, ada, f"<@{server.bot_id}> /remind every day at 8 roses")
            await server.until_messages(place, 1)
            [made] = server.answers(place)
            [row] = made.components
            cancel = next(one["custom_id"] for one in row["components"])
            number = server.press(made.id, cancel, bob)
            told = server.records.interactions[number]
            alone = lambda: [  # noqa: E731
                one for one in server.records.messages.values() if one.ephemeral
            ]
            await server.until(lambda _: alone())
            assert "only who set it" in alone()[0].content
            assert (told.answer, made.edits, [*made.components]) == (6, [], [row])
            assert await live(host, f"discord:{place}") == [1]
