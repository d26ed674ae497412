"""Handle slash commands, their autocompletion, and buttons.

Discord expects a response within three seconds and sends an interaction only once: it is not in the
history. So each is authorized at once, in its own lane, and then published while it is
acknowledged. That also lets ``/stop`` overtake slow work in its chat.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import anyio
import discord

from bot.bus import Sender
from bot.core.i18n import N_, _, current_language, match_language, use_language
from channels.base import MenuCommand
from channels.delivery.dispatcher import OutboundDispatcher
from channels.delivery.messenger import MessengerError
from channels.discord.commands import autocomplete_choices, command_text, focused_value
from channels.discord.deferred_responses import (
    INTERACTION_ID_PREFIX,
    PRESS_ID_PREFIX,
    DeferredResponses,
)
from channels.discord.errors import map_discord_errors
from channels.discord.message_content import ChatLocation, chat_location
from channels.discord.messenger import BUTTON_ID_PREFIX
from channels.intake import Event, Intake
from channels.keyed_executor import KeyedExecutor

logger = logging.getLogger(__name__)

_STRANGER = N_("I do not know you. The bot's owner can allow you to use it.")
_NOWHERE = N_("I cannot be used here.")
_RESPONSE_SECONDS = 10.0


class InteractionHandler:
    """Handle interactions: authorize, acknowledge and publish them."""

    def __init__(
        self,
        name: str,
        commands: tuple[MenuCommand, ...],
        *,
        intake: Intake,
        dispatcher: OutboundDispatcher[str],
        executor: KeyedExecutor,
        deferred: DeferredResponses,
    ) -> None:
        self._name = name
        self._commands = {command.name: command for command in commands}
        self._intake = intake
        self._dispatcher = dispatcher
        self._executor = executor
        self._deferred = deferred

    async def resume(self) -> None:
        """Publish the commands that a killed process may not have; the bus knows those that it did."""
        for event in await self._deferred.load():
            self._executor.submit(f"resume {event.id}", partial(self._publish_again, event))

    async def _publish_again(self, event: Event) -> None:
        until_done = self._intake.until_done
        async with self._intake.speaking_to(event):
            again = partial(self._intake.authorize, event, waited=True)
            role = (await until_done(None, again)).role
            if role is None or not await self._intake.publish([event], role, until_done):
                await self._dismiss(event)
        await self._deferred.forget_if_over(event.id)

    def handle(self, interaction: discord.Interaction) -> None:
        """Submit the handling of an interaction without waiting."""
        text = _text_of(interaction)
        if text is None:
            logger.debug("an interaction is not for this bot")
            return
        location = chat_location(self._name, interaction.channel)
        completes = interaction.type is discord.InteractionType.autocomplete
        if location is not None:
            act = self._complete if completes else self._answer
            work = partial(act, interaction, _event(interaction, location, text))
        elif completes:
            return
        else:
            with use_language(_sender(interaction).language or current_language()):
                work = partial(self._refuse, interaction, _(_NOWHERE))
        self._executor.submit(f"interaction {interaction.id}", work)

    async def _answer(self, interaction: discord.Interaction, event: Event) -> None:
        until_done = self._intake.until_done
        async with self._intake.speaking_to(event):
            decision = await until_done(None, partial(self._intake.authorize, event))
            if decision.role is None:
                await self._refuse(interaction, decision.reply or _(_STRANGER))
                return
            if event.kind == "message":
                await self._deferred.remember(interaction, event)
            self._executor.submit(
                f"greeting {interaction.id}", self._deferred.acknowledging(interaction, event.id)
            )
            if not await self._intake.publish([event], decision.role, until_done):
                await self._dismiss(event)

    async def _complete(self, interaction: discord.Interaction, event: Event) -> None:
        async with self._intake.speaking_to(event):
            again = partial(self._intake.authorize, event, waited=True)
            role = (await self._intake.until_done(None, again)).role
            data = _data(interaction)
            command = None if role is None else self._commands.get(str(data.get("name")))
            choices = autocomplete_choices(command, focused_value(data))
            try:
                with map_discord_errors(), anyio.fail_after(_RESPONSE_SECONDS):
                    await interaction.response.autocomplete(choices)
            except MessengerError as error:
                logger.debug("a completion came too late: %s", error)

    async def _refuse(self, interaction: discord.Interaction, reply: str) -> None:
        try:
            with map_discord_errors(), anyio.fail_after(_RESPONSE_SECONDS):
                await interaction.response.send_message(
                    reply[:2000], ephemeral=True, allowed_mentions=discord.AllowedMentions.none()
                )
        except MessengerError as error:
            logger.info("a refusal could not be sent: %s", error)

    async def _dismiss(self, event: Event) -> None:
        """End "thinking" for a command of a person who lost access; never tell the chat of it."""
        await self._deferred.forget_if_over(event.id)
        if event.in_place and self._deferred.is_waiting(event.id):
            self._dispatcher.refuse(event.address, _(_STRANGER), event.id, event.name)


def _text_of(interaction: discord.Interaction) -> str | None:
    """Return the text that an interaction stands for; None if it is not from this bot's UI."""
    data = _data(interaction)
    if interaction.type is discord.InteractionType.autocomplete:
        return ""
    if interaction.type is discord.InteractionType.application_command:
        return command_text(data) if data.get("type", 1) == 1 else None
    message, bot = interaction.message, interaction.client.user
    if interaction.type is not discord.InteractionType.component or message is None:
        return None
    custom_id = str(data.get("custom_id", ""))
    rows = [each for each in message.components if isinstance(each, discord.ActionRow)]
    shown = {each.custom_id for row in rows for each in row.children}
    if bot is None or message.author.id != bot.id or custom_id not in shown:
        logger.info("ignoring a button that the bot did not show there")
        return None
    known = custom_id.startswith(BUTTON_ID_PREFIX)
    return custom_id.removeprefix(BUTTON_ID_PREFIX) if known else None


def _event(interaction: discord.Interaction, location: ChatLocation, text: str) -> Event:
    pressed = interaction.message
    number = f"{PRESS_ID_PREFIX if pressed else INTERACTION_ID_PREFIX}{interaction.id}"
    return Event(
        kind="press" if pressed else "message",
        id=number,
        address=location.address,
        chat_ids=location.access_ids,
        sender=_sender(interaction),
        private=location.private,
        # What a command is told takes the place of its answer.
        message_id=str(pressed.id) if pressed else number,
        text=text,
        sent_at=interaction.created_at,
        # Nobody is told of a completion that failed.
        addressed=interaction.type is not discord.InteractionType.autocomplete,
        in_place=not pressed,
    )


def _sender(interaction: discord.Interaction) -> Sender:
    language = match_language([str(interaction.locale)])
    return Sender(str(interaction.user.id), interaction.user.display_name, language or "")


def _data(interaction: discord.Interaction) -> dict[str, Any]:
    return {**(interaction.data or {})}
