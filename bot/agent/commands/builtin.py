"""The list of built-in commands, and the short ones: new, stop, retry, help, start, status."""

from __future__ import annotations

from collections.abc import Iterable

from bot.agent.commands.budget import BUDGET_COMMAND, budget_line
from bot.agent.commands.memory import MEMORY_COMMAND
from bot.agent.commands.model import MODEL_COMMAND
from bot.agent.commands.problem import PROBLEM_COMMAND
from bot.agent.commands.reference import REFERENCE_COMMAND
from bot.agent.commands.registry import Command, CommandContext, CommandRegistry, CommandReply
from bot.agent.commands.remind import REMIND_COMMAND, TIMEZONE_COMMAND
from bot.agent.commands.schedules import SCHEDULES_COMMAND
from bot.agent.commands.tape import TAPE_COMMAND

NEW_COMMAND = Command(
    "new",
    "archive this conversation and start a new one; memory is kept",
    (("now", "start at once, without waiting for the archive"),),
    run=None,
    waits_for_turn=lambda _: True,
    destructive=lambda _: True,
)
STOP_COMMAND = Command("stop", "stop what I am doing", (), run=None)
RETRY_COMMAND = Command(
    "retry",
    "retry a message that I gave up on",
    (),
    run=None,
    waits_for_turn=lambda _: True,
)


def builtin_commands(more: Iterable[Command] = ()) -> CommandRegistry:
    """Return the registry of the built-in commands and ``more``."""
    return CommandRegistry(
        [
            NEW_COMMAND,
            STOP_COMMAND,
            RETRY_COMMAND,
            MEMORY_COMMAND,
            PROBLEM_COMMAND,
            REFERENCE_COMMAND,
            REMIND_COMMAND,
            SCHEDULES_COMMAND,
            TIMEZONE_COMMAND,
            MODEL_COMMAND,
            TAPE_COMMAND,
            BUDGET_COMMAND,
            STATUS_COMMAND,
            HELP_COMMAND,
            START_COMMAND,
            *more,
        ]
    )


async def _help(_: str, context: CommandContext) -> CommandReply:
    return CommandReply(context.commands.help(context.author))


HELP_COMMAND = Command("help", "list the commands", (), _help)


_WELCOME = (
    "Hello. I am an assistant with a memory. Tell me what I should remember, and ask me "
    "anything. `/memory` shows what I remember, and `/help` lists all commands."
)


async def _start(_: str, __: CommandContext) -> CommandReply:
    return CommandReply(_WELCOME)


START_COMMAND = Command("start", "say hello", (), _start, hidden=True)


async def _status(_: str, context: CommandContext) -> CommandReply:
    info = await context.tape.info()
    fold = context.fold
    usage = fold.turns.usage
    cost = "price unknown" if usage.cost is None else f"${usage.cost:.4f}"
    sealed = f", {_counted(info.segments, 'sealed segment')}" if info.segments else ""
    lines = [
        f"- Model: {context.model_line()}",
        f"- Session: `{info.name}`, {_counted(fold.turns.turn_count, 'turn')}",
        f"- Tape: {info.entries} entries{sealed}",
        f"- In view: {_counted(fold.window.messages, 'message')}; "
        f"unconsolidated: {fold.window.unconsolidated}",
        f"- Consolidation: {context.consolidation_line()}",
        f"- Memory: version {context.zone.read().version}",
        f"- Usage: {_counted(usage.calls, 'model call')}, {usage.prompt_tokens} tokens read "
        f"({usage.cached_tokens} cached), {usage.completion_tokens} written, {cost}",
    ]
    if (budget := await budget_line(context)) is not None:
        lines.append(f"- Budget: {budget}")
    return CommandReply("\n".join(lines))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


STATUS_COMMAND = Command(
    "status", "show the model, this session, its memory and usage", (), _status
)
