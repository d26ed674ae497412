"""Register slash commands with Discord, read them as text, and complete their arguments."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

import discord
from discord import app_commands
from discord.http import Route

from bot.core.i18n import _, use_language
from channels.base import MenuCommand

logger = logging.getLogger(__name__)

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
