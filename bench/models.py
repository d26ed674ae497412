"""Models that answer at once, in process: what is left of a turn is the program's own cost."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import count

from bench.workload import reply
from bot.llm.base import CapabilityProfile, ModelReply, ModelRequest, OnText, ToolCall, Usage

_SAVES_EACH = 12
_LOOKS_UP_EACH = 5
_SAID = re.compile(r"^#(\d+) .*? USER \([^)]*\): (Message \d+: [^.]*\.)", re.MULTILINE)
_HISTORY = "[2026-01-02 10:00] The boat, the trip and the budget were talked over."
_FIRST = re.compile(r"Message \d+: [^.]*\.")


class InstantModel:
    """Answers at once, and consolidates when asked.

    Args:
        learns: Whether its consolidations add a fact.

    Attributes:
        last: The newest request of a turn.
        consolidations: How many it was asked for.
    """

    name = "instant"
    profile = CapabilityProfile(context_tokens=100_000_000)

    def __init__(self, *, learns: bool = True) -> None:
        self.last: ModelRequest | None = None
        self.consolidations = 0
        self._learns = learns
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
        if not request.tools or request.tools[0].name != "save_memory":
            # It continues the conversation.
            answer = json.dumps({"history_entry": _HISTORY, "operations": []})
            return ModelReply(answer, usage=Usage(100, 0, 40, calls=1), model=self.name)
        found = _SAID.search(str(request.messages[-1]["content"]))
        operations = [_added(int(found[1]), found[2])] if found and self._learns else []
        return self._call("save_memory", {"history_entry": _HISTORY, "operations": operations})

    def _call(self, name: str, arguments: dict[str, object]) -> ModelReply:
        call = ToolCall("call_1", name, json.dumps(arguments))
        return ModelReply("", (call,), "tool_calls", Usage(100, 0, 40, calls=1), self.name)


class RememberingModel(InstantModel):
    """Keeps each request of a turn; may save and look something up now and then.

    Args:
        tools: Whether it calls tools: a save in every twelfth turn, a look-up in every fifth.

    Attributes:
        requests: The requests of turns.
    """

    name = "remembering"

    def __init__(self, *, tools: bool = True) -> None:
        super().__init__()
        self.requests: list[ModelRequest] = []
        self._tools = tools
        self._turns = 0

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Answer, or call a tool."""
        if request.purpose == "consolidation":
            return self._consolidate(request)
        self.requests.append(request)
        if self._tools and request.messages[-1]["role"] == "user":
            self._turns += 1
            if self._turns % _SAVES_EACH == 0:
                said = _FIRST.search(str(request.messages[-1]["content"]))
                text = said[0] if said else "Something was said."
                return self._call("memory_save", {"changes": [{"op": "add", "text": text}]})
            if self._turns % _LOOKS_UP_EACH == 0:
                return self._call("memory_recall", {"query": "budget boat trip"})
        return await super().complete(request, on_text)


class CachingModel(InstantModel):
    """Keeps each request, and says that a cache served what it has in common with the one before.

    Attributes:
        requests: The requests of turns and consolidations.
    """

    name = "caching"

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Answer, and tell the usage."""
        before = _size(self.requests[-1]) if self.requests else 0
        self.requests.append(request)
        reply = await super().complete(request, on_text)
        size = _size(request)
        return replace(reply, usage=Usage(size, min(before, size), 40, calls=1))


def _size(request: ModelRequest) -> int:
    return sum(len(str(message["content"])) for message in request.messages) // 4


def _added(message: int, said: str) -> dict[str, object]:
    evidence = [{"message": message, "quote": said}]
    return {"op": "add", "fact": None, "text": said, "subject": None, "evidence": evidence}
