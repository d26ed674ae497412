"""Build the interaction data that a Discord client sends for registered commands and components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from testkit.discord.validation import components
from testkit.discord.world import DiscordWorld


def command_data(
    world: DiscordWorld, name: str, values: Mapping[str, Any], typed: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Return the data of a command's interaction, or of the completion of a typed option."""
    known = world.records.commands.get(0, [])
    command = next((each for each in known if each["name"] == name), None)
    if command is None:
        raise LookupError(f"no command /{name}; registered: {[each['name'] for each in known]}")
    declared = {each["name"]: each for each in command.get("options") or []}
    missing = [key for key, each in declared.items() if each.get("required") and key not in values]
    if missing and typed is None:
        raise ValueError(f"/{name} needs {', '.join(missing)}")
    given = [_option(declared, key, value) for key, value in values.items()]
    if typed is not None:
        given.append(_option(declared, *typed) | {"focused": True})
        if not declared[typed[0]].get("autocomplete"):
            raise LookupError(f"/{name} has no option {typed[0]} that completes")
    return {"id": command["id"], "name": name, "type": 1, "options": given}


def _option(declared: Mapping[str, dict[str, Any]], name: str, value: Any) -> dict[str, Any]:
    if name not in declared:
        raise LookupError(f"no option {name}; declared: {list(declared)}")
    return {"name": name, "type": declared[name]["type"], "value": value}


def component(shape: Iterable[Any], custom_id: str) -> int:
    """Return the type of a message's component."""
    present = [each for each in components(shape) if "custom_id" in each]
    for each in present:
        if each["custom_id"] == custom_id:
            if each.get("disabled"):
                raise LookupError(f"{custom_id} is disabled")
            return int(each["type"])
    seen = [each["custom_id"] for each in present]
    raise LookupError(f"no component {custom_id}; the message has {seen}")
