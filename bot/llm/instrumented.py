"""Record every model call in metrics and traces: duration, outcome, usage."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar, cast

from bot.core.telemetry import metrics
from bot.core.telemetry.tracing import span
from bot.llm.base import Model, ModelReply, ModelRequest, OnText

CompleteT = TypeVar("CompleteT", bound=Callable[..., Coroutine[Any, Any, ModelReply]])


def instrumented(complete: CompleteT) -> CompleteT:
    """Decorate an adapter's ``complete`` to record each call; each retry counts as a call."""

    @wraps(complete)
    async def call(self: Model, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        began, outcome = time.perf_counter(), "cancelled"
        try:
            with span("model", model=self.name, purpose=request.purpose) as here:
                reply = await complete(self, request, on_text)
                usage = reply.usage
                here.set(
                    input_tokens=usage.prompt_tokens,
                    cached_tokens=usage.cached_tokens,
                    output_tokens=usage.completion_tokens,
                    finish=reply.finish_reason,
                )
            outcome = "ok"
        except Exception as error:
            outcome = metrics.outcome_of(error)
            metrics.count_error("model", error)
            raise
        finally:
            metrics.MODEL_SECONDS.observe(time.perf_counter() - began, self.name, outcome)
        _count(self.name, request.purpose, reply)
        return reply

    return cast(CompleteT, call)


def _count(model: str, purpose: str, reply: ModelReply) -> None:
    usage = reply.usage
    metrics.MODEL_TOKENS.add(usage.prompt_tokens, model, purpose, "input")
    metrics.MODEL_TOKENS.add(usage.cached_tokens, model, purpose, "cached")
    metrics.MODEL_TOKENS.add(usage.completion_tokens, model, purpose, "output")
    if usage.cost is None:
        metrics.MODEL_UNPRICED.add(1, model)
    else:
        metrics.MODEL_COST.add(usage.cost, model, purpose)
