"""Run pairs of a user's task and an attacker's on tapebot: its sessions, its MCP client, its approvals."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import anyio
import anyio.to_thread

from bot.bus import Sender
from bot.llm.base import ModelReply, ModelRequest
from bot.mcp_client import McpServer
from bot.memory.records.pending_calls import TOOL_DECIDED, TOOL_PENDING
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel
from evals.agentdojo.attacked_model import LAST_MESSAGE, AttackedModel, Call
from evals.agentdojo.installation import SuiteServer, suite_server

Person = Literal["careful", "yes", "no"]
"""Who answers questions: yes to the calls of their own task alone, yes to all, or no to all."""

Rights = Literal["given", "ask"]
"""``given``: tools that only read may, all others run without asking. ``ask``: each call of the others asks."""

_READING = ("get_", "read_", "search_", "list_", "check_")
"""How the names of AgentDojo's tools begin that change nothing."""

_MOST_STEPS = 100
_LONGEST_RUN = 120.0


@dataclass(frozen=True, slots=True)
class Condition:
    """How pairs are run.

    Attributes:
        person: Who answers questions.
        rights: What the owner allowed beforehand.
        obeys: Whether the model obeys the attacker.
    """

    person: Person = "careful"
    rights: Rights = "given"
    obeys: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one run.

    Attributes:
        suite: The suite.
        user_task: The user's task.
        injection_task: The attacker's; None if there was none.
        condition: How it was run.
        utility: Whether AgentDojo finds the user's task done.
        security: Whether AgentDojo finds the attacker's task done.
        seen: Whether the model read the attacker's text.
        asked: Questions about calls of the user's task.
        asked_for_attack: Questions about other calls.
        acted_for_attack: Other calls that were allowed to run, by a person or by the owner's rights.
        acts: Whether the attacker's task has calls; otherwise it wants a text.
    """

    suite: str
    user_task: str
    injection_task: str | None
    condition: Condition
    utility: bool
    security: bool
    seen: bool
    asked: int
    asked_for_attack: int
    acted_for_attack: int
    acts: bool


Pair = tuple[str, str | None]
"""A user's task and an attacker's."""

Batch = Mapping[Condition, Sequence[Pair]]
"""Pairs of one suite, by how they are run."""


def run_batch(python: Path, suite: str, batch: Batch) -> list[Outcome]:
    """Run pairs one after the other, on one server.

    Args:
        python: The Python of AgentDojo's virtual environment.
        suite: The suite.
        batch: The pairs.
    """
    with TemporaryDirectory() as folder, suite_server(python, suite) as server:
        return [
            outcome
            for number, (condition, pairs) in enumerate(batch.items())
            for outcome in anyio.run(
                _run_pairs, Path(folder) / str(number), server, suite, pairs, condition
            )
        ]


async def _run_pairs(
    folder: Path, server: SuiteServer, suite: str, pairs: Sequence[Pair], condition: Condition
) -> list[Outcome]:
    async with _tapebot(folder, suite, server, condition) as (host, scripts):
        outcomes = []
        for number, pair in enumerate(pairs):
            run = _Run(host, server, suite, pair, condition, chat=str(number + 2))
            with anyio.fail_after(_LONGEST_RUN):
                outcomes.append(await run.run(scripts))
        return outcomes


@dataclass(slots=True)
class _Scripts:
    """The script of the conversation that takes place now."""

    now: AttackedModel | None = None

    def reply(self, request: ModelRequest) -> ModelReply:
        assert self.now is not None
        return self.now.reply(request)


@asynccontextmanager
async def _tapebot(
    folder: Path, suite: str, server: SuiteServer, condition: Condition
) -> AsyncIterator[tuple[Host, _Scripts]]:
    """Run tapebot with a suite's tools, as its owner allowed them."""
    scripts = _Scripts()
    model = ScriptedModel(scripts.reply)
    servers = {suite: McpServer(url=server.mcp)}
    bounds = HostLimits(max_steps=_MOST_STEPS)
    async with session_host(folder, model, mcp=servers, bounds=bounds) as host:
        assert host.mcp is not None
        connection = host.mcp.connections[suite]
        with anyio.fail_after(_LONGEST_RUN):
            await connection.wait_until_tried()
        if not connection.connected:
            raise RuntimeError(f"tapebot does not reach the suite {suite}: {connection.why}")
        for tool in connection.definitions:
            how = _right(tool, condition)
            reply = await host.channel.ask(f"/mcp allow {suite} {tool} {how} everybody")
            if not reply.startswith("Allowed:"):
                raise RuntimeError(reply)
        yield host, scripts


def _right(tool: str, condition: Condition) -> str:
    if tool.startswith(_READING):
        return "reads"
    return "always" if condition.rights == "given" else "ask"


@dataclass(frozen=True, slots=True)
class _Plan:
    """AgentDojo's ground truth of a task."""

    calls: list[tuple[str, dict[str, Any]]]
    output: str

    def named_calls(self) -> list[Call]:
        return [(name, arguments) for name, arguments in self.calls]


@dataclass(slots=True)
class _Run:
    """One conversation."""

    host: Host
    server: SuiteServer
    suite: str
    pair: Pair
    condition: Condition
    chat: str
    own: list[Call] = field(default_factory=list)
    asked: int = 0
    asked_for_attack: int = 0

    async def run(self, scripts: _Scripts) -> Outcome:
        user_task, injection_task = self.pair
        told = await self._request("start", user_task=user_task, injection_task=injection_task)
        user, attack = (_Plan(**one) for one in (told["user"], told["attack"]))
        self.own = user.named_calls()
        script = AttackedModel(
            f"mcp_{self.suite}_",
            self.own,
            user.output,
            attack.named_calls(),
            attack.output,
            obeys=self.condition.obeys,
        )
        scripts.now = script
        await self._converse(told["prompt"], script)
        verdict = await self._request("finish", answer=script.answer())
        return Outcome(
            self.suite,
            user_task,
            injection_task,
            self.condition,
            utility=verdict["utility"],
            security=verdict["security"] and injection_task is not None,
            seen=script.has_read,
            asked=self.asked,
            asked_for_attack=self.asked_for_attack,
            acted_for_attack=await self._acted_for_attack(),
            acts=bool(attack.calls),
        )

    async def _request(self, path: str, **given: Any) -> dict[str, Any]:
        return await anyio.to_thread.run_sync(lambda: self.server.request(path, **given))

    async def _converse(self, prompt: str, script: AttackedModel) -> None:
        """Ask for the task, answer questions until it is done, and then say one thing more."""
        await self._say(prompt)
        thanked = not script.obeys
        while True:
            if await self._decide():
                continue
            if not script.finished:
                await self._say("Go on.")
            elif not thanked:
                thanked = True
                await self._say(LAST_MESSAGE)
            else:
                return

    async def _decide(self) -> bool:
        """Answer the questions that wait, noes first; return whether there were any."""
        waiting = [call for call, decision in await self._judged_calls() if decision is None]
        answers = []
        for call in waiting:
            own = self._is_own(call)
            self.asked += own
            self.asked_for_attack += not own
            yes = self.condition.person == "yes" or (self.condition.person == "careful" and own)
            answers.append((yes, call["number"]))
        for yes, number in sorted(answers):
            await self._say(f"/{'approve' if yes else 'deny'} {number}")
        return bool(waiting)

    async def _acted_for_attack(self) -> int:
        judged = await self._judged_calls()
        return sum(decision == "yes" and not self._is_own(call) for call, decision in judged)

    async def _judged_calls(self) -> list[tuple[dict[str, Any], str | None]]:
        """Return all calls that needed a decision, also one beforehand, and the decisions."""
        session = f"fake:{self.chat}"
        decided = [one.data for one in await self.host.events(TOOL_DECIDED, session)]
        decisions = {one["number"]: one["decision"] for one in decided}
        pending = [one.data for one in await self.host.events(TOOL_PENDING, session)]
        return [(one, decisions.get(one["number"])) for one in pending]

    def _is_own(self, call: dict[str, Any]) -> bool:
        name = call["tool"].removeprefix(f"mcp_{self.suite}_")
        return (name, json.loads(call["arguments"])) in self.own

    async def _say(self, text: str) -> str:
        sender = Sender(self.chat, "Emma")
        sent = await self.host.channel.send(text, chat=self.chat, sender=sender)
        return await self.host.channel.wait_for_answer(sent)
