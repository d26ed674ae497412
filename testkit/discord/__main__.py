"""Run the server in a process: ``python -m testkit.discord``."""

import anyio

from testkit.discord.server import DiscordServer
from testkit.process import serve

server = DiscordServer()
anyio.run(
    serve,
    server,
    lambda: {
        "url": server.url,
        "api_url": server.api_url,
        "gateway_url": server.gateway_url,
        "token": server.token,
    },
)
