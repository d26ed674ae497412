"""A model that replies from a script and records its requests.

A script is a function from the request to a step, or a sequence with one step per call. Each
purpose (turn, consolidation, summary, judgement) has its own script, so that background work does
not consume steps of a turn.
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
"""Usage that each reply of the helpers below reports."""


@dataclass(slots=True, eq=False)
class PausedStep:
    """A step that waits for the test.

    Attributes:
        then: The step after the release.
        partial: Text streamed before the wait.
        entered: Set when the call waits.
        release: Set by the test to continue.
    """

    then: ModelReply | Exception
    partial: str = ""
    entered: anyio.Event = field(default_factory=anyio.Event)
    release: anyio.Event = field(default_factory=anyio.Event)


ScriptStep = ModelReply | Exception | PausedStep
Script = Callable[[ModelRequest], ScriptStep] | Iterable[ScriptStep]

_numbers = itertools.count(1)


def text_reply(text: str, *, finish_reason: str = "stop", usage: Usage = USAGE) -> ModelReply:
    """Return a reply with plain text."""
    return ModelReply(text, finish_reason=finish_reason, usage=usage, model="scripted")


def tool_call_reply(
    *wanted: tuple[str, dict[str, Any] | str], text: str = "", finish_reason: str = "tool_calls"
) -> ModelReply:
    """Return a reply that calls tools, each a name and arguments; a string is sent verbatim."""
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
    """Return a ``memory_save`` call that adds facts to long-term memory, which rest on what is answered."""
    return "memory_save", {"changes": [{"op": "add", "text": one} for one in texts]}


def consolidation_reply(history: str, *changes: dict[str, Any]) -> ModelReply:
    """Return the reply to a consolidation; ``fact_change`` makes the changes."""
    return tool_call_reply(("save_memory", {"history_entry": history, "changes": list(changes)}))


def fact_change(
    text: str, *quotes: str, op: str = "add", facts: Iterable[int] = (), about: str = ""
) -> dict[str, Any]:
    """Return a change of facts that quotes people's words."""
    told = {"op": op, "facts": list(facts), "text": text, "about": about, "quotes": list(quotes)}
    return {name: value for name, value in told.items() if value}


def judgement_reply(
    request: ModelRequest, ruling: Callable[[dict[str, Any]], str | tuple[str, list[int]]]
) -> ModelReply:
    """Return the reply of a judge.

    Args:
        request: The request with the claims.
        ruling: Returns the ruling on a claim, given its JSON object, perhaps with the numbers of the
            facts that it ends; by default a supported claim ends what it is to replace.
    """
    lines = str(request.messages[-1]["content"]).splitlines()
    told = []
    for line in lines:
        if line.startswith("{"):
            claim = json.loads(line)
            given = ruling(claim)
            named = [fact["number"] for fact in claim.get("replaces", ())]
            said, ends = (given, named) if isinstance(given, str) else given
            ends = ends if said == "supported" else []
            told.append(
                {"number": claim["number"], "short_reason": "", "ruling": said, "ends": ends}
            )
    return tool_call_reply(("judge_claims", {"rulings": told}))


class ScriptedModel:
    """A ``bot.llm.base.Model`` that follows scripts.

    If a script has no further step, the call fails with ``ModelRejected``, so that an unexpected
    call shows in the test's chat.

    Attributes:
        requests: All requests, in the order of the calls.

    Args:
        turn: Script of turns.
        consolidation: Script of consolidations.
        summary: Script of summaries.
        judgement: Script of judgements; without one the model cannot judge.
        profile: Capabilities of the model.
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
        """The capabilities given to the constructor."""
        return self._profile

    def requests_for(self, purpose: Purpose = "turn") -> list[ModelRequest]:
        """Return the requests of one purpose."""
        return [request for request in self.requests if request.purpose == purpose]

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Record the request and return the next step of its script."""
        self.requests.append(request)
        step = self._next[request.purpose](request)
        if isinstance(step, PausedStep):
            if step.partial and on_text is not None:
                on_text(step.partial)
            step.entered.set()
            await step.release.wait()
            step = step.then
        # Yield to other tasks, as a real model would.
        await anyio.lowlevel.checkpoint()
        if isinstance(step, Exception):
            raise step
        if step.content and on_text is not None:
            on_text(step.content)
        return step

    async def aclose(self) -> None:
        """Do nothing: there are no resources to close."""


def _stepper(script: Script) -> Callable[[ModelRequest], ScriptStep]:
    if callable(script):
        return script
    steps: Iterator[ScriptStep] = iter(script)
    spent = ModelRejected("the script has no further step", of_content=False)
    return lambda _: next(steps, spent)
