"""The program's site over a home, in a process of its own: ``python -m bench.web_server HOME``.

Its first line says as JSON where it is, and the cookie of an owner who is logged in.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import anyio
from fastapi import APIRouter

from bot.inspector.site import UnavailableCommands
from bot.runtime.app import open_app
from bot.runtime.app.web import build_site
from bot.runtime.settings import Settings


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


async def _serve(home: Path) -> None:
    listen = f"127.0.0.1:{_free_port()}"
    chosen = Settings(_env_file=None, home=home, model="offline", web_listen=listen)
    async with open_app(chosen) as app, anyio.create_task_group() as tasks:
        logins = app.web.logins
        opened = await logins.log_in("local", "Ada")
        site = build_site(app, lambda _: None, terminal=False)
        tasks.start_soon(site.serve, APIRouter(), UnavailableCommands())
        tasks.start_soon(app.store.run)
        told = {"url": f"http://{listen}", "cookie": logins.cookie, "secret": opened.secret}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    anyio.run(_serve, Path(sys.argv[1]))
