"""Run the server in a process: ``python -m testkit.telegram``."""

import anyio

from testkit.process import serve
from testkit.telegram.server import TelegramServer

server = TelegramServer()
anyio.run(serve, server, lambda: {"url": server.url, "token": server.token})
