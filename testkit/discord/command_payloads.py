"""Build the interaction data that a Discord client sends for registered commands and components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from testkit.discord.serialization import bare_member, user_json
from testkit.discord.validation import components
from testkit.discord.world import ChannelState, DiscordWorld

_SUBCOMMAND, _GROUP, _USER = 1, 2, 6


def command_data(
    world: DiscordWorld, channel: ChannelState, name: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the data of a command's interaction."""
    command, path, declared = _find(world, channel, name)
    given = [_option(declared, key, value) for key, value in values.items()]
    missing = [key for key, each in declared.items() if each.get("required") and key not in values]
    if missing:
        raise ValueError(f"/{name} needs {', '.join(missing)}")
    return _data(world, channel, command, path, given)


def option_data(
    world: DiscordWorld,
    channel: ChannelState,
    name: str,
    values: Mapping[str, Any],
    typed: tuple[str, str],
) -> dict[str, Any]:
    """Return the data of an autocomplete interaction; ``typed`` is an option and its text."""
    command, path, declared = _find(world, channel, name)
    option, text = typed
    if not declared.get(option, {}).get("autocomplete"):
        raise LookupError(f"/{name} has no option {option} that completes")
    given = [_option(declared, key, value) for key, value in values.items()]
    focused = {"name": option, "type": declared[option]["type"], "value": text, "focused": True}
    return _data(world, channel, command, path, [*given, focused])


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


def _find(
    world: DiscordWorld, channel: ChannelState, name: str
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the command, its sub-commands on the path, and the declared options."""
    registered = world.records.commands
    usable = [*registered.get(channel.guild_id or 0, []), *registered.get(0, [])]
    head, *rest = name.split(" ")
    command = next((each for each in usable if each["name"] == head), None)
    if command is None:
        raise LookupError(f"no command /{head}; registered: {[each['name'] for each in usable]}")
    path: list[dict[str, Any]] = []
    options = command.get("options") or []
    for word in rest:
        step = next((each for each in options if each["name"] == word), None)
        if step is None or step["type"] not in {_SUBCOMMAND, _GROUP}:
            raise LookupError(f"/{name} has no sub-command {word}")
        path.append(step)
        options = step.get("options") or []
    return command, path, {each["name"]: each for each in options}


def _option(declared: Mapping[str, dict[str, Any]], name: str, value: Any) -> dict[str, Any]:
    if name not in declared:
        raise LookupError(f"no option {name}; declared: {list(declared)}")
    kind = declared[name]["type"]
    return {"name": name, "type": kind, "value": str(value) if kind == _USER else value}


def _data(
    world: DiscordWorld,
    channel: ChannelState,
    command: dict[str, Any],
    path: list[dict[str, Any]],
    given: list[dict[str, Any]],
) -> dict[str, Any]:
    options = given
    for step in reversed(path):
        options = [{"name": step["name"], "type": step["type"], "options": options}]
    data = {"id": command["id"], "name": command["name"], "type": 1, "options": options}
    named = [world.users[int(each["value"])] for each in given if each["type"] == _USER]
    if named:
        data["resolved"] = {"users": {str(user.id): user_json(user) for user in named}}
        if channel.guild_id is not None:
            members = {str(user.id): bare_member() for user in named}
            data["resolved"]["members"] = members
    if "guild_id" in command:
        data["guild_id"] = command["guild_id"]
    return data
