"""One half of a conversation, in a process of its own that is traced.

Arguments: ``publish`` or ``serve``, and the folder that both have in common. ``hang`` makes a span and
ends.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio
from pydantic import BaseModel

from bot.agent.tools.registry import Tool, ToolOutcome
from bot.bus import Address, Inbound, Sender
from bot.bus.instrumented import InstrumentedBus
from bot.bus.local import LocalBus
from bot.core.telemetry.otlp import export_traces
from bot.core.telemetry.tracing import span
from bot.llm.instrumented import instrumented
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


class Observed(ScriptedModel):
    complete = instrumented(ScriptedModel.complete)


class NoArguments(BaseModel):
    pass


async def _look(_: BaseModel, __: object) -> ToolOutcome:
    await anyio.lowlevel.checkpoint()
    return ToolOutcome("the zebra is blue")


async def publish(folder: Path) -> None:
    bus = InstrumentedBus(LocalBus(folder / "bus", max_queued_messages=100))
    for number, chat in enumerate(("4711", "4712"), 1):
        sender, now = Sender("7", "Ada"), datetime.now(UTC)
        await bus.channel("fake").publish(
            Inbound(Address("fake", chat), f"m{number}", sender, "Which colour is the zebra?", now)
        )
    await bus.aclose()


async def serve(folder: Path) -> None:
    model = Observed(
        lambda request: (
            text_reply("Blue, dear Ada.")
            if any(one["role"] == "tool" for one in request.messages)
            else tool_call_reply(("look", {}))
        )
    )
    tool = Tool("look", "Looks.", NoArguments, _look, effect="reads_own")
    async with session_host(folder, model, tools=[tool], over=InstrumentedBus) as host:
        await host.wait_until(lambda: not host.bus._journal.state.pending, within=30)


async def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    # What is there to be seen may take its time; what hangs is not waited for.
    seconds = 1.0 if what == "hang" else 60.0
    async with export_traces("gateway" if what == "publish" else "worker", seconds=seconds):
        if what == "hang":
            with span("turn"):
                pass
        else:
            await (publish if what == "publish" else serve)(folder)


anyio.run(main)
