"""The Discord server for tests carries words between people and a bot as Discord does."""

from __future__ import annotations

import discord
import pytest
from discord_client_rig import Bot, connected

from testkit.discord.records import DiscordUpload


async def test_a_bot_connects_and_finds_its_guild_channel_members_and_threads(
    server, ann, home, general
):
    thread = server.thread(general, "plans", user=ann)
    async with connected(server) as bot:
        assert bot.user.id == server.bot_id
        assert bot.application_flags.gateway_message_content_limited
        assert bot.get_channel(general).name == "general"
        assert bot.get_channel(thread).parent_id == general
        assert bot.get_guild(home).get_member(ann).display_name == "Ann"


async def test_what_people_say_reaches_the_bot_and_its_reply_is_in_the_books(server, ann, general):
    async with connected(server) as bot:
        said = server.say(general, ann, "hello")
        await server.until(lambda _: bot.texts())
        await bot.heard[0].reply("good day", mention_author=False)
        (answer,) = await server.until_messages(general, 1)
        assert (answer.content, answer.reference) == ("good day", said)
        assert answer.mentions == ()
        assert answer.allowed_mentions["replied_user"] is False


async def test_direct_messages_work_in_both_directions(server, ann):
    async with connected(server) as bot:
        server.say(server.direct(ann), ann, "psst")
        await server.until(lambda _: bot.texts())
        assert isinstance(bot.heard[0].channel, discord.DMChannel)
        await (await bot.fetch_user(ann)).send("yes?")
        assert server.records.texts(server.direct(ann)) == ["psst", "yes?"]


async def test_edits_deletions_and_reactions_are_told_to_both_sides(server, ann, general):
    async with connected(server) as bot:
        said = server.say(general, ann, "one")
        server.edit(said, "two")
        server.react(said, ann, "👍")
        server.react(said, ann, "👍", remove=True)
        await server.until(lambda _: len(bot.reactions) == 2 and bot.edits)
        assert bot.edits[0].data["content"] == "two"
        assert bot.edits[0].data["edited_timestamp"]
        mine = await bot.get_channel(general).send("draft")
        await mine.edit(content="final")
        await mine.add_reaction("👀")
        await mine.delete()
        kept = server.records.messages[mine.id]
        assert [each.content for each in kept.shown] == ["draft", "final"]
        assert kept.reactions == {"👀": [server.bot_id]}
        assert kept.created < kept.edited < kept.deleted


async def test_a_preview_of_a_link_is_an_update_that_is_no_edit(server, ann, general):
    async with connected(server) as bot:
        server.unfurl(server.say(general, ann, "https://example.org"))
        await server.until(lambda _: bot.edits)
        assert bot.edits[0].data["edited_timestamp"] is None


async def test_content_is_hidden_without_the_intent_except_where_discord_shows_it(
    server, ann, general
):
    bot = Bot(intents=discord.Intents.default())
    async with connected(server, bot):
        server.say(general, ann, "secret")
        server.say(general, ann, "you there", mentions=[server.bot_id])
        server.say(server.direct(ann), ann, "direct")
        await server.until(lambda _: len(bot.heard) == 3)
        assert bot.texts() == ["", f"<@{server.bot_id}> you there", "direct"]


async def test_events_that_were_not_asked_for_are_not_sent(server, ann, general):
    bot = Bot(intents=discord.Intents(guilds=True, dm_messages=True))
    async with connected(server, bot):
        server.say(general, ann, "in the guild")
        server.say(server.direct(ann), ann, "direct")
        await server.until(lambda _: bot.heard)
        assert bot.texts() == ["direct"]


async def test_members_are_listed_on_request_to_those_who_see_no_presences(server, ann, home):
    bot = Bot(intents=discord.Intents(guilds=True, members=True))
    async with connected(server, bot):
        assert bot.get_guild(home).get_member(ann).display_name == "Ann"
    blind = Bot(intents=discord.Intents(guilds=True))
    async with connected(server, blind):
        assert blind.get_guild(home).get_member(ann) is None
        assert (await blind.get_guild(home).fetch_member(ann)).display_name == "Ann"


async def test_two_clients_of_one_bot_both_hear_everything(server, ann, general):
    async with connected(server) as first, connected(server) as second:
        server.say(general, ann, "both?")
        await server.until(lambda _: first.texts() == second.texts() == ["both?"])


async def test_histories_are_cut_before_after_and_around(server, ann, general):
    said = [server.say(general, ann, str(number)) for number in range(9)]
    async with connected(server) as bot:
        get = bot.http.logs_from
        assert [m["content"] for m in await get(general, 2)] == ["8", "7"]
        assert [m["content"] for m in await get(general, 2, before=said[5])] == ["4", "3"]
        assert [m["content"] for m in await get(general, 2, after=said[5])] == ["7", "6"]
        assert [m["content"] for m in await get(general, 3, around=said[5])] == ["6", "5", "4"]


@pytest.mark.parametrize(
    ("text", "code"),
    [("x" * 2001, 50035), ("", 50006), ("  \n", 50006)],
    ids=["long", "no", "blank"],
)
async def test_messages_against_the_rules_are_refused(server, general, text, code):
    async with connected(server) as bot:
        with pytest.raises(discord.HTTPException) as caught:
            await bot.get_channel(general).send(text)
        assert caught.value.code == code
        assert not server.answers(general)


async def test_a_reply_to_a_deleted_message_fails_unless_told_not_to(server, ann, general):
    async with connected(server) as bot:
        gone = server.say(general, ann, "forget it")
        server.delete(gone)
        channel = bot.get_channel(general)
        strict = discord.MessageReference(message_id=gone, channel_id=general)
        with pytest.raises(discord.HTTPException) as caught:
            await channel.send("re", reference=strict)
        assert caught.value.code == 50035
        strict.fail_if_not_exists = False
        await channel.send("re", reference=strict)
        assert server.answers(general)[0].reference is None


async def test_places_that_are_closed_to_the_bot_say_why(server, ann, general):
    async with connected(server) as bot:
        hers = await bot.get_channel(general).fetch_message(server.say(general, ann, "mine"))
        server.block(ann)
        codes = []
        for attempt in ("direct", "send", "view", "edit"):
            server.deny(general, send=attempt == "send", view=attempt == "view")
            try:
                if attempt == "direct":
                    await (await bot.fetch_user(ann)).send("hi")
                elif attempt == "edit":
                    await hers.edit(content="yours")
                else:
                    await bot.get_partial_messageable(general).send("hi")
            except discord.Forbidden as error:
                codes.append(error.code)
        assert codes == [50007, 50013, 50001, 50005]


async def test_mentions_ping_only_whom_the_bot_allows(server, ann, general):
    async with connected(server) as bot:
        channel = bot.get_channel(general)
        await channel.send(f"@everyone <@{ann}>", allowed_mentions=discord.AllowedMentions.none())
        await channel.send(f"@everyone <@{ann}>")
        quiet, loud = server.answers(general)
        assert (quiet.mentions, quiet.mention_everyone) == ((), False)
        assert (loud.mentions, loud.mention_everyone) == ((ann,), True)


async def test_files_travel_both_ways(server, ann, general, tmp_path):
    async with connected(server) as bot:
        server.say(
            general, ann, "look", attachments=[DiscordUpload("a.txt", b"hers", "text/plain")]
        )
        await server.until(lambda _: bot.heard)
        (attached,) = bot.heard[0].attachments
        assert (await attached.read(), attached.content_type) == (b"hers", "text/plain")
        (tmp_path / "b.bin").write_bytes(b"its")
        await bot.get_channel(general).send("here", file=discord.File(tmp_path / "b.bin"))
        assert server.answers(general)[0].uploads[0].data == b"its"
        assert len(server.records.downloads) == 1


async def test_threads_are_opened_by_both_sides_written_in_and_archived(server, ann, general):
    async with connected(server) as bot:
        said = server.say(general, ann, "topic")
        thread = server.thread(general, "talk", user=ann, from_message=said)
        assert thread == said
        server.say(thread, ann, "inside")
        await server.until(lambda _: "inside" in bot.texts())
        assert isinstance(bot.heard[-1].channel, discord.Thread)
        server.archive(thread)
        await bot.get_partial_messageable(thread).send("awake")
        assert not server.world.channels[thread].archived
        server.archive(thread, locked=True)
        with pytest.raises(discord.HTTPException) as caught:
            await bot.get_partial_messageable(thread).send("locked")
        assert caught.value.code == 50083
        mine = await bot.get_channel(general).create_thread(
            name="mine", type=discord.ChannelType.public_thread
        )
        await mine.send("first")
        assert [each.content for each in server.answers(mine.id)] == ["first"]


async def test_typing_is_told_and_written_down(server, ann, general):
    async with connected(server) as bot:
        server.type(general, ann)
        await server.until(lambda _: bot.typists == [ann])
        await bot.get_channel(general).typing()
        assert [note.subject for note in server.records.typing] == [str(general)]


async def test_a_guild_that_is_joined_later_is_told(server, ann):
    async with connected(server) as bot:
        club = server.guild("club", [ann])
        lobby = server.channel(club, "lobby")
        await server.until(lambda _: bot.get_channel(lobby))
        assert bot.get_guild(club).name == "club"
