"""Kill -9 at each change of a file while a reminder or a task is set, changed and sent: it comes once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from killed_homes import STEP, killed
from waiting import until

from bot.memory.records.schedules import SCHEDULE_FIRED, SCHEDULE_SET, ScheduleFold
from bot.memory.session.state.turn_fold import DELIVERY
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import START_TIME, ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply


class Home:
    def __init__(self, host: Host, clock: ManualClock) -> None:
        self.host, self.bus, self._clock = host, host.bus, clock

    async def ask(self, text: str, *, message_id: str) -> None:
        """Say something, and let time pass until nothing is scheduled any more."""
        sent = await self.host.channel.send(text, message_id=message_id)
        await self.host.channel.wait_for_answer(sent)
        await until(self._is_over)

    async def _is_over(self) -> bool:
        self._clock.advance(60)
        folded = ScheduleFold()
        for entry in await self.host.tape():
            folded.apply(entry)
        return not folded.live


@asynccontextmanager
async def home(folder: Path, days: int = 0) -> AsyncIterator[Home]:
    clock = ManualClock(START_TIME + timedelta(days=days))
    model = ScriptedModel(lambda _: text_reply("The tide is low."))
    async with session_host(folder, model, clock=clock, schedules=True) as host:
        yield Home(host, clock)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "command"),
    [
        ("hello", "/remind in 10 minutes look at the tide"),
        ("hello", "/schedules task in 10 minutes tell me of the tide"),
        ("/remind in 30 minutes look at the tide", "/schedules change 1 in 10 minutes"),
    ],
)
async def test_reminders_and_tasks_come_once_whatever_is_killed_when(
    tmp_path: Path, before: str, command: str
):
    ready = tmp_path / "ready"
    async with home(ready) as here:
        await here.host.channel.ask(before)
        await here.bus.drain()
    async for folder, at in killed("test_kill_schedules", ready, [command]):
        async with home(folder, days=1) as here:
            # The platform repeats what it has no word of.
            sent = await here.host.channel.send(command, message_id=STEP)
            await here.ask("/schedules", message_id="last")
            await here.bus.drain()
            assert sent.id == STEP
            [made] = {one.data["schedule"] for one in await here.host.events(SCHEDULE_SET)}
            [fired] = [one.data for one in await here.host.events(SCHEDULE_FIRED)]
            delivered = [one.data["turn"] for one in await here.host.events(DELIVERY)]
            assert fired["schedule"] == made, at
            assert delivered.count(fired["turn"]) == 1, at
