"""Run the server in a process: ``python -m testkit.discord``."""

import anyio

from testkit.discord.server import DiscordServer
from testkit.process import serve

anyio.run(serve, DiscordServer(), "url", "api_url", "gateway_url", "token")
