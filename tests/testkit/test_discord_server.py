"""The Discord server for tests, driven by the unmodified discord.py over sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import discord
import pytest
from discord import app_commands

from testkit.discord.gateway import GUILD_MEMBERS, GUILD_PRESENCES, MESSAGE_CONTENT
from testkit.discord.process import DiscordProcess
from testkit.discord.records import DiscordUpload
from testkit.discord.server import DiscordServer


class Bot(discord.Client):
    """A client that keeps what it is told."""

    def __init__(self, **options) -> None:
        options.setdefault("intents", discord.Intents.all())
        super().__init__(guild_ready_timeout=0.05, **options)
        self.tree = app_commands.CommandTree(self)
        self.ready_once = anyio.Event()
        self.heard: list[discord.Message] = []
        self.edits: list[discord.RawMessageUpdateEvent] = []
        self.reactions: list[tuple[str, str]] = []
        self.threads_seen: list[discord.Thread] = []
        self.typists: list[int] = []
        self.resumes = 0

    async def before_identify_hook(self, _shard, *, initial=False) -> None:
        """Do not wait five seconds before identifying anew."""

    async def close(self) -> None:
        # discord.py says that it is ready in a task of its own, which fails where the client is closed by then.
        if (task := self._connection._ready_task) is not None:
            await asyncio.wait([task], timeout=5)
        await super().close()

    async def on_ready(self) -> None:
        self.ready_once.set()

    async def on_resumed(self) -> None:
        self.resumes += 1

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        self.edits.append(event)

    async def on_raw_reaction_add(self, event: discord.RawReactionActionEvent) -> None:
        self.reactions.append(("+", event.emoji.name))

    async def on_raw_reaction_remove(self, event: discord.RawReactionActionEvent) -> None:
        self.reactions.append(("-", event.emoji.name))

    async def on_thread_create(self, thread: discord.Thread) -> None:
        self.threads_seen.append(thread)

    async def on_raw_typing(self, event: discord.RawTypingEvent) -> None:
        self.typists.append(event.user_id)

    def knows(self, number: int) -> bool:
        """Whether it was told of a guild, and of its members where it asks for them."""
        guild = self.get_guild(number)
        if guild is None or guild.unavailable:
            return False
        return guild.chunked or not self.intents.members

    def texts(self) -> list[str]:
        """Return what people said."""
        return [each.content for each in self.heard if each.author != self.user]


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as listening:
        with listening.used_by_discord_py():
            yield listening


@pytest.fixture
def ann(server: DiscordServer) -> int:
    return server.user("ann", shown="Ann")


@pytest.fixture
def home(server: DiscordServer, ann: int) -> int:
    return server.guild("home", [ann])


@pytest.fixture
def general(server: DiscordServer, home: int) -> int:
    return server.channel(home, "general")


@asynccontextmanager
async def connected(server: DiscordServer, bot: Bot | None = None) -> AsyncIterator[Bot]:
    bot = bot or Bot()
    async with bot, anyio.create_task_group() as group:
        group.start_soon(bot.start, server.token)
        with anyio.fail_after(30):
            await bot.ready_once.wait()
        # It does not wait for long until it is told of them.
        await server.until(lambda _: all(bot.knows(each) for each in server.world.guilds))
        yield bot
        await bot.close()
        group.cancel_scope.cancel()


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


async def test_a_wrong_token_cannot_log_in(server):
    bot = Bot()
    async with bot:
        with pytest.raises(discord.LoginFailure):
            await bot.start("wrong")


async def test_intents_that_the_portal_lacks_close_the_gateway_with_4014():
    async with DiscordServer(portal_intents=GUILD_MEMBERS | GUILD_PRESENCES) as server:
        with server.used_by_discord_py():
            bot = Bot()
            async with bot:
                with anyio.fail_after(30), pytest.raises(discord.PrivilegedIntentsRequired):
                    await bot.start(server.token)
        assert not server.world.portal_intents & MESSAGE_CONTENT


async def test_a_broken_connection_is_resumed_and_missed_events_are_replayed(server, ann, general):
    async with connected(server) as bot:
        server.faults.refuse_gateway(times=1)
        server.faults.drop()
        await server.until(lambda _: not server.hub.gateway.connected)
        server.say(general, ann, "missed")
        await server.until(lambda _: bot.resumes)
        await server.until(lambda _: bot.texts())
        assert bot.texts() == ["missed"]
        assert server.records.count_gateway_events("identify") == 1
        resumed_at = [note.subject for note in server.records.gateway if note.what == "connect"][-1]
        assert resumed_at == "/gateway/resume"


async def test_an_invalid_session_is_begun_anew_and_what_was_missed_is_only_in_the_history(
    server, ann, general
):
    async with connected(server) as bot:
        server.faults.invalidate()
        server.say(general, ann, "missed")
        await server.until(lambda books: books.count_gateway_events("ready") == 2)
        await server.until_connected()
        server.say(general, ann, "heard")
        await server.until(lambda _: bot.texts())
        assert bot.texts() == ["heard"]
        history = [each.content async for each in bot.get_channel(general).history(limit=5)]
        assert history == ["heard", "missed"]


@pytest.mark.parametrize("fault", ["reconnect", "resumable"])
async def test_a_client_that_is_asked_to_reconnect_resumes(server, ann, general, fault):
    async with connected(server) as bot:
        if fault == "reconnect":
            server.faults.reconnect()
        else:
            server.faults.invalidate(resumable=True)
        await server.until(lambda _: bot.resumes)
        server.say(general, ann, "still there?")
        await server.until(lambda _: bot.texts())
        assert server.records.count_gateway_events("identify") == 1


async def test_heartbeats_without_an_answer_make_the_client_reconnect(server):
    server.hub.gateway.heartbeat = 100
    async with connected(server, Bot(heartbeat_timeout=0.5)) as bot:
        server.faults.mute_heartbeats()
        await server.until(lambda books: books.count_gateway_events("disconnect"))
        server.faults.mute_heartbeats(muted=False)
        await server.until(lambda _: bot.resumes)


async def test_a_bot_that_was_not_there_finds_messages_in_the_history_only(server, ann, general):
    async with connected(server):
        pass
    missed = server.say(general, ann, "while you were away")
    async with connected(server) as bot:
        server.say(general, ann, "now")
        await server.until(lambda _: bot.texts())
        assert bot.texts() == ["now"]
        before = discord.Object(missed - 1)
        found = [each async for each in bot.get_channel(general).history(after=before)]
        assert [each.content for each in found] == ["while you were away", "now"]


async def test_histories_are_cut_before_after_and_around(server, ann, general):
    said = [server.say(general, ann, str(number)) for number in range(9)]
    async with connected(server) as bot:
        get = bot.http.logs_from
        assert [m["content"] for m in await get(general, 2)] == ["8", "7"]
        assert [m["content"] for m in await get(general, 2, before=said[5])] == ["4", "3"]
        assert [m["content"] for m in await get(general, 2, after=said[5])] == ["7", "6"]
        assert [m["content"] for m in await get(general, 3, around=said[5])] == ["6", "5", "4"]


async def test_a_nonce_that_is_enforced_makes_no_second_message(server, general):
    async with connected(server) as bot:
        first = await bot.get_channel(general).send("once", nonce="n-1")
        second = await bot.get_channel(general).send("once", nonce="n-1")
        assert first.id == second.id
        assert server.records.texts(general) == ["once"]


async def test_a_lost_answer_leaves_a_message_that_the_nonce_finds_again(server, general):
    async with connected(server) as bot:
        server.faults.lose("POST /channels/.*/messages$")
        channel = bot.get_channel(general)
        with pytest.raises(aiohttp.ClientError):
            await channel.send("shown", nonce="n-2")
        assert (await channel.send("shown", nonce="n-2")).id == server.records.messages_in(general)[
            0
        ].id
        assert [call.status for call in server.records.requests("POST", "/messages")] == [0, 200]


async def test_a_flood_limit_is_told_before_and_obeyed_in_one_channel_only(
    server, home, general, ann
):
    other = server.channel(home, "other")
    async with connected(server) as bot:

        async def write(channel: int) -> None:
            for number in range(3):
                await bot.get_channel(channel).send(str(number))

        server.faults.flood(general, requests=2, per=0.5)
        await write(general)
        server.faults.flood(general, requests=2, per=60.0)
        async with anyio.create_task_group() as group:
            group.start_soon(write, general)
            with anyio.fail_after(30):
                await write(other)
            group.cancel_scope.cancel()
        assert server.records.texts(other) == ["0", "1", "2"]
        assert len(server.answers(general)) < 6
        assert {call.status for call in server.records.requests("POST", "/messages")} == {200}


async def test_an_unexpected_429_is_waited_for_and_tried_again(server, general):
    async with connected(server) as bot:
        server.faults.limit_once(0.1, "POST .*/messages$")
        server.faults.limit_once(0.1, "POST .*/messages$", everywhere=True)
        await bot.get_channel(general).send("patience")
        statuses = [call.status for call in server.records.requests("POST", "/messages")]
        assert statuses == [429, 429, 200]


async def test_a_proxys_page_is_an_error_without_json(server, general):
    async with connected(server) as bot:
        server.faults.fail(503, "POST .*/messages$", html=True)
        with pytest.raises(discord.DiscordServerError) as caught:
            await bot.get_channel(general).send("hello")
        assert "cloudflare" in caught.value.text


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


def _deferring(bot: Bot, *, ephemeral: bool = False, gate: asyncio.Event | None = None) -> None:
    @bot.tree.command(name="ask", description="Ask.")
    async def ask(interaction: discord.Interaction, question: str) -> None:
        if gate is not None:
            await gate.wait()
        await interaction.response.defer(thinking=True, ephemeral=ephemeral)
        await interaction.edit_original_response(content=f"answer to {question}")
        await interaction.followup.send("and more", wait=True)

    @ask.autocomplete("question")
    async def complete(_interaction: discord.Interaction, typed: str):
        return [app_commands.Choice(name=typed.upper(), value=typed)]


async def test_a_command_is_deferred_answered_and_followed_up(server, ann, general):
    bot = Bot()
    _deferring(bot)
    async with connected(server, bot):
        await bot.tree.sync()
        used = server.slash(general, ann, "ask", {"question": "why"})
        await server.until_messages(general, 2)
        known = server.records.interactions[used]
        assert known.answer == 5
        assert (
            known.created < known.acknowledged < server.records.messages[known.response_id].edited
        )
        assert server.shown(used) == "answer to why"
        assert server.records.messages[known.followups[0]].content == "and more"
        assert await server.autocomplete(general, ann, "ask", "question", "wh") == [
            {"name": "WH", "value": "wh"}
        ]


async def test_ephemeral_answers_are_in_the_books_and_not_in_the_history(server, ann):
    bot = Bot()
    _deferring(bot, ephemeral=True)
    async with connected(server, bot):
        await bot.tree.sync()
        direct = server.direct(ann)
        used = server.slash(direct, ann, "ask", {"question": "why"})
        await server.until(lambda _: server.shown(used))
        response = server.records.interactions[used].response_id
        assert response not in [each.id for each in server.world.visible_messages(direct)]


async def test_commands_that_nobody_registered_cannot_be_used(server, ann, general):
    with pytest.raises(LookupError, match="no command /ask"):
        server.slash(general, ann, "ask")


async def test_an_interaction_that_is_answered_too_late_is_unknown(server, ann, general):
    bot, gate, failed = Bot(), asyncio.Event(), []
    _deferring(bot, gate=gate)

    @bot.tree.error
    async def note(_interaction, error) -> None:
        failed.append(error.original.code)

    server.hub.interaction_deadline = 0.0
    async with connected(server, bot):
        await bot.tree.sync()
        used = server.slash(general, ann, "ask", {"question": "why"})
        gate.set()
        await server.until(lambda _: failed)
        assert failed == [10062]
        assert server.records.interactions[used].refused == [10062]
        assert server.records.interactions[used].time_to_ack is None


async def test_an_interaction_is_acknowledged_once(server, ann, general):
    server.records.commands[0] = [{"id": "1", "name": "ping", "description": "Ping."}]
    used = server.records.interactions[server.slash(general, ann, "ping")]
    address = f"{server.api_url}/interactions/{used.id}/{used.token}/callback"
    async with aiohttp.ClientSession() as session:
        answers = []
        for _ in range(2):
            async with session.post(address, json={"type": 4, "data": {"content": "x"}}) as reply:
                answers.append((reply.status, await reply.text()))
    assert answers[0] == (204, "")
    assert (answers[1][0], json.loads(answers[1][1])["code"]) == (400, 40060)
    assert server.records.texts(general) == ["x"]


async def test_a_slow_server_is_waited_for(server, general):
    async with connected(server) as bot:
        server.faults.slow(0.1, "POST .*/messages$")
        await bot.get_channel(general).send("late")
        assert server.records.requests("POST", "/messages")[0].took >= 0.1


async def test_a_token_that_has_expired_shows_nothing_more(server, ann, general):
    bot, failed = Bot(), []
    _deferring(bot)

    @bot.tree.error
    async def note(_interaction, error) -> None:
        failed.append(error.original.code)

    server.hub.interaction_life = 0.0
    async with connected(server, bot):
        await bot.tree.sync()
        used = server.slash(general, ann, "ask", {"question": "why"})
        await server.until(lambda _: failed)
        assert failed == [50027]
        assert server.shown(used) is None


async def test_a_button_updates_its_message_and_a_missing_one_cannot_be_pressed(
    server, ann, general
):
    class Question(discord.ui.View):
        @discord.ui.button(label="Yes", custom_id="yes")
        async def yes(self, interaction: discord.Interaction, _button) -> None:
            await interaction.response.edit_message(content="confirmed", view=None)
            self.stop()

    async with connected(server) as bot:
        asked = await bot.get_channel(general).send("sure?", view=Question(timeout=30))
        with pytest.raises(LookupError, match="no component no"):
            server.press(asked.id, "no", ann)
        pressed = server.press(asked.id, "yes", ann)
        await server.until(lambda _: server.shown(pressed) == "confirmed")
        assert server.records.messages[asked.id].components == ()
        assert server.records.interactions[pressed].answer == 7


async def test_a_guild_that_is_joined_later_is_told(server, ann):
    async with connected(server) as bot:
        club = server.guild("club", [ann])
        lobby = server.channel(club, "lobby")
        await server.until(lambda _: bot.get_channel(lobby))
        assert bot.get_guild(club).name == "club"


async def test_an_outage_refuses_connections_and_ends_at_the_same_address(server, ann, general):
    async with connected(server) as bot:
        async with server.outage():
            with pytest.raises(aiohttp.ClientConnectorError):
                await bot.get_channel(general).send("lost")
            server.say(general, ann, "missed")
        await server.until(lambda _: bot.texts())
        await bot.get_channel(general).send("back")
        assert server.records.texts(general) == ["missed", "back"]


async def test_a_server_that_is_down_breaks_calls_until_it_is_back(server, ann, general):
    async with connected(server) as bot:
        server.faults.down(60.0)
        with pytest.raises(aiohttp.ClientError):
            await bot.get_channel(general).send("lost")
        server.faults.heal()
        await server.until(lambda _: bot.resumes, within=30)
        await bot.get_channel(general).send("back")
        assert server.records.texts(general) == ["back"]


async def test_commands_and_components_against_the_rules_are_refused(server, general):
    async with connected(server) as bot:
        with pytest.raises(discord.HTTPException, match="description"):
            await bot.http.upsert_global_command(bot.user.id, {"name": "a", "description": ""})
        button = {"type": 2, "style": 1, "label": "x", "custom_id": "same"}
        twice = [{"type": 1, "components": [button, button]}]
        route = discord.http.Route("POST", "/channels/{channel_id}/messages", channel_id=general)
        with pytest.raises(discord.HTTPException, match="duplicated"):
            await bot.http.request(route, json={"content": "x", "components": twice})
        assert not server.answers(general)


async def test_waiting_in_vain_says_what_happened_last(server):
    async with connected(server):
        with pytest.raises(TimeoutError, match="GET /users/@me 200"):
            await server.until(lambda _: False, within=0.01)


async def test_as_a_process_it_outlives_a_killed_bot_and_writes_its_books(tmp_path: Path):
    books = tmp_path / "books.json"
    async with DiscordProcess("--books", str(books)) as peer:
        ann = await peer.do("user", name="ann")
        home = await peer.do("guild", name="home", members=[ann])
        general = await peer.do("channel", guild=home, name="general")
        async with await anyio.open_process(
            [sys.executable, "-W", "ignore", "-c", _ECHO, json.dumps(peer.urls)]
        ) as bot:
            await peer.do("until_connected", within=20)
            await peer.do("say", channel=general, user=ann, text="hello")
            (answer,) = await peer.do("until_messages", channel=general, count=1)
            assert answer["content"] == "echo hello"
            os.kill(bot.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="no action explode"):
            await peer.do("explode")
        await peer.do("faults.fail", status=500)
        assert len((await peer.records())["messages"]) == 2
    kept = json.loads(books.read_text())["messages"].values()
    assert [each["content"] for each in kept] == ["hello", "echo hello"]


_ECHO = """
import json, sys, discord, yarl
urls = json.loads(sys.argv[1])
discord.http.Route.BASE = urls["api_url"]
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(urls["gateway_url"])
client = discord.Client(intents=discord.Intents.all(), guild_ready_timeout=0.05)
@client.event
async def on_message(message):
    if message.author != client.user:
        await message.channel.send("echo " + message.content)
client.run(urls["token"], log_handler=None)
"""
