"""Handle slash commands, their autocompletion, and buttons.

Discord expects a response within three seconds and sends an interaction only once: it is not in the
history. So each is authorized at once, in its own lane, and then published while it is
acknowledged. That also lets ``/stop`` overtake slow work in its chat.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import discord
from discord import app_commands
from discord.http import Route

from bot.bus import AccessRequest, Inbound, Role, Sender, address_press
from bot.core.i18n import N_, _, match_language, use_language
from channels.base import LanguageOf, MenuCommand, tell_if_not_taken
from channels.delivery.messenger import MessengerError
from channels.discord.current_client import CurrentClient
from channels.discord.deferred_responses import (
    INTERACTION_ID_PREFIX,
    PRESS_ID_PREFIX,
    DeferredResponses,
)
from channels.discord.errors import MIN_BACKOFF_SECONDS, map_discord_errors
from channels.discord.intake import RetryingBusClient, SenderNotifier
from channels.discord.message_content import ChatLocation, chat_location, target_channel_id
from channels.discord.messenger import BUTTON_ID_PREFIX
from channels.keyed_executor import KeyedExecutor

OPTION_NAME = "what"
"""The name of each command's only option."""

MAX_CHOICES = 25
_LONGEST = 100
_CHAT_INPUT, _TEXT = 1, 3
_SERVER, _DIRECT = 0, 1
_NAME = re.compile(r"[a-z0-9_-]{1,32}")
_PLACEHOLDER = re.compile(r"[^a-zA-Z]*+[A-Z][^a-z]*")
_DISCORDS_OWN = {"application_id", "version"}
_LOCALES = {
    "en-GB": "en",
    "en-US": "en",
    "de": "de",
    "fr": "fr",
    "es-ES": "es",
    "es-419": "es",
    "pt-BR": "pt",
    "it": "it",
    "ru": "ru",
    "uk": "uk",
    "zh-CN": "zh",
    "zh-TW": "zh",
    "ja": "ja",
}
"""Discord's locales (https://docs.discord.com/developers/reference#locales); Arabic is none."""
_COMPARED = ("name", "type", "description", "contexts")
_COMPARED_OPTION = ("name", "type", "description")


def command_payload(commands: Sequence[MenuCommand], language: str = "en") -> list[dict[str, Any]]:
    """Return the payload that registers the commands; names that Discord rejects are left out."""
    listed = []
    for command in commands:
        if not _NAME.fullmatch(command.name):
            logger.warning("/%s is not listed: Discord does not accept its name", command.name)
            continue
        listed.append(_command(command, language))
    return listed[:100]


async def register_commands(
    client: discord.Client, commands: Sequence[MenuCommand], language: str
) -> bool:
    """Register the slash commands for all servers and direct messages, if they differ.

    Returns:
        Whether they differed.

    Raises:
        discord.HTTPException: Discord rejected a request.
    """
    application = client.application_id
    if application is None:
        return False
    wanted = command_payload(commands, language)
    route = Route("GET", "/applications/{application_id}/commands", application_id=application)
    known = await client.http.request(route, params={"with_localizations": "true"})
    ours = [each for each in known if each.get("type", _CHAT_INPUT) == _CHAT_INPUT]
    if _compared(ours) == _compared(wanted):
        return False
    # The call deletes commands that it does not list, but refuses to delete an Entry Point (50240).
    others = [_unchanged(each) for each in known if each not in ours]
    await client.http.bulk_upsert_global_commands(application, [*wanted, *others])
    return True


def command_text(data: Mapping[str, Any]) -> str:
    """Return a chosen command as the text that a person would type."""
    values = [str(each.get("value", "")).strip() for each in data.get("options") or ()]
    return " ".join([f"/{data['name']}", *(value for value in values if value)])


def focused_value(data: Mapping[str, Any]) -> str:
    """Return the text typed so far into the option that has the focus."""
    for each in data.get("options") or ():
        if each.get("focused"):
            return str(each.get("value", ""))
    return ""


def autocomplete_choices(command: MenuCommand | None, begun: str) -> list[app_commands.Choice[str]]:
    """Return completions of a command's argument for the text typed so far.

    A form with a placeholder after its fixed words ("add TEXT") is offered with the typed text.
    """
    if command is None:
        return []
    found = []
    start = begun.lstrip().lower()
    for form, line in command.forms:
        fixed = " ".join(_fixed_words(form))
        goes_on = len(fixed) < len(form)
        if goes_on and start.startswith(f"{fixed} ".lstrip()) and start.strip():
            value = begun.strip()
        elif fixed and fixed.startswith(start.strip()):
            value = fixed
        else:
            continue
        shown = form if value == fixed else value
        found.append(app_commands.Choice(name=_cut(f"{shown}: {_(line)}"), value=value[:_LONGEST]))
    return found[:MAX_CHOICES]


def _command(command: MenuCommand, language: str) -> dict[str, Any]:
    forms = ", ".join(form for form, _ in command.forms)
    option = {
        "type": _TEXT,
        "name": OPTION_NAME,
        "description": _cut(forms),
        "required": False,
        "autocomplete": True,
    }
    usual = _description(command, language)
    described = {
        locale: text
        for locale, code in _LOCALES.items()
        if (text := _description(command, code)) != usual
    }
    return {
        "type": _CHAT_INPUT,
        "name": command.name,
        "description": usual,
        "description_localizations": described,
        "options": [option] if command.forms else [],
        "contexts": [_SERVER, _DIRECT],
        "integration_types": [0],
    }


def _description(command: MenuCommand, language: str) -> str:
    with use_language(language):
        return _cut(_(command.summary) if command.summary else command.name)


def _unchanged(command: Mapping[str, Any]) -> dict[str, Any]:
    """Return a command of another type as a payload that registers it unchanged."""
    return {key: value for key, value in command.items() if key not in _DISCORDS_OWN}


def _compared(commands: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {str(each["name"]): _facts(each) for each in commands}


def _facts(command: Mapping[str, Any]) -> Any:
    options = [
        (*(option.get(key) for key in _COMPARED_OPTION), bool(option.get("autocomplete")))
        for option in command.get("options") or ()
    ]
    described = command.get("description_localizations") or {}
    return [*(command.get(key) for key in _COMPARED), described, options]


def _fixed_words(form: str) -> list[str]:
    words: list[str] = []
    for word in form.split():
        # Of "everyone|each" the person chooses one.
        if _PLACEHOLDER.fullmatch(word) or "|" in word:
            break
        words.append(word)
    return words


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


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
        language: LanguageOf,
        bus_client: RetryingBusClient,
        executor: KeyedExecutor,
        client: CurrentClient,
        deferred: DeferredResponses,
    ) -> None:
        self._name = name
        self._commands = {command.name: command for command in commands}
        self._language = language
        self._bus_client = bus_client
        self._executor = executor
        self._client = client
        self._deferred = deferred

    async def resume(self) -> None:
        """Publish the commands that a killed process may not have; the bus knows those that it did."""
        for inbound, asker in await self._deferred.load():
            self._executor.submit(
                f"resume {inbound.id}",  # for the log
                partial(self._publish_again, inbound, asker),
            )

    async def _publish_again(self, inbound: Inbound, asker: AccessRequest) -> None:
        tell = partial(self._send_text, target_channel_id(inbound.address), inbound.id)
        if not await self._bus_client.publish(inbound, SenderNotifier(tell), asker, waited=True):
            await self._dismiss(inbound.id)
        await self._deferred.forget_if_over(inbound.id)

    def handle(self, interaction: discord.Interaction) -> None:
        """Submit the handling of an interaction without waiting."""
        own_lane = f"interaction {interaction.id}"  # for the log
        if interaction.type is discord.InteractionType.autocomplete:
            self._submit(own_lane, interaction, partial(self._complete, interaction))
            return
        text = _command_of(interaction)
        if text is None:
            logger.debug("an interaction is not for this bot")
            return
        location = chat_location(self._name, interaction.channel)
        if location is None:
            self._submit(own_lane, interaction, partial(self._refuse, interaction, None))
            return
        self._submit(own_lane, interaction, partial(self._answer, interaction, location, text))

    def _submit(
        self, lane: str, interaction: discord.Interaction, work: Callable[[], Awaitable[None]]
    ) -> None:
        """Submit work that speaks the sender's language."""

        async def speak() -> None:
            with use_language(await self._language(self._name, _sender(interaction))):
                await work()

        self._executor.submit(lane, speak)

    async def _answer(
        self, interaction: discord.Interaction, location: ChatLocation, text: str
    ) -> None:
        access_request = _access_request(
            interaction, location, None if interaction.message else text
        )
        decision = await self._bus_client.authorize(access_request)
        if decision.role is None:
            await self._refuse(interaction, decision.reply or _(_STRANGER))
            return
        inbound = _inbound(interaction, location, text, decision.role)
        person = SenderNotifier(partial(self._send_text, location.channel_id, inbound.id))
        if interaction.message is None:
            await self._deferred.remember(interaction, inbound, location.access_ids)
        acknowledged = self._deferred.expect_acknowledgement(interaction)
        self._executor.submit(
            f"greeting {interaction.id}",
            partial(self._acknowledge, interaction, acknowledged),
        )
        async with tell_if_not_taken(person.notify):
            if not await self._bus_client.publish(inbound, person, access_request):
                await self._dismiss(inbound.id)

    async def _acknowledge(
        self, interaction: discord.Interaction, acknowledged: Callable[[], None]
    ) -> None:
        try:
            await self._defer(interaction)
        finally:
            acknowledged()

    async def _defer(self, interaction: discord.Interaction) -> None:
        command = interaction.type is discord.InteractionType.application_command
        try:
            with map_discord_errors(), anyio.fail_after(_RESPONSE_SECONDS):
                await interaction.response.defer(thinking=command)
        except MessengerError as error:
            # Discord's limit has passed; the answer is sent as an ordinary message.
            logger.info("an interaction could not be acknowledged: %s", error)
            return
        if not command:
            self._deferred.remember_press(interaction)

    async def _complete(self, interaction: discord.Interaction) -> None:
        location = chat_location(self._name, interaction.channel)
        if location is None:
            return
        data = _data(interaction)
        decision = await self._bus_client.authorize(_access_request(interaction, location, None))
        command = None if decision.role is None else self._commands.get(str(data.get("name")))
        try:
            with map_discord_errors(), anyio.fail_after(_RESPONSE_SECONDS):
                await interaction.response.autocomplete(
                    autocomplete_choices(command, focused_value(data))
                )
        except MessengerError as error:
            logger.debug("a completion came too late: %s", error)

    async def _refuse(self, interaction: discord.Interaction, reply: str | None) -> None:
        reply = reply or _(_NOWHERE)
        try:
            with map_discord_errors(), anyio.fail_after(_RESPONSE_SECONDS):
                await interaction.response.send_message(
                    reply[:2000], ephemeral=True, allowed_mentions=discord.AllowedMentions.none()
                )
        except MessengerError as error:
            logger.info("a refusal could not be sent: %s", error)

    async def _dismiss(self, inbound: str) -> None:
        """End "thinking" for a command of a person who lost access, and forget it."""
        while not await self._replace_thinking(inbound, _(_STRANGER)):
            if not self._deferred.is_waiting(inbound):
                return
            await anyio.sleep(MIN_BACKOFF_SECONDS)  # until there is a connection

    async def _send_text(self, channel_id: int, inbound: str, text: str) -> None:
        if not await self._replace_thinking(inbound, text):
            await self._client.send_text(channel_id, text)

    async def _replace_thinking(self, inbound: str, text: str) -> bool:
        view = discord.ui.View(timeout=None)
        view.stop()
        try:
            with map_discord_errors():
                return await self._deferred.answer(inbound, "", text, view) is not None
        except MessengerError as error:
            logger.info("a command's answer goes to its chat: %s", error)
            return False


def _command_of(interaction: discord.Interaction) -> str | None:
    """Return the text that an interaction stands for; None if it is not from this bot's UI."""
    data = _data(interaction)
    if interaction.type is discord.InteractionType.application_command:
        return command_text(data) if data.get("type", 1) == 1 else None
    message, bot = interaction.message, interaction.client.user
    if interaction.type is not discord.InteractionType.component or message is None:
        return None
    custom_id = str(data.get("custom_id", ""))
    if bot is None or message.author.id != bot.id or custom_id not in _buttons(message):
        logger.info("ignoring a button that the bot did not show there")
        return None
    return (
        custom_id.removeprefix(BUTTON_ID_PREFIX) if custom_id.startswith(BUTTON_ID_PREFIX) else None
    )


def _buttons(message: discord.Message) -> set[str | None]:
    rows = [each for each in message.components if isinstance(each, discord.ActionRow)]
    return {each.custom_id for row in rows for each in row.children}


def _data(interaction: discord.Interaction) -> dict[str, Any]:
    return {**(interaction.data or {})}


def _inbound(
    interaction: discord.Interaction, location: ChatLocation, text: str, role: Role
) -> Inbound:
    pressed = interaction.message
    inbound = Inbound(
        address=location.address,
        id=f"{PRESS_ID_PREFIX if pressed else INTERACTION_ID_PREFIX}{interaction.id}",
        sender=_sender(interaction),
        text=text,
        sent_at=interaction.created_at,
        private=location.private,
        role=role,
        pressed_message_id=str(pressed.id) if pressed else None,
    )
    return address_press(inbound)


def _access_request(
    interaction: discord.Interaction, location: ChatLocation, text: str | None
) -> AccessRequest:
    said = text if location.private else None
    return AccessRequest(
        location.address, _sender(interaction), location.private, location.access_ids, said
    )


def _sender(interaction: discord.Interaction) -> Sender:
    language = match_language([str(interaction.locale)])
    return Sender(str(interaction.user.id), interaction.user.display_name, language or "")
