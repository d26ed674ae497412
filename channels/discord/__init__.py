"""The Discord channel: messages, slash commands and buttons, over discord.py."""

from channels.discord.channel import DiscordChannel

__all__ = ["DiscordChannel"]
