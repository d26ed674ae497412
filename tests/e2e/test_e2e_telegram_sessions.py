"""The Telegram channel above real sessions: topics, streams, floods, files and edits, end to end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from zoneinfo import ZoneInfo

import pytest
from chat_lives import Members, life

from bot.bus.media.blobs import FolderBlobs
from bot.cli.tape import timeline_line
from bot.llm.base import CapabilityProfile, ModelRequest
from bot.memory.records.conversation_entries import TURN_END
from bot.testing.host import Host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply
from testkit.telegram.server import TelegramServer

pytestmark = pytest.mark.slow

LONG = "a story that is long enough to be shown while it grows, and then some more"


@asynccontextmanager
async def talking(
    folder, model: ScriptedModel, **groups
) -> AsyncIterator[tuple[TelegramServer, Host]]:
    async with TelegramServer() as telegram:
        telegram.user(7, "Ada")
        telegram.user(8, "Bob")
        async with life(folder, telegram, model, Members(7, 8), **groups) as host:
            yield telegram, host


def asked(request: ModelRequest) -> str:
    return str(request.messages[-1]["content"])


async def test_two_topics_that_stream_at_once_keep_their_messages_and_sessions(tmp_path):
    held = {
        "red": PausedStep(text_reply(f"red: {LONG}, the red end"), partial=f"red: {LONG}"),
        "blue": PausedStep(text_reply(f"blue: {LONG}, the blue end"), partial=f"blue: {LONG}"),
    }
    model = ScriptedModel(lambda request: held["red" if "red" in asked(request) else "blue"])
    async with talking(tmp_path, model, always_answer=frozenset({"telegram:-1005"})) as (
        telegram,
        host,
    ):
        forum = telegram.group(-1005, "Forum", forum=True)
        red, blue = telegram.topic(forum, "Red", 7), telegram.topic(forum, "Blue", 7)
        telegram.say(forum, 7, "a red story", topic=red)
        telegram.say(forum, 7, "a blue story", topic=blue)
        await telegram.until_messages(forum, 2, within=60)
        for one in held.values():
            one.release.set()
        await telegram.until(lambda books: all("end" in text for text in books.texts(forum.id)))
        shown = {one.topic: one.text for one in telegram.records.messages(forum.id)}
        assert shown == {
            red: f"red: {LONG}, the red end",
            blue: f"blue: {LONG}, the blue end",
        }
        for topic in (red, blue):
            assert len(await host.wait_for_event(TURN_END, session=f"telegram:-1005:{topic}")) == 1


async def test_the_tape_of_a_group_that_moved_names_both_ids(tmp_path):
    model = ScriptedModel(lambda request: text_reply(f"echo {len(request.messages)}"))
    async with talking(tmp_path, model, always_answer=frozenset({"telegram:-55"})) as (
        telegram,
        host,
    ):
        group = telegram.group(-55, "Garden", basic=True)
        telegram.say(group, 7, "one")
        await telegram.until_messages(group, 1, within=60)
        telegram.say(telegram.migrate(group, -1009), 7, "two")
        await host.wait_for_event(TURN_END, session="telegram:-55", count=2)
        said = [one for one in await host.tape("telegram:-55") if "sender" in one.meta]
    assert [one.meta.get("moved") for one in said] == [None, ["-55", "-1009"]]
    assert ["-55 → -1009" in timeline_line(one, ZoneInfo("UTC")) for one in said] == [False, True]


async def test_a_flood_limited_chat_delays_no_other_and_gets_its_answer(tmp_path):
    model = ScriptedModel(lambda request: text_reply(f"echo: {asked(request).rpartition('] ')[2]}"))
    async with talking(tmp_path, model) as (telegram, _):
        ada, bob = telegram.private(7), telegram.private(8)
        # So long that the other chat is answered before, even if the machine stands still meanwhile.
        telegram.faults.flood_once(7, retry_after=8).method = "sendMessage"
        telegram.say(ada, 7, "one")
        await telegram.until(lambda books: books.rejected, within=60)
        telegram.say(bob, 8, "two")
        await telegram.until(lambda books: books.texts(8) == ["echo: two"], within=60)
        assert telegram.records.texts(7) == []
        await telegram.until(lambda books: books.texts(7) == ["echo: one"], within=60)
        assert not any(call.early for call in telegram.records.called("sendMessage"))


async def test_a_photo_is_shown_to_a_model_that_sees_and_kept_by_its_content(tmp_path):
    model = ScriptedModel([text_reply("a cat")], profile=CapabilityProfile(vision=True))
    picture = b"\x89PNG\r\n\x1a\n" + b"0" * 64
    async with talking(tmp_path, model) as (telegram, host):
        telegram.photo(telegram.private(7), 7, picture, caption="what is this?")
        await telegram.until(lambda books: books.texts(7) == ["a cat"], within=60)
        (message, *_) = [e for e in await host.tape("telegram:7") if e.kind == "message"]
        (kept,) = message.meta["attachments"]
        assert await FolderBlobs(tmp_path / "blobs").get(kept["blob"]) == picture
    parts = model.requests_for()[0].messages[-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
