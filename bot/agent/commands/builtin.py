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
from bot.agent.texts import joined
from bot.core.i18n import N_, _, format_money, format_number, ngettext
from bot.llm.base import Usage
from bot.tape.service import TapeInfo

NEW_COMMAND = Command(
    "new",
    N_("archive this conversation and start a new one; memory is kept"),
    (("now", N_("start at once, without waiting for the archive")),),
    run=None,
    waits_for_turn=lambda arguments: True,  # noqa: ARG005 - whatever they are
    destructive=lambda arguments: True,  # noqa: ARG005
    right="chat",
)
STOP_COMMAND = Command("stop", N_("stop what I am doing"), (), run=None, right="chat")
RETRY_COMMAND = Command(
    "retry",
    N_("retry a message that I gave up on"),
    (),
    run=None,
    waits_for_turn=lambda arguments: True,  # noqa: ARG005
    right="chat",
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


async def _help(arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 (none)
    return CommandReply(context.commands.help(context.author))


HELP_COMMAND = Command("help", N_("list the commands"), (), _help, right="chat")


_WELCOME = N_(
    "Hello. I am an assistant with a memory. Tell me what I should remember, and ask me "
    "anything. `/memory` shows what I remember, and `/help` lists all commands."
)


async def _start(arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 (none)
    return CommandReply(_(_WELCOME))


START_COMMAND = Command("start", N_("say hello"), (), _start, hidden=True, right="chat")


async def _status(arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 (none)
    info = await context.tape.info()
    fold = context.fold
    usage = fold.turns.usage
    lines = [
        _("Model: {model}", model=context.model_line()),
        _(
            "Session: {name}, {turns}",
            name=f"`{info.name}`",
            turns=ngettext("{n} turn", "{n} turns", fold.turns.turn_count),
        ),
        _("Tape: {size}", size=_tape_size(info)),
        _(
            "In view: {messages}; unconsolidated: {unconsolidated}",
            messages=ngettext("{n} message", "{n} messages", fold.window.messages),
            unconsolidated=format_number(fold.window.unconsolidated),
        ),
        _("Consolidation: {state}", state=context.consolidation_line()),
        _("Memory: version {version}", version=context.zone.read().version),
        *context.judge_lines(),
    ]
    if usage.calls:
        lines.append(_usage_line(usage))
    if context.author.role == "owner":
        lines += context.problems
    if (budget := await budget_line(context)) is not None:
        lines.append(_("Budget: {budget}", budget=budget))
    return CommandReply("\n".join(f"- {line}" for line in lines))


def _tape_size(info: TapeInfo) -> str:
    entries = ngettext("{n} entry", "{n} entries", info.entries)
    if not info.segments:
        return entries
    segments = ngettext("{n} sealed segment", "{n} sealed segments", info.segments)
    return joined([entries, segments])


def _usage_line(usage: Usage) -> str:
    return _(
        "Usage: {calls}, {read} tokens read ({cached} cached), {written} written, {cost}",
        calls=ngettext("{n} model call", "{n} model calls", usage.calls),
        read=format_number(usage.prompt_tokens),
        cached=format_number(usage.cached_tokens),
        written=format_number(usage.completion_tokens),
        cost=_("price unknown") if usage.cost is None else format_money(usage.cost, 4),
    )


STATUS_COMMAND = Command(
    "status",
    N_("show the model, this session, its memory and usage"),
    (),
    _status,
    right="chat",
)
