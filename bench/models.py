"""Models that answer at once, in process: what is left of a turn is the program's own cost."""

from __future__ import annotations

import json
import re
from itertools import count

from bench.workload import reply
from bot.llm.base import CapabilityProfile, ModelReply, ModelRequest, OnText, ToolCall, Usage

_SAVES_EACH = 12
_SAID = re.compile(r"^#(\d+) .*? USER \([^)]*\): (Message \d+: [^.]*\.)", re.MULTILINE)
_FIRST = re.compile(r"Message \d+: [^.]*\.")


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
        self._numbers = count(1)

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Answer; the text is streamed as one piece."""
        if request.purpose == "consolidation":
            return self._consolidate(request)
        self.last = request
        text = reply(next(self._numbers))
        if on_text is not None:
            on_text(text)
        return ModelReply(text, usage=Usage(100, 0, 40, calls=1), model=self.name)

    async def aclose(self) -> None:
        """Hold nothing."""

    def _consolidate(self, request: ModelRequest) -> ModelReply:
        self.consolidations += 1
        history = "[2026-01-02 10:00] The boat, the trip and the budget were talked over."
        found = _SAID.search(str(request.messages[-1]["content"]))
        operations = [] if found is None else [_added(int(found[1]), found[2])]
        return self._call("save_memory", {"history_entry": history, "operations": operations})

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
            return self._consolidate(request)
        self.prompts.append(json.dumps(request.messages, ensure_ascii=False))
        self.heads.append(json.dumps(request.messages[:2], ensure_ascii=False))
        if request.messages[-1]["role"] == "user":
            self._turns += 1
            if self._turns % _SAVES_EACH == 0:
                said = _FIRST.search(str(request.messages[-1]["content"]))
                text = said[0] if said else "Something was said."
                return self._call("memory_save", {"changes": [{"op": "add", "text": text}]})
        return await super().complete(request, on_text)


def _added(message: int, said: str) -> dict[str, object]:
    evidence = [{"message": message, "quote": said}]
    return {"op": "add", "fact": None, "text": said, "subject": None, "evidence": evidence}
