"""A model that says what a test has written down, and remembers what it was asked.

A script is a function from the request to a step, or a sequence of steps, one for each call. Each
purpose (turn, consolidation, summary) has a script of its own, so that what runs in the background
does not take what is meant for a turn.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from bot.core.errors import ModelRejected
from bot.llm.base import (
    CapabilityProfile,
    ModelReply,
    ModelRequest,
    OnText,
    Purpose,
    ToolCall,
    Usage,
)

USAGE = Usage(prompt_tokens=10, cached_tokens=4, completion_tokens=5, cost=0.001, calls=1)
"""What each reply of the helpers below says that it consumed."""


@dataclass(slots=True, eq=False)
class PausedStep:
    """A step that waits for the test.

    Attributes:
        then: What follows once it is released.
        partial: Text streamed before the wait.
        entered: Set when the call has come this far.
        release: Set by the test.
    """

    then: ModelReply | Exception
    partial: str = ""
    entered: anyio.Event = field(default_factory=anyio.Event)
    release: anyio.Event = field(default_factory=anyio.Event)


ScriptStep = ModelReply | Exception | PausedStep
Script = Callable[[ModelRequest], ScriptStep] | Iterable[ScriptStep]

_numbers = itertools.count(1)


def text_reply(text: str, *, finish_reason: str = "stop", usage: Usage = USAGE) -> ModelReply:
    """Return a reply in plain text."""
    return ModelReply(text, finish_reason=finish_reason, usage=usage, model="scripted")


def tool_call_reply(
    *wanted: tuple[str, dict[str, Any] | str], text: str = "", finish_reason: str = "tool_calls"
) -> ModelReply:
    """Return a reply that calls tools, each given by name and arguments (text as it is)."""
    made = tuple(
        ToolCall(
            f"call-{next(_numbers)}",
            name,
            arguments if isinstance(arguments, str) else json.dumps(arguments),
        )
        for name, arguments in wanted
    )
    return ModelReply(text, made, finish_reason, USAGE, "scripted")


def memory_save_call(*texts: str) -> tuple[str, dict[str, Any]]:
    """Return the call that adds facts to long-term memory."""
    return "memory_save", {"changes": [{"op": "add", "text": one} for one in texts]}


def consolidation_reply(history: str, *operations: dict[str, Any]) -> ModelReply:
    """Return the answer to a consolidation; operations as ``learns`` makes them."""
    return tool_call_reply(
        ("save_memory", {"history_entry": history, "operations": list(operations)})
    )


def fact_operation(
    text: str | None,
    quote: str,
    message: int = 1,
    *,
    op: str = "add",
    fact: int | None = None,
    subject: str | None = None,
) -> dict[str, Any]:
    """Return an operation that cites one message."""
    evidence = [{"message": message, "quote": quote}]
    return {"op": op, "fact": fact, "text": text, "subject": subject, "evidence": evidence}


def judgement_reply(request: ModelRequest, ruling: Callable[[dict[str, Any]], str]) -> ModelReply:
    """Return the answer of a judge.

    Args:
        request: Asks it.
        ruling: Given a claim as the request has it, says what the judge does.
    """
    lines = str(request.messages[-1]["content"]).splitlines()
    claims = [json.loads(line) for line in lines if line.startswith("{")]
    told = [{"number": one["number"], "reason": "", "ruling": ruling(one)} for one in claims]
    return tool_call_reply(("judge_claims", {"rulings": told}))


class ScriptedModel:
    """A ``bot.llm.base.Model`` that follows scripts.

    Where a script has no further step, the call is refused with ``ModelRejected``, so that a call
    that a test did not expect shows in its chat.

    Attributes:
        requests: Every request, in the order of the calls.

    Args:
        turn: Script of turns.
        consolidation: Script of consolidations.
        summary: Script of summaries.
        judgement: Script of judgements; without one the model cannot judge.
        profile: What the model says that it can do.
    """

    def __init__(
        self,
        turn: Script = (),
        *,
        consolidation: Script = (),
        summary: Script = (),
        judgement: Script | None = None,
        profile: CapabilityProfile | None = None,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self._profile = replace(profile or CapabilityProfile(), can_judge=judgement is not None)
        scripts: Mapping[Purpose, Script] = {
            "turn": turn,
            "consolidation": consolidation,
            "summary": summary,
            "judgement": judgement or (),
        }
        self._next = {purpose: _stepper(script) for purpose, script in scripts.items()}

    @property
    def name(self) -> str:
        """The name that ``/status`` shows."""
        return "scripted"

    @property
    def profile(self) -> CapabilityProfile:
        """What it was said to be able to do."""
        return self._profile

    def requests_for(self, purpose: Purpose = "turn") -> list[ModelRequest]:
        """Return the requests of one purpose."""
        return [request for request in self.requests if request.purpose == purpose]

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Take the next step of the request's script."""
        self.requests.append(request)
        step = self._next[request.purpose](request)
        if isinstance(step, PausedStep):
            if step.partial and on_text is not None:
                on_text(step.partial)
            step.entered.set()
            await step.release.wait()
            step = step.then
        # A real model takes its time: others run before it answers.
        await anyio.lowlevel.checkpoint()
        if isinstance(step, Exception):
            raise step
        if step.content and on_text is not None:
            on_text(step.content)
        return step

    async def aclose(self) -> None:
        """Nothing is held."""


def _stepper(script: Script) -> Callable[[ModelRequest], ScriptStep]:
    if callable(script):
        return script
    steps: Iterator[ScriptStep] = iter(script)
    spent = ModelRejected("the script has no further step")
    return lambda _: next(steps, spent)
