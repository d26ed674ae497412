"""The commands that every program has."""

from __future__ import annotations

from collections.abc import Iterable

from bot.agent.commands.help import HELP
from bot.agent.commands.memory import MEMORY
from bot.agent.commands.problem import PROBLEM
from bot.agent.commands.reference import REFERENCE
from bot.agent.commands.registry import Command, CommandRegistry
from bot.agent.commands.start import START
from bot.agent.commands.status import STATUS
from bot.agent.commands.tape import TAPE

NEW = Command(
    "new",
    "archive this conversation and begin a new one, memory carried over",
    (("now", "at once, without waiting for the archive"),),
    run=None,
    waits=lambda _: True,
    destructive=lambda _: True,
)
STOP = Command("stop", "stop what I am doing", (), run=None)
RETRY = Command(
    "retry",
    "try again to answer what I was interrupted in, and gave up",
    (),
    run=None,
    waits=lambda _: True,
)


def builtin_commands(more: Iterable[Command] = ()) -> CommandRegistry:
    """Return the registry, with what the program adds."""
    return CommandRegistry(
        [NEW, STOP, RETRY, MEMORY, PROBLEM, REFERENCE, TAPE, STATUS, HELP, START, *more]
    )
