"""The turn of a scheduled task: it is done on a fork of the tape, and its result is the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from bot.agent.request_builder import RequestBuilder
from bot.agent.subtask import SubTaskRunner
from bot.agent.turn import Turn
from bot.bus import Cause
from bot.memory.records.evidence import FROM_OUTSIDE
from bot.memory.records.schedules import Schedule
from bot.tape.entries import message

_SHOWN = 80


class TaskTurn(Turn):
    """A running turn that does a schedule's task.

    The task sees its instructions and memory, not the conversation, and has the tools that only
    read. A model that fails is told in one line.

    Args:
        session: Builds requests from the session's state.
        on_tool: Called with the name of each tool before it runs.
        schedule: The schedule.

    Attributes:
        schedule: As given.
    """

    def __init__(
        self,
        session: RequestBuilder,
        on_tool: Callable[[str], Awaitable[None]],
        schedule: Schedule,
    ) -> None:
        super().__init__(session, on_tool)
        # Messages that arrive meanwhile are no part of the task.
        self.alone = True
        self.schedule = schedule
        self._task_agent = replace(session.agent, tools=session.agent.tools.reading())

    async def _run(self) -> None:
        self._calls.memory_seen = self._zone.read()
        schedule = self.schedule
        context = replace(self._calls.context(self.id, "task"), problem=schedule.problem)
        runner = SubTaskRunner(self._task_agent, "schedule", own=schedule.own)
        outcome = await runner.run(schedule.text, context)
        text = outcome.text()
        if outcome.status != "ok":
            title = " ".join(schedule.text.split())[:_SHOWN]
            entries = outcome.extra_entries
            await self.end("error", f"⚙ {title}: {text}", error=text, entries=entries)
            return
        cause = schedule_cause(schedule).as_json()
        answer = message("assistant", text, turn=self.id, cause=cause, problem=schedule.problem)
        if outcome.from_outside:
            answer = answer.with_meta(**{FROM_OUTSIDE: True})
        await self._end([*outcome.extra_entries, answer], "ok")


def schedule_cause(schedule: Schedule) -> Cause:
    """Return a schedule as the cause of a message."""
    return Cause("schedule", str(schedule.number), schedule.entry)
