"""The commands that every program has."""

from __future__ import annotations

from bot.commands.help import HELP
from bot.commands.memory import MEMORY
from bot.commands.registry import Command, CommandRegistry
from bot.commands.status import STATUS

NEW = Command(
    "new",
    "archive this conversation and begin a new one, memory carried over",
    "`/new now`: at once, without waiting for the archive",
    run=None,
    anytime=False,
)
STOP = Command("stop", "stop what I am doing", "", run=None)


def builtin_commands() -> CommandRegistry:
    """Return the registry."""
    return CommandRegistry([NEW, STOP, MEMORY, STATUS, HELP])
