"""The console: a chat in the terminal, or questions and answers through pipes."""

from channels.console.channel import ConsoleChannel

__all__ = ["ConsoleChannel"]
