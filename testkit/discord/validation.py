"""Discord's limits on components, embeds, choices and commands, for the test server. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_MAX_ROWS, _MAX_ROWS_V2 = 5, 40
_MAX_BUTTONS, _MAX_CUSTOM_ID, _MAX_LABEL = 5, 100, 80
_MAX_CHOICES, _MAX_CHOICE = 25, 100
_BUTTON, _ROW = 2, 1
_ENTRY_POINT = 4
_NAME = re.compile(r"[-_'\w]{1,32}")


def components(shape: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every component of a message, including nested ones."""
    for each in shape:
        yield each
        yield from components(each.get("components", ()))
        if "accessory" in each:
            yield from components([each["accessory"]])


def fault_in_components(shape: list[Any], *, v2: bool) -> str | None:
    """Return Discord's error about a message's components; None if they are valid."""
    if len(shape) > (_MAX_ROWS_V2 if v2 else _MAX_ROWS):
        return "Must be 5 or fewer in length."
    seen: set[str] = set()
    for each in components(shape):
        custom_id = each.get("custom_id")
        if custom_id is not None and not 1 <= len(custom_id) <= _MAX_CUSTOM_ID:
            return "custom_id must be between 1 and 100 in length."
        if custom_id in seen:
            return "Component custom id cannot be duplicated"
        seen |= {custom_id} if custom_id else set()
        if len(each.get("label") or "") > _MAX_LABEL:
            return "label must be 80 or fewer in length."
        buttons = [inner for inner in each.get("components", ()) if inner["type"] == _BUTTON]
        if each["type"] == _ROW and len(buttons) > _MAX_BUTTONS:
            return "The specified component exceeds the maximum width"
    return None


def fault_in_choices(choices: list[Any]) -> str | None:
    """Return Discord's error about autocomplete choices; None if they are valid."""
    if len(choices) > _MAX_CHOICES:
        return "Must be 25 or fewer in length."
    for choice in choices:
        if not 1 <= len(choice["name"]) <= _MAX_CHOICE or len(str(choice["value"])) > _MAX_CHOICE:
            return "Must be between 1 and 100 in length."
    return None


def fault_in_overwrite(standing: Iterable[Any], wanted: Iterable[Any]) -> str | None:
    """Return Discord's error about overwriting commands; None if it is allowed."""
    before, after = (
        {each["name"] for each in some if each.get("type") == _ENTRY_POINT}
        for some in (standing, wanted)
    )
    return "You cannot remove this app's Entry Point command" if before - after else None


_LOCALES = frozenset(
    "id da de en-GB en-US es-ES es-419 fr hr it lt hu nl no pl pt-BR ro fi sv-SE vi tr cs el bg ru uk hi th "
    "zh-CN ja zh-TW ko".split()
)
"""https://docs.discord.com/developers/reference#locales"""


def fault_in_command(command: Mapping[str, Any]) -> str | None:
    """Return Discord's error about a slash command; None if it is valid."""
    if command.get("type", 1) != 1:
        return None
    name, text = command.get("name", ""), command.get("description", "")
    if not _NAME.fullmatch(name) or name != name.lower():
        return "Command name is invalid"
    if not 1 <= len(text) <= 100:
        return "description must be between 1 and 100 in length."
    described = command.get("description_localizations") or {}
    if unknown := described.keys() - _LOCALES:
        return f"{min(unknown)} is not a locale"
    if not all(1 <= len(one) <= 100 for one in described.values()):
        return "description_localizations must be between 1 and 100 in length."
    return None
