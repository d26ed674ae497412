"""Model adapter of the offline responder."""

from __future__ import annotations

import json

import anyio
import anyio.to_thread

from bot.agent.texts import MODEL_LANGUAGE
from bot.core.i18n import use_language
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
from bot.offline.request_parser import chat_message_text
from bot.offline.turn import TurnStep, next_step

_CHUNKS = 40


class OfflineModel:
    """A model that answers from memory by rules, without language model, network or state.

    It reads only the request and acts only through tool calls, like a language model. The same
    request in the same language always has the same reply.
    """

    @property
    def name(self) -> str:
        """Name of the model."""
        return "offline"

    @property
    def profile(self) -> CapabilityProfile:
        """Capabilities of the model."""
        return CapabilityProfile(tools=True, context_tokens=128_000, can_judge=False)

    @instrumented
    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Return the reply; never fails, whatever the request holds.

        Args:
            request: Messages, tools and purpose.
            on_text: Called with the text so far, longer each time.
        """
        step = await anyio.to_thread.run_sync(_decide, request)
        if on_text is not None and step.text:
            _stream(step.text, on_text)
        calls = tuple(
            ToolCall(
                f"offline-{len(request.messages)}-{at}",
                name,
                json.dumps(arguments, ensure_ascii=False),
            )
            for at, (name, arguments) in enumerate(step.calls)
        )
        return ModelReply(
            content=step.text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=_usage(request, step.text, calls),
            model=self.name,
            cache_reported=False,
        )

    async def aclose(self) -> None:
        """Do nothing: the model holds no resources."""


def _decide(request: ModelRequest) -> TurnStep:
    if request.purpose in ("summary", "consolidation"):
        # What is kept on the tape for models is in their language.
        with use_language(MODEL_LANGUAGE):
            return _record(request)
    return next_step(request)


def _record(request: ModelRequest) -> TurnStep:
    if request.purpose == "summary":
        return TurnStep(text=summarise(request))
    output = consolidate(request)
    arguments = {
        "history_entry": output.history_entry,
        "changes": [operation.as_json() for operation in output.operations],
    }
    return TurnStep(calls=(("save_memory", arguments),))


def _stream(text: str, on_text: OnText) -> None:
    """Stream the text by words; long texts in about forty pieces, so that the cost is linear."""
    ends = [at for at, char in enumerate(text) if char.isspace()]
    every = max(1, len(ends) // _CHUNKS)
    for end in ends[every - 1 :: every]:
        on_text(text[:end])
    on_text(text)


def _usage(request: ModelRequest, text: str, calls: tuple[ToolCall, ...]) -> Usage:
    prompt = sum(estimate_tokens(chat_message_text(message)) for message in request.messages)
    written = estimate_tokens(text + "".join(call.arguments for call in calls))
    return Usage(prompt_tokens=prompt, completion_tokens=written, cost=0.0, calls=1)
