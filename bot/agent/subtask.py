"""Run sub-tasks: side conversations on a fork of the tape, of which only the result comes back.

The steps are written to the fork, which is discarded. The tape gets the call, then in one append an
event with the usage and the result. After a crash in between only the call is there; the resumed
turn runs it once more, since a sub-task changes nothing. A sub-task works on its conversation's
problem and reads no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.agent.agent import Agent
from bot.agent.prompt import TaskKind
from bot.agent.refusals import complete
from bot.agent.request_builder import RequestBuilder
from bot.agent.tool_calls import ToolCallRunner
from bot.agent.tools.recall import RECALL_TOOL, recall_tool
from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome, ToolRegistry
from bot.agent.views.registry import DEFAULT_BUILDER
from bot.core.clock import format_time
from bot.core.errors import ModelError
from bot.core.i18n import _, ngettext
from bot.core.ids import new_id
from bot.llm.base import Usage
from bot.llm.spender import spends_as
from bot.memory.records.compartments import Compartments
from bot.memory.records.conversation_entries import LOOP_STEP
from bot.memory.records.episodes import with_problem
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.outside_text import SCHEDULED
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.outside_fold import OutsideFold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone_snapshot import ZoneFold
from bot.tape.entries import event, message
from bot.tape.service import TapeService

TASK_RUN = "task.run"

LONGEST_RESULT = 6_000
"""Maximum number of characters of a result that come back."""

_UNBOUNDED = 1 << 62


@dataclass(slots=True)
class _Task:
    """State and usage of a running sub-task."""

    text: str = ""
    status: str = "error"
    steps: int = 0
    spent: Usage = field(default_factory=Usage)


class SubTaskRunner:
    """Runs sub-tasks.

    Args:
        agent: The model, its limits, and the tools that a sub-task may use: read-only tools,
            without the one that runs sub-tasks.
        kind: What the models are called for.
        own: The parts of a scheduled task's text that are a person's own words.
    """

    def __init__(self, agent: Agent, kind: TaskKind = "task", *, own: Sequence[str] = ()) -> None:
        self._agent = agent
        self._kind = kind
        self._own = own

    async def run(self, instructions: str, context: ToolContext) -> ToolOutcome:
        """Run a sub-task; a model error becomes its result."""
        task = _Task()
        async with context.tape.fork(merge_back=False) as fork:
            session = self._session(context, fork)
            try:
                await self._work(task, instructions, context, session)
            except ModelError as error:
                task.text = _("The sub-task failed: {reason}.", reason=error)
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
            # A resumed turn restores its usage from this event.
            event(LOOP_STEP, {"turn": context.turn, "status": "task", "spent": spent}),
        ]
        outside = bool(session.fold.outside.since)
        return ToolOutcome(_cut(task.text), task.status, extra_entries=notes, from_outside=outside)

    async def _work(
        self, task: _Task, instructions: str, context: ToolContext, session: RequestBuilder
    ) -> None:
        fork = session.tape
        calls = ToolCallRunner(session, _ignore_tool_name)
        turn, most = new_id("task"), self._agent.max_steps
        told: dict[str, Any] = {
            "sent": format_time(context.zone.now()),
            "tz": session.fold.schedules.zone_name or self._agent.timezone_name,
            "turn": turn,
        }
        if self._kind == "schedule":
            told[SCHEDULED] = list(self._own)
            # What a model wrote then may be what somebody had it write.
            calls.described = instructions not in self._own
        await fork.append(message("user", instructions, sender={"name": "tapebot"}, **told))
        while not task.text:
            calls.memory_seen = context.zone.read()
            built = await session.build(closing=task.steps + 1 >= most)
            shown = await calls.answer_filter(turn)
            with spends_as(self._kind):
                reply = await complete(session.agent.model, built.request)
            task.steps += 1
            task.spent += reply.usage
            context.record_usage(reply.usage)
            if reply.tool_calls and task.steps < most:
                await fork.append(calls.call_entry(turn, reply))
                await calls.run_pending(turn)
            elif reply.content.strip():
                text = reply.content if shown is None else shown(reply.content)
                task.text, task.status = text.strip(), "ok"
            else:
                task.text = _(
                    "The sub-task came to no result (model calls: {count}).", count=task.steps
                )

    def _session(self, context: ToolContext, fork: TapeService) -> RequestBuilder:
        """Return a request builder for the fork, starting with the current memory."""
        memory, problem = context.zone.read(), context.problem
        fold = SessionFold(
            WindowFold(_UNBOUNDED, _UNBOUNDED, problem=problem),
            zone=ZoneFold(memory),
            prompt_snapshot=memory,
            facts=FactFold(compartments=Compartments(active_problem=problem)),
            outside=OutsideFold(first=context.fold.outside.first),
        )
        fold.schedules.zone_name = context.memory.fold.schedules.zone_name
        fork.stamp = lambda entry: with_problem(entry, problem)
        fork.observe(fold.apply)
        agent = replace(
            self._agent,
            model=context.task_model or self._agent.model,
            files=None if context.files is None else self._agent.files,
            vectors=context.vectors,
            images=None,
            builder=DEFAULT_BUILDER,
        )
        return RequestBuilder(agent, fork, fold, context.zone, context.memory, task=self._kind)


def recall_tool_for(agent: Agent) -> Tool[Any]:
    """Return the recall tool, with sub-tasks unless all models are small."""
    models = [preset.model for preset in agent.presets or ()] or [agent.model]
    if all(model.profile.small for model in models):
        return RECALL_TOOL
    return recall_tool(SubTaskRunner(replace(agent, tools=ToolRegistry([RECALL_TOOL]))).run)


async def _ignore_tool_name(name: str) -> None:
    """Ignore tool names: a sub-task's tool use is not shown to the user."""


def _cut(text: str) -> str:
    if len(text) <= LONGEST_RESULT:
        return text
    more = ngettext(
        "({n} character left out)", "({n} characters left out)", len(text) - LONGEST_RESULT
    )
    return f"{text[:LONGEST_RESULT]}\n… {more}"
