"""Runs tapebot with a pipe as its chat platform, and dies where it is told to.

One JSON object a line. In: ``{"op": "say", "chat", "id", "text"}`` is a person's message, ``{"op": "drain"}`` asks
for word when nothing is owed any more, ``{"op": "arm", "calls", "part", "more"}`` is a fault that counts from now
(``kill_fault.Fault.arm``). Out: ``ack``, ``answer``, ``activity``, ``model`` (a call begins), ``drained``, ``ready``.
A line that is in the pipe has reached the platform, whatever is killed then.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import anyio
from kill_fault import FAULT, emit


async def lines() -> AsyncIterator[dict[str, Any]]:
    rest = b""
    while True:
        await anyio.wait_readable(0)
        chunk = os.read(0, 65_536)
        if not chunk:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield json.loads(line)


IMPATIENT = "KILL_HOST_IS_IMPATIENT"


@dataclass
class SlowModel:
    """The configured model, behind a provider that takes its time."""

    inner: Any
    stall: float

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def profile(self) -> Any:
        return self.inner.profile

    async def complete(self, request: Any, on_text: Any = None) -> Any:
        emit(event="model", purpose=request.purpose)
        await anyio.sleep(self.stall)
        return await self.inner.complete(request, on_text)

    async def aclose(self) -> None:
        await self.inner.aclose()


class Pipe:
    """The channel ``pipe``: message ids are the platform's, and the same when it sends again."""

    name = "pipe"
    role: Any = "member"

    def __init__(self, drain: Callable[[], Any]) -> None:
        self._drain = drain

    async def run(self, port: Any) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._show, port)
            emit(event="ready")
            async for line in lines():
                if line["op"] == "say":
                    await self._say(port, line)
                elif line["op"] == "arm":
                    FAULT.arm(line["calls"], line["part"], **line["more"])
                else:
                    tasks.start_soon(self._drained)
            tasks.cancel_scope.cancel()

    async def _say(self, port: Any, line: dict[str, Any]) -> None:
        from bot.bus import Address, BusError, Inbound, Sender

        inbound = Inbound(
            Address("pipe", line["chat"]),
            line["id"],
            # Each chat is another person's: what one takes back is nothing of the others'.
            Sender(f"of-{line['chat']}", "Ada"),
            line["text"],
            datetime.now(UTC),
            role=self.role,
        )
        while True:
            try:
                accepted = await port.publish(inbound)
                break
            except BusError:
                await anyio.sleep(0.01)  # as a platform does before it sends again
        emit(event="ack", id=line["id"], duplicate=accepted.duplicate)

    async def _show(self, port: Any) -> None:
        from bot.bus import Activity, Answer, DeliveryReport

        while True:
            outbound = await port.receive()
            if isinstance(outbound, Answer):
                emit(event="answer", turn=outbound.id, text=outbound.text, to=outbound.reply_to)
                await port.report(DeliveryReport(outbound.session, outbound.id))
            elif isinstance(outbound, Activity):
                emit(event="activity", state=outbound.state)

    async def _drained(self) -> None:
        await self._drain()
        emit(event="drained")


async def serve(stall: float) -> None:
    """Run tapebot as ``bot.runtime.app.serve`` does, on the pipe."""
    from bot.core.clock import SystemClock
    from bot.llm.retry import Warmable
    from bot.runtime.app import open_app
    from bot.runtime.app.scheduler import Scheduler
    from bot.runtime.sessions.supervisor import Supervisor
    from bot.runtime.settings import load_settings

    class FastClock(SystemClock):
        """Waits shorter where nobody waits for the world: between two tries."""

        async def sleep(self, seconds: float) -> None:
            await anyio.sleep(seconds / 200)

    async with open_app(load_settings()) as app, anyio.create_task_group() as tasks:
        agent = replace(app.services.agent, model=SlowModel(app.model, stall))
        if IMPATIENT in os.environ:
            agent = replace(agent, clock=FastClock())
        tasks.start_soon(Supervisor(replace(app.services, agent=agent)).run)
        tasks.start_soon(Scheduler(app.store, app.bus, agent.clock).run)
        if isinstance(app.model, Warmable):
            tasks.start_soon(app.model.warm)
        channel = Pipe(app.bus.drain)
        await channel.run(app.bus.channel(channel.name))
        tasks.cancel_scope.cancel()


def main() -> None:
    """Serve until the platform hangs up: a model call takes so many seconds, and it dies at this call of the start."""
    stall, calls, part = map(float, sys.argv[1:])
    logging.basicConfig(level=logging.WARNING)
    FAULT.arm(int(calls), part)
    FAULT.install()
    anyio.run(serve, stall)


if __name__ == "__main__":
    main()
