"""The model contract: what a model of a package promises to whoever calls it.

A test class of yours inherits it, and creates the model; see ``docs/plugins.md``.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace

import anyio
import anyio.lowlevel

from bot.core.errors import ModelError
from bot.llm.base import CapabilityProfile, Model, ModelReply, ModelRequest
from bot.llm.model_checks import check_model

_SECONDS = 120.0
_FINISHED = ("stop", "tool_calls", "length", "content_filter")
_REQUEST = ModelRequest(
    [
        {"role": "system", "content": "You are an assistant."},
        {"role": "user", "content": "Say hello."},
    ]
)


class ModelContract:
    """Tests of a model; each creates its own."""

    def create(self) -> Model:
        """Return the model, as it is at the start of a process."""
        raise NotImplementedError

    async def test_it_says_what_it_is(self) -> None:
        model = self.create()
        assert model.name
        assert isinstance(model.profile, CapabilityProfile)
        assert model.profile.context_tokens > 0
        await model.aclose()

    async def test_it_answers_and_says_how_it_ended_and_what_it_used(self) -> None:
        reply = await self._reply()
        assert isinstance(reply, ModelReply)
        assert reply.content.strip()
        assert reply.finish_reason in _FINISHED
        assert reply.usage.prompt_tokens >= 0
        assert reply.usage.cost is None or reply.usage.cost >= 0

    async def test_a_stream_grows_to_the_answer(self) -> None:
        texts: list[str] = []
        model = self.create()
        with anyio.fail_after(_SECONDS):
            reply = await model.complete(_REQUEST, texts.append)
        await model.aclose()
        assert texts, "on_text is called with the whole text so far"
        assert texts[-1] == reply.content
        assert all(later.startswith(text) for text, later in itertools.pairwise(texts))

    async def test_it_can_do_what_its_profile_says(self) -> None:
        model = self.create()
        checks = (await check_model(model, seconds=_SECONDS)).checks
        await model.aclose()
        bad = [f"{check.name}: {check.detail}" for check in checks if check.is_bad]
        assert not bad, bad

    async def test_an_empty_message_is_answered_or_a_model_error(self) -> None:
        model = self.create()
        odd = replace(_REQUEST, messages=[{"role": "user", "content": ""}])
        with anyio.fail_after(_SECONDS), suppress(ModelError):
            await model.complete(odd)
        await model.aclose()

    async def test_a_cancelled_call_leaves_it_usable_and_it_may_be_closed_twice(self) -> None:
        model = self.create()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(model.complete, _REQUEST)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(_SECONDS):
            assert (await model.complete(_REQUEST)).content.strip()
        await model.aclose()
        await model.aclose()

    async def _reply(self) -> ModelReply:
        model = self.create()
        with anyio.fail_after(_SECONDS):
            reply = await model.complete(_REQUEST)
        await model.aclose()
        return reply
