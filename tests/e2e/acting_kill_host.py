"""Runs tapebot as ``kill_host`` does, with a tool that acts and a model that bills.

Further lines out: ``billed`` before each reply of the model. The file ``acts.txt`` in the home has what the tool
wrote, a line each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
from acting import obeying, writing_tool
from kill_host import (
    FAULT,
    Pipe,
    SlowModel,
    emit,
    options,
)  # before ours: it stands before the system

from bot.agent.builtin_tools import builtin_tools
from bot.agent.spending.metered_model import MeteredModel
from bot.agent.tools.registry import ToolRegistry
from bot.llm.base import ModelReply, ModelRequest, OnText, Usage
from bot.memory.records.spending_amounts import EVERYONE, NANO, Limit
from bot.offline import OfflineModel
from bot.runtime.app import open_app
from bot.runtime.app.scheduler import Scheduler
from bot.runtime.sessions.supervisor import Supervisor
from bot.runtime.settings import load_settings

COST = 0.5
"""Dollars that each call costs."""
ACTS = "acts.txt"


class Assistant(OfflineModel):
    """The offline responder, which costs something, and acts when it is told to."""

    name = "assistant"

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        told = str(request.messages[-1]["content"])
        if "write k" in told or "file_write" in told:
            reply = obeying()(request)
        else:
            reply = await super().complete(request, on_text)
        emit(event="billed")
        return replace(reply, usage=Usage(90, 0, 10, COST, 1), model=self.name)


class OwnersPipe(Pipe):
    """Its people own the bot, and so may set budgets."""

    role = "owner"


async def serve(stall: float) -> None:
    """Run it until the platform hangs up."""
    settings = load_settings()
    async with open_app(settings) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.spending.run)
        await app.spending.set_limit(Limit(EVERYONE, "month", "usd", 100_000 * NANO))
        model: Any = MeteredModel(SlowModel(Assistant(), stall), app.spending, OfflineModel)
        agent = replace(app.services.agent, model=model, judge=None)
        tools = [*builtin_tools(agent), writing_tool(settings.home / ACTS)]
        agent = replace(agent, tools=ToolRegistry(tools))
        tasks.start_soon(Supervisor(replace(app.services, agent=agent)).run)
        tasks.start_soon(Scheduler(app.store, app.bus, agent.clock).run)
        await OwnersPipe(app.bus.drain).run(app.bus.channel(Pipe.name))
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    given = options()
    FAULT.install()
    FAULT.arm(given.calls, given.part)
    anyio.run(serve, given.stall)
