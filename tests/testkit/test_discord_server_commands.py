"""The Discord server for tests takes commands, answers and pressed buttons as Discord does."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import discord
import pytest
from discord import app_commands
from discord_client_rig import Bot, connected


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
