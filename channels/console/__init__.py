"""The console channel: an interactive chat in the terminal, or line by line through pipes."""

from channels.console.channel import ConsoleChannel

__all__ = [
    "ConsoleChannel",
    "history",
]
