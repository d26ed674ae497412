"""Sub-tasks: a side conversation on a fork of the tape, of which only the result comes back.

Its steps are on the fork, which is discarded; on the tape are the call, an event with what it took, and
the result, the latter two in one append. A kill in the middle leaves the call alone: the turn that is
taken up again runs it once more, since it changes nothing. It works on its conversation's problem, and
reads of no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from bot.agent.agent import Agent
from bot.agent.calls import ToolCalls
from bot.agent.images import TakenImages
from bot.agent.requests import Requests
from bot.agent.tools.recall import RECALL, recall_tool
from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome, ToolRegistry
from bot.agent.views.registry import DEFAULT
from bot.core.clock import iso
from bot.core.errors import ModelError
from bot.core.ids import new_id
from bot.llm.base import Usage
from bot.memory.bus.compartments import Compartments
from bot.memory.bus.entries import stamped
from bot.memory.facts.fold import FactFold
from bot.memory.fold import SessionFold
from bot.memory.snapshot import ZoneFold
from bot.memory.spoken import LOOP_STEP
from bot.memory.window import WindowFold
from bot.tape.entries import event, message
from bot.tape.service import TapeService

TASK_RUN = "task.run"

LONGEST_RESULT = 6_000
"""Characters of a result that come back."""

_UNBOUNDED = 1 << 62


@dataclass(slots=True)
class _Task:
    """A running sub-task, and what it took."""

    text: str = ""
    status: str = "error"
    steps: int = 0
    spent: Usage = field(default_factory=Usage)


class SubTasks:
    """Runs sub-tasks.

    Args:
        agent: The model, its bounds, and the tools that a sub-task may use: none that changes
            anything, and not the one that runs sub-tasks.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def run(self, instructions: str, context: ToolContext) -> ToolOutcome:
        """Work on instructions; what goes wrong with the model is the result.

        Args:
            instructions: All that the sub-task is told, beside memory.
            context: Of the tool's call.
        """
        task = _Task()
        async with context.tape.fork(merge_back=False) as fork:
            try:
                await self._work(task, instructions, context, fork)
            except ModelError as error:
                task.text = f"The sub-task failed: {error}."
        spent = task.spent.as_json()
        audit = {
            "turn": context.turn,
            "instructions": instructions,
            "steps": task.steps,
            "status": task.status,
            "spent": spent,
        }
        notes = [
            event(TASK_RUN, audit),
            # By this one a turn that is taken up again knows what was spent.
            event(LOOP_STEP, {"turn": context.turn, "status": "task", "spent": spent}),
        ]
        return ToolOutcome(_cut(task.text), task.status, notes=notes)

    async def _work(
        self, task: _Task, instructions: str, context: ToolContext, fork: TapeService
    ) -> None:
        session = self._session(context, fork)
        calls = ToolCalls(session, _unseen)
        turn, most = new_id("task"), self._agent.max_steps
        told = {"sent": iso(context.zone.now()), "tz": self._agent.timezone_name, "turn": turn}
        await fork.append(message("user", instructions, sender={"name": "tapebot"}, **told))
        while not task.text:
            calls.seen = context.zone.read()
            built = await session.build(closing=task.steps + 1 >= most)
            reply = await self._agent.model.complete(built.request)
            task.steps += 1
            task.spent += reply.usage
            context.spend(reply.usage)
            if reply.tool_calls and task.steps < most:
                await fork.append(calls.entry(turn, reply))
                await calls.finish(turn)
            elif reply.content.strip():
                task.text, task.status = reply.content.strip(), "ok"
            else:
                task.text = f"The sub-task came to no result (model calls: {task.steps})."

    def _session(self, context: ToolContext, fork: TapeService) -> Requests:
        """Return a session that begins with the fork, and knows what memory holds."""
        memory, problem = context.zone.read(), context.problem
        fold = SessionFold(
            WindowFold(_UNBOUNDED, _UNBOUNDED, problem=problem),
            zone=ZoneFold(memory),
            frozen=memory,
            facts=FactFold(compartments=Compartments(active=problem)),
        )
        fork.stamp = lambda entry: stamped(entry, problem)
        fork.observe(fold.apply)
        agent = replace(self._agent, images=None, builder=DEFAULT)
        images = TakenImages(None)
        return Requests(agent, fork, fold, context.zone, images, context.memory, task=True)


def looking_up(agent: Agent) -> Tool[Any]:
    """Return the tool that looks things up, with sub-tasks unless the model is small and has no use for them."""
    if agent.model.profile.small:
        return RECALL
    return recall_tool(SubTasks(replace(agent, tools=ToolRegistry([RECALL]))).run)


async def _unseen(_: str) -> None:
    """Nobody is told which tools a sub-task uses."""


def _cut(text: str) -> str:
    if len(text) <= LONGEST_RESULT:
        return text
    return f"{text[:LONGEST_RESULT]}\n… ({len(text) - LONGEST_RESULT} characters left out)"
