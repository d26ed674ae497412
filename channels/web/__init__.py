"""The web channel: a chat over WebSockets, on the program's own web server."""

from channels.web.channel import Beside, WebChannel

__all__ = [
    "Beside",
    "WebChannel",
]
