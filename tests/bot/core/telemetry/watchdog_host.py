"""A process whose event loop stands still, and is watched."""

from __future__ import annotations

import logging
import re
import sys
import time
from pathlib import Path

import anyio

from bot.core.telemetry.active_work import track_work
from bot.core.telemetry.watchdog import RECORD, Watchdog


def _hang(how: str) -> None:
    if how == "match":
        re.match(r"(a+)+$", "a" * 200 + "!")
    if how == "sleep":
        time.sleep(600)
    while how == "a while" and not Path(RECORD).exists():
        time.sleep(0.05)
    while how == "loop":
        pass


async def main(how: str) -> None:
    watchdog = Watchdog(Path.cwd(), stalled=0.75, ended=60.0 if how == "a while" else 3.0)
    async with watchdog.watch():
        await anyio.wait_all_tasks_blocked()  # the loop has given a sign of life
        with track_work("fake:1", lambda: ["m1"]):
            _hang(how)
        while Path(RECORD).exists():
            await anyio.sleep(0.05)


logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
anyio.run(main, sys.argv[1])
