"""What people write in Telegram, quote, link to, edit or react with, and how it reaches the bus."""

from __future__ import annotations

import pytest
from telegram_rig import GROUP, garden


@pytest.fixture
async def rig(tmp_path):
    async with garden(tmp_path) as rig:
        yield rig


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


async def test_what_a_message_replies_to_is_quoted(rig):
    rig.access_control.places.add(str(GROUP))
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
    # In a group with access everybody's file may be fetched.
    assert len(rig.telegram.records.downloads) == 1


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


# Other messages.


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "(location: 52.5, 13.4)"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "(dice 🎲: 4)"),
        ({"new_chat_title": "Service"}, None),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
async def test_what_is_no_text_is_told_in_words(rig, content, text):
    async with rig.running():
        rig.telegram.post(rig.chat, 7, content)
        got = await rig.settled()
    assert [one.text for one in got] == ([] if text is None else [text])


# Edits and reactions.
