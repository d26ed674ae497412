"""Run the server in a process: ``python -m testkit.telegram``."""

import anyio

from testkit.process import serve
from testkit.telegram.server import TelegramServer

anyio.run(serve, TelegramServer(), "url", "token")
