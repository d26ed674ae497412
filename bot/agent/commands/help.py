"""``/help``."""

from __future__ import annotations

from bot.agent.commands.registry import Command, CommandContext, CommandReply


async def _run(_: str, context: CommandContext) -> CommandReply:
    return CommandReply(context.commands.help(context.asker))


HELP = Command("help", "list the commands", (), _run)
