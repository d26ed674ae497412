"""The slash commands as Discord lists them, and what it offers while one is typed.

They are registered as plain data: what arrives is handed on by its name, so that a command that
Discord still shows and the program has dropped gets the program's hint, and no silence.
See https://discord.com/developers/docs/interactions/application-commands.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

import discord
from discord import app_commands
from discord.http import Route

from channels.base import CommandMenu

logger = logging.getLogger(__name__)

OPTION = "what"
"""The name of the one option that each command has."""

MOST_CHOICES = 25
_LONGEST = 100
_CHAT_INPUT, _TEXT = 1, 3
_SERVER, _DIRECT = 0, 1
_NAME = re.compile(r"[a-z0-9_-]{1,32}")
_PLACEHOLDER = re.compile(r"[^a-zA-Z]*+[A-Z][^a-z]*")
_DISCORDS_OWN = {"application_id", "version"}
_COMPARED = ("name", "type", "description", "contexts")
_COMPARED_OPTION = ("name", "type", "description")


def payload(commands: Sequence[CommandMenu]) -> list[dict[str, Any]]:
    """Return the commands as they are registered; those whose name Discord refuses are left out."""
    listed = []
    for command in commands:
        if not _NAME.fullmatch(command.name):
            logger.warning("/%s is not listed: Discord does not take its name", command.name)
            continue
        listed.append(_command(command))
    return listed[:100]


async def register(client: discord.Client, commands: Sequence[CommandMenu]) -> bool:
    """Register the commands for all servers and direct conversations, if they differ.

    Returns:
        Whether they did.

    Raises:
        discord.HTTPException: Discord refused it.
    """
    application = client.application_id
    if application is None:
        return False
    wanted = payload(commands)
    route = Route("GET", "/applications/{application_id}/commands", application_id=application)
    known = await client.http.request(route, params={"with_localizations": "true"})
    ours = [each for each in known if each.get("type", _CHAT_INPUT) == _CHAT_INPUT]
    if _compared(ours) == _compared(wanted):
        return False
    # What it leaves out is deleted, and an Entry Point command does not let itself be (50240).
    others = [_unchanged(each) for each in known if each not in ours]
    await client.http.bulk_upsert_global_commands(application, [*wanted, *others])
    return True


def text_of(data: Mapping[str, Any]) -> str:
    """Return what a person would have typed for a command that they chose."""
    values = [str(each.get("value", "")).strip() for each in data.get("options") or ()]
    return " ".join([f"/{data['name']}", *(value for value in values if value)])


def typed(data: Mapping[str, Any]) -> str:
    """Return what was typed so far into the option that is being filled in."""
    for each in data.get("options") or ():
        if each.get("focused"):
            return str(each.get("value", ""))
    return ""


def choices(command: CommandMenu | None, begun: str) -> list[app_commands.Choice[str]]:
    """Return what may stand behind a command, for what was typed so far.

    A form that wants more than its first words ("add TEXT") is offered with what was typed.
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
        found.append(app_commands.Choice(name=_cut(f"{shown}: {line}"), value=value[:_LONGEST]))
    return found[:MOST_CHOICES]


def _command(command: CommandMenu) -> dict[str, Any]:
    forms = ", ".join(form for form, _ in command.forms)
    option = {
        "type": _TEXT,
        "name": OPTION,
        "description": _cut(forms),
        "required": False,
        "autocomplete": True,
    }
    return {
        "type": _CHAT_INPUT,
        "name": command.name,
        "description": _cut(command.summary or command.name),
        "options": [option] if command.forms else [],
        "contexts": [_SERVER, _DIRECT],
        "integration_types": [0],
    }


def _unchanged(command: Mapping[str, Any]) -> dict[str, Any]:
    """Return a command of another kind, as it may be registered again."""
    return {key: value for key, value in command.items() if key not in _DISCORDS_OWN}


def _compared(commands: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {str(each["name"]): _facts(each) for each in commands}


def _facts(command: Mapping[str, Any]) -> Any:
    options = [
        (*(option.get(key) for key in _COMPARED_OPTION), bool(option.get("autocomplete")))
        for option in command.get("options") or ()
    ]
    return [*(command.get(key) for key in _COMPARED), options]


def _fixed_words(form: str) -> list[str]:
    words: list[str] = []
    for word in form.split():
        if _PLACEHOLDER.fullmatch(word):
            break
        words.append(word)
    return words


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
