"""A tape server with many stores, each behind a path of its own: ``/NUMBER/v1/tapes``.

Prints its port, and ends when its standard input does. The token ``secret`` may do everything.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import uvicorn
from starlette.types import Receive, Scope, Send

from bot.tape.server.app import build_app
from bot.tape.server.server import bind_socket
from bot.tape.server.tokens import TokenStore
from bot.tape.stores.file import FileTapeStore

TOKEN = "secret"


def main(folder: Path) -> None:
    apps = {}
    tokens = TokenStore(folder / "tokens.json")

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        _, number, rest = scope["path"].split("/", 2)
        if number not in apps:
            store = FileTapeStore(folder / number, sync=False)
            apps[number] = build_app(store, tokens, folder=folder / number)
        path = f"/{rest}"
        await apps[number]({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    bound = bind_socket("127.0.0.1:0")
    bound.listen(100)
    sys.stdout.write(f"{bound.getsockname()[1]}\n")
    sys.stdout.flush()
    threading.Thread(target=_end_with_input, daemon=True).start()
    config = uvicorn.Config(dispatch, http="h11", lifespan="off", log_level="error")
    uvicorn.Server(config).run(sockets=[bound])


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
