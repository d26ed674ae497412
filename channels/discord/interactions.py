"""Slash commands, their completion, and buttons.

Discord wants a word within three seconds, and tells of an interaction only once: history does not
hold it. So each is admitted at once, beside what its chat has to do, and then published while it is
acknowledged. That also lets ``/stop`` overtake what takes long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import discord

from bot.bus import Inbound, Knock, Role, Sender
from channels.base import CommandMenu
from channels.delivery.screen import ScreenError
from channels.discord.deferred import PREFIX, Deferred
from channels.discord.faults import mapped
from channels.discord.gate import Gate, Person
from channels.discord.menu import choices, text_of, typed
from channels.discord.places import Place, place_of
from channels.discord.screen import BUTTON
from channels.discord.uplink import Uplink
from channels.lanes import Lanes

logger = logging.getLogger(__name__)

_STRANGER = "I do not know you. Whoever runs this bot can let you in."
_NOWHERE = "I cannot be used here."
_RESPONSE_SECONDS = 10.0


class Interactions:
    """Takes interactions.

    Args:
        name: The name of our channel.
        commands: The commands, for their completion.
        gate: Admits and publishes.
        lanes: Own the work, beyond the connection.
        uplink: Tells people things.
        deferred: Gets the commands that wait for their answers.
    """

    def __init__(
        self,
        name: str,
        commands: tuple[CommandMenu, ...],
        *,
        gate: Gate,
        lanes: Lanes,
        uplink: Uplink,
        deferred: Deferred,
    ) -> None:
        self._name = name
        self._commands = {command.name: command for command in commands}
        self._gate = gate
        self._lanes = lanes
        self._uplink = uplink
        self._deferred = deferred

    def take(self, interaction: discord.Interaction) -> None:
        """Begin to deal with an interaction; returns at once."""
        own_lane = f"interaction {interaction.id}"
        if interaction.type is discord.InteractionType.autocomplete:
            self._lanes.put(own_lane, partial(self._complete, interaction))
            return
        text = _meant(interaction)
        if text is None:
            logger.debug("an interaction is none of ours")
            return
        place = place_of(self._name, interaction.channel)
        if place is None:
            self._lanes.put(own_lane, partial(self._refuse, interaction, _NOWHERE))
            return
        self._lanes.put(own_lane, partial(self._answer, interaction, place, text))

    async def _answer(self, interaction: discord.Interaction, place: Place, text: str) -> None:
        knock = _knock(interaction, place, None if interaction.message else text)
        verdict = await self._gate.admit(knock)
        if verdict.role is None:
            await self._refuse(interaction, verdict.reply or _STRANGER)
            return
        inbound = _inbound(interaction, place, text, verdict.role)
        person = Person(partial(self._tell, place, inbound.id))
        greeted = self._deferred.expect(interaction)
        self._lanes.put(f"greeting {interaction.id}", partial(self._greet, interaction, greeted))
        async with person.not_left_waiting():
            await self._gate.publish(inbound, person, knock)

    async def _greet(self, interaction: discord.Interaction, greeted: Callable[[], None]) -> None:
        try:
            await self._acknowledge(interaction)
        finally:
            greeted()

    async def _acknowledge(self, interaction: discord.Interaction) -> None:
        command = interaction.type is discord.InteractionType.application_command
        try:
            with mapped(), anyio.fail_after(_RESPONSE_SECONDS):
                response = await interaction.response.defer(thinking=command)
        except ScreenError as error:
            # Too late for Discord, not for the person: the answer comes as an ordinary message.
            logger.info("an interaction could not be acknowledged: %s", error)
            return
        if command and response is not None and response.message_id is not None:
            self._deferred.keep(interaction, response.message_id)

    async def _complete(self, interaction: discord.Interaction) -> None:
        place = place_of(self._name, interaction.channel)
        if place is None:
            return
        data = _data(interaction)
        verdict = await self._gate.admit(_knock(interaction, place, None))
        command = None if verdict.role is None else self._commands.get(str(data.get("name")))
        try:
            with mapped(), anyio.fail_after(_RESPONSE_SECONDS):
                await interaction.response.autocomplete(choices(command, typed(data)))
        except ScreenError as error:
            logger.debug("a completion came too late: %s", error)

    async def _refuse(self, interaction: discord.Interaction, reply: str) -> None:
        try:
            with mapped(), anyio.fail_after(_RESPONSE_SECONDS):
                await interaction.response.send_message(
                    reply[:2000], ephemeral=True, allowed_mentions=discord.AllowedMentions.none()
                )
        except ScreenError as error:
            logger.info("a refusal could not be told: %s", error)

    async def _tell(self, place: Place, inbound: str, text: str) -> None:
        view = discord.ui.View(timeout=None)
        view.stop()
        try:
            with mapped():
                if await self._deferred.answer(inbound, "", text, view) is not None:
                    return
        except ScreenError as error:
            logger.info("a command's answer goes to its chat: %s", error)
        await self._uplink.tell(place.channel_id, text)


def _meant(interaction: discord.Interaction) -> str | None:
    """Return the words that an interaction stands for; None where it is none of ours."""
    data = _data(interaction)
    if interaction.type is discord.InteractionType.application_command:
        return text_of(data) if data.get("type", 1) == 1 else None
    message, bot = interaction.message, interaction.client.user
    if interaction.type is not discord.InteractionType.component or message is None:
        return None
    custom_id = str(data.get("custom_id", ""))
    if bot is None or message.author.id != bot.id or custom_id not in _buttons(message):
        logger.info("a press of a button that the bot did not show there is ignored")
        return None
    return custom_id.removeprefix(BUTTON) if custom_id.startswith(BUTTON) else None


def _buttons(message: discord.Message) -> set[str | None]:
    rows = [each for each in message.components if isinstance(each, discord.ActionRow)]
    return {each.custom_id for row in rows for each in row.children}


def _data(interaction: discord.Interaction) -> dict[str, Any]:
    return {**(interaction.data or {})}


def _inbound(interaction: discord.Interaction, place: Place, text: str, role: Role) -> Inbound:
    pressed = interaction.message
    return Inbound(
        address=place.address,
        id=f"{'cb' if pressed else PREFIX}{interaction.id}",
        sender=_sender(interaction),
        text=text,
        sent_at=interaction.created_at,
        private=place.private,
        role=role,
        pressed=str(pressed.id) if pressed else None,
    )


def _knock(interaction: discord.Interaction, place: Place, text: str | None) -> Knock:
    said = text if place.private else None
    return Knock(place.address, _sender(interaction), place.private, place.ids, said)


def _sender(interaction: discord.Interaction) -> Sender:
    return Sender(str(interaction.user.id), interaction.user.display_name)
