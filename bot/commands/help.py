"""``/help``."""

from __future__ import annotations

from bot.commands.registry import Command, CommandContext, CommandReply


async def _run(_: str, context: CommandContext) -> CommandReply:
    return CommandReply(context.commands.help())


HELP = Command("help", "list the commands", "", _run)
