"""A disk that refuses: a conversation goes on by itself, and nothing that was acknowledged is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from kill_checks import check_tape
from killed_homes import STEP, lives
from sampling import some

from bot.agent.notebook import NotebookModel
from bot.bus import BusError
from bot.core.clock import SystemClock
from bot.memory.records.conversation_entries import TURN_END
from bot.runtime.sessions.writer import GAVE_UP
from bot.testing.host import Host, session_host

SAID = "My berth is number 7."
CALLS = ("write", "fsync", "fdatasync", "rename", "replace", "")
FAULTS: list[dict[str, Any]] = [
    *({"only": call, "error": "EIO", "many": 1} for call in CALLS),
    *({"only": call, "error": "ENOSPC", "many": 4} for call in CALLS),
    {"only": "write", "error": "ENOSPC", "many": 40},
]
"""One call of each kind, four in a row, and a disk that is full for a while."""


class HurriedClock(SystemClock):
    """Waits shorter between two tries."""

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds / 200)


class Home:
    def __init__(self, host: Host) -> None:
        self.host, self.bus = host, host.bus

    async def ask(self, text: str, *, message_id: str) -> str:
        """Say something until it is taken, as a platform does; return the answer."""
        while True:
            try:
                sent = await self.host.channel.send(text, message_id=message_id)
            except BusError:
                await anyio.lowlevel.checkpoint()
            else:
                return await self.host.channel.wait_for_answer(sent, within=30)


@asynccontextmanager
async def home(folder: Path) -> AsyncIterator[Home]:
    async with session_host(folder, NotebookModel(), clock=HurriedClock(), sync=True) as host:
        yield Home(host)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_refused_call_and_a_full_disk_cost_no_conversation_once_there_is_room(
    tmp_path: Path,
):
    ready = tmp_path / "ready"
    async with home(ready) as here:
        await here.ask("I live in Oslo.", message_id="first")
    with lives("test_disk_errors", ready, [SAID]) as life:
        _, [done, _] = await life()
        for fault in FAULTS:
            for at in some(range(1, done["changes"] + 1, 4), str(fault)):
                folder, _ = await life(at, fault=fault)
                async with home(folder) as here:
                    await here.ask("And now?", message_id="later")
                    assert "number 7" in await here.ask("Which berth is mine?", message_id="last")
                    entries = await here.host.tape()
                    ends = [one.data for one in await here.host.events(TURN_END)]
                check_tape(entries)
                assert [one["status"] for one in ends if STEP in one["inbound"]] == ["ok"]
                assert GAVE_UP not in str(entries)
