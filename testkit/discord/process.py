"""Run the Discord test server in a process of its own."""

from __future__ import annotations

from testkit.process import ServerProcess


class DiscordProcess(ServerProcess):
    """The server in a process; an async context manager."""

    module = "testkit.discord"
