"""The whole program with its site, to be started and killed."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import anyio.abc
import httpx
from preloaded import open_program
from waiting import until

ROOT = Path(__file__).parents[2]


async def started(home: Path, listen: str) -> anyio.abc.Process:
    """Start the program; return once it serves the site."""
    settings = {"TAPEBOT_HOME": str(home), "TAPEBOT_WEB_LISTEN": listen}
    kept = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "PYTHONPATH": str(ROOT)}
    process = await open_program(
        ["-m", "bot"], environment=kept | settings, stdout=subprocess.DEVNULL
    )
    async with httpx.AsyncClient(base_url=f"http://{listen}") as client:

        async def answers() -> bool:
            with suppress(httpx.TransportError):
                await client.get("/login")
                return True
            return False

        await until(answers, every=0.05)
    return process
