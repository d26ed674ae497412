"""``/start``: what Telegram sends when somebody opens a chat with the bot."""

from __future__ import annotations

from bot.agent.commands.registry import Command, CommandContext, CommandReply

_WELCOME = (
    "Hello. I am an assistant that remembers: write to me as to a person, and tell me what I "
    "should keep in mind. `/memory` shows what I remember, and `/help` lists all commands."
)


async def _run(_: str, __: CommandContext) -> CommandReply:
    return CommandReply(_WELCOME)


START = Command("start", "say hello", (), _run, hidden=True)
