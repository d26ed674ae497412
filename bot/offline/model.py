"""The offline responder as a model."""

from __future__ import annotations

import json

import anyio
import anyio.to_thread

from bot.llm.base import (
    CapabilityProfile,
    ModelReply,
    ModelRequest,
    OnText,
    ToolCall,
    Usage,
    estimate_tokens,
)
from bot.llm.instrumented import instrumented
from bot.offline.consolidation import consolidate, summarise
from bot.offline.prompt import chat_message_text
from bot.offline.turn import TurnStep, next_step

_CHUNKS = 40


class OfflineModel:
    """Answers from memory by rules: no language model, no network, no state of its own.

    It sees only the request and acts only through tool calls, so that it can stand wherever a
    language model does. The same request always has the same reply.
    """

    @property
    def name(self) -> str:
        """The name a person would know it by."""
        return "offline"

    @property
    def profile(self) -> CapabilityProfile:
        """What it can do."""
        return CapabilityProfile(tools=True, context_tokens=128_000, can_judge=False)

    @instrumented
    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Return the reply; never fails, whatever the request holds.

        Args:
            request: The view, tools and purpose.
            on_text: Called with the whole text so far, a few words more each time.
        """
        done = await anyio.to_thread.run_sync(_decide, request)
        if on_text is not None and done.text:
            _stream(done.text, on_text)
        calls = tuple(
            ToolCall(
                f"offline-{len(request.messages)}-{at}",
                name,
                json.dumps(arguments, ensure_ascii=False),
            )
            for at, (name, arguments) in enumerate(done.calls)
        )
        return ModelReply(
            content=done.text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=_usage(request, done.text, calls),
            model=self.name,
            cache_reported=False,
        )

    async def aclose(self) -> None:
        """Nothing is held."""


def _decide(request: ModelRequest) -> TurnStep:
    if request.purpose == "summary":
        return TurnStep(text=summarise(request))
    if request.purpose == "consolidation":
        made = consolidate(request)
        arguments = {
            "history_entry": made.history_entry,
            "operations": [one.as_json() for one in made.operations],
        }
        return TurnStep(calls=(("save_memory", arguments),))
    return next_step(request)


def _stream(text: str, on_text: OnText) -> None:
    """Give the text word by word; long texts in forty pieces, so that the cost stays linear."""
    ends = [at for at, char in enumerate(text) if char.isspace()]
    every = max(1, len(ends) // _CHUNKS)
    for end in ends[every - 1 :: every]:
        on_text(text[:end])
    on_text(text)


def _usage(request: ModelRequest, text: str, calls: tuple[ToolCall, ...]) -> Usage:
    prompt = sum(estimate_tokens(chat_message_text(message)) for message in request.messages)
    written = estimate_tokens(text + "".join(call.arguments for call in calls))
    return Usage(prompt_tokens=prompt, completion_tokens=written, cost=0.0, calls=1)
