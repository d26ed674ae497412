"""A model whose calls are counted, and refused when a budget is used up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.agent.notebook import NotebookModel
from bot.agent.spending.decision import BACKGROUND_ROLES, LimitUse
from bot.agent.spending.spending import Spending
from bot.agent.spending.texts import instead_text
from bot.core.errors import ModelError
from bot.llm.base import (
    CapabilityProfile,
    Model,
    ModelReply,
    ModelRequest,
    OnText,
    Usage,
    estimate_tokens,
)
from bot.llm.retry import Warmable
from bot.llm.spender import current_spender

_IMAGE_TOKENS = 1_000
_REPLY_TOKENS = 1_000
"""Tokens of a reply before it is known, unless the request allows fewer."""


class MeteredModel(Model):
    """Count a model's calls, and answer otherwise when the budget is used up.

    Args:
        inner: The model, with its retries and fallbacks.
        spending: Counts.
        cheaper: Answers turns when the budget is used up, else the notebook does; its calls are counted
            and not limited, so it should cost nothing, such as a model on this machine.
    """

    def __init__(
        self,
        inner: Model,
        spending: Spending,
        cheaper: Model | None = None,
    ) -> None:
        self._inner = inner
        self._spending = spending
        self._cheaper = cheaper

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self._inner.name

    @property
    def profile(self) -> CapabilityProfile:
        """The inner model's capabilities."""
        return self._inner.profile

    def cheaper_model(self) -> Model | None:
        """Return the model that answers turns once a budget is used up; None if there is none."""
        return self._cheaper

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call; see ``Model.complete``.

        Raises:
            BudgetReached: A limit forbids the call, and nobody else can answer.
            TapeError: There are limits, and the storage that keeps them failed.
        """
        spender = current_spender()
        role = spender.role or request.purpose
        call = await self._spending.reserve(
            spender, role, self.name, lambda: (prompt_tokens(request), _reply_tokens(request))
        )
        if isinstance(call, LimitUse):
            return await self._answer_otherwise(request, on_text, role, call)
        streamed = ""

        def stream(text: str) -> None:
            nonlocal streamed
            streamed = text
            if on_text is not None:
                on_text(text)

        try:
            reply = await self._inner.complete(request, stream if on_text is not None else None)
        except ModelError:
            # Providers do not bill what they refuse.
            self._spending.settle(call, Usage(calls=1))
            raise
        except BaseException:
            # The provider bills what it read and wrote until the call was cancelled.
            written = estimate_tokens(streamed) if streamed else 0
            self._spending.settle(call, Usage(prompt_tokens(request), 0, written, None, 1))
            raise
        answered = reply.model or self.name
        self._spending.settle(
            call, Usage() if answered == NotebookModel.name else reply.usage, answered
        )
        return reply

    async def warm(self) -> None:
        """Load the model, if it can be loaded ahead of time."""
        if isinstance(self._inner, Warmable):
            await self._inner.warm()

    async def aclose(self) -> None:
        """Close the models."""
        await self._inner.aclose()
        if self._cheaper is not None:
            await self._cheaper.aclose()

    async def _answer_otherwise(
        self, request: ModelRequest, on_text: OnText | None, role: str, use: LimitUse
    ) -> ModelReply:
        refusal = self._spending.refusal(use, role)
        if role in BACKGROUND_ROLES or use.limit.unit == "requests":
            raise refusal
        answered = None
        if (cheaper := self.cheaper_model()) is not None:
            reply = await cheaper.complete(request, on_text)
            answered = reply.model or cheaper.name
            self._spending.count(current_spender(), role, answered, reply.usage)
        elif request.purpose == "turn":
            reply = await NotebookModel(in_place_of_model=True).complete(request, on_text)
        else:
            raise refusal
        if reply.tool_calls or request.purpose != "turn":
            return reply
        told = instead_text(str(refusal), answered)
        return replace(reply, content=f"{reply.content.rstrip()}\n\n{told}".strip())


def _reply_tokens(request: ModelRequest) -> int:
    return min(request.max_tokens or _REPLY_TOKENS, _REPLY_TOKENS)


def prompt_tokens(request: ModelRequest) -> int:
    """Return a cheap estimate of the tokens that a request reads."""
    tools = sum(estimate_tokens(f"{tool.description}{tool.parameters}") for tool in request.tools)
    return tools + sum(_tokens(message) for message in request.messages)


def _tokens(value: Any) -> int:
    if isinstance(value, str):
        return _IMAGE_TOKENS if value.startswith("data:") else estimate_tokens(value)
    if isinstance(value, dict):
        return sum(map(_tokens, value.values()))
    if isinstance(value, list):
        return sum(map(_tokens, value))
    return 0
