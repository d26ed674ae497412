"""The web channel: a chat over WebSockets, on the program's own site."""

from channels.web.channel import WebChannel

__all__ = ["WebChannel"]
