"""Models that answer at once, in process: what is left of a turn is the program's own cost."""

from __future__ import annotations

import json
import re
from itertools import count

from bench.workload import reply
from bot.llm.base import CapabilityProfile, ModelReply, ModelRequest, OnText, ToolCall, Usage

_SAID = re.compile(r"^#(\d+) .*? USER \([^)]*\): (Message \d+: [^.]*\.)", re.MULTILINE)
_HISTORY = "[2026-01-02 10:00] The boat, the trip and the budget were talked over."


class InstantModel:
    """Answers at once, and consolidates when asked: to a new fact where it learns."""

    name = "instant"
    profile = CapabilityProfile(context_tokens=100_000_000)

    def __init__(self, *, learns: bool = True) -> None:
        self._learns = learns
        self._numbers = count(1)

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Answer; the text is streamed as one piece."""
        if request.purpose == "consolidation":
            return self._consolidate(request)
        text = reply(next(self._numbers))
        if on_text is not None:
            on_text(text)
        return ModelReply(text, usage=Usage(100, 0, 40, calls=1), model=self.name)

    async def aclose(self) -> None:
        """Hold nothing."""

    def _consolidate(self, request: ModelRequest) -> ModelReply:
        if not request.tools or request.tools[0].name != "save_memory":
            # It continues the conversation.
            answer = json.dumps({"history_entry": _HISTORY, "changes": []})
            return ModelReply(answer, usage=Usage(100, 0, 40, calls=1), model=self.name)
        found = _SAID.search(str(request.messages[-1]["content"]))
        changes = [_added(found[2])] if found and self._learns else []
        kept = {"history_entry": _HISTORY, "changes": changes}
        call = ToolCall("call_1", "save_memory", json.dumps(kept))
        return ModelReply("", (call,), "tool_calls", Usage(100, 0, 40, calls=1), self.name)


def _added(said: str) -> dict[str, object]:
    return {"op": "add", "text": said, "quotes": [said]}
