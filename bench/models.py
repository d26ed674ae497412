"""Models that answer at once, in process: what is left of a turn is the program's own cost."""

from __future__ import annotations

import json
from itertools import count

from bench.workload import LONG_TERM, reply
from bot.llm.base import CapabilityProfile, ModelReply, ModelRequest, OnText, ToolCall, Usage

_SAVES_EACH = 12


class InstantModel:
    """Answers at once, and consolidates when asked.

    Attributes:
        last: The newest request of a turn.
        consolidations: How many it was asked for.
    """

    name = "instant"
    profile = CapabilityProfile(context_tokens=100_000_000)

    def __init__(self) -> None:
        self.last: ModelRequest | None = None
        self.consolidations = 0
        self._lines = LONG_TERM.splitlines()
        self._numbers = count(1)

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Answer; the text is streamed as one piece."""
        if request.purpose == "consolidation":
            return self._consolidate()
        self.last = request
        text = reply(next(self._numbers))
        if on_text is not None:
            on_text(text)
        return ModelReply(text, usage=Usage(100, 0, 40, calls=1), model=self.name)

    async def aclose(self) -> None:
        """Hold nothing."""

    def _consolidate(self) -> ModelReply:
        self.consolidations += 1
        self._lines.append(f"- Part {self.consolidations} of the plan is settled.")
        history = "[2026-01-02 10:00] The boat, the trip and the budget were talked over."
        update = {"memory_update": "\n".join(self._lines), "removed": []}
        return self._call("save_memory", {"history_entry": history, **update})

    def _call(self, name: str, arguments: dict[str, object]) -> ModelReply:
        call = ToolCall("call_1", name, json.dumps(arguments))
        return ModelReply("", (call,), "tool_calls", Usage(100, 0, 40, calls=1), self.name)


class RememberingModel(InstantModel):
    """Saves a fact now and then, and keeps each prompt of a turn.

    Attributes:
        prompts: The messages of each request of a turn, serialised.
        heads: What stands before the conversation, and its first message: they change when the
            view is cut anew.
    """

    name = "remembering"

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[str] = []
        self.heads: list[str] = []
        self._turns = 0

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Answer, or call a tool."""
        if request.purpose == "consolidation":
            return self._consolidate()
        self.prompts.append(json.dumps(request.messages, ensure_ascii=False))
        self.heads.append(json.dumps(request.messages[:2], ensure_ascii=False))
        if request.messages[-1]["role"] == "user":
            self._turns += 1
            if self._turns % _SAVES_EACH == 0:
                self._lines.append(f"- Decision {self._turns}: the harbour office is called first.")
                return self._call("memory_save", {"content": "\n".join(self._lines)})
        return await super().complete(request, on_text)
