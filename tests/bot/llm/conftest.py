"""A provider over a real socket, for tests of LiteLLMModel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import anyio
import pytest
from litellm_rig import KEY, NAME

from bot.llm.litellm import LiteLLMModel
from bot.llm.profiles import profile_for
from testkit.openai_server import Script, ScriptedOpenAI

Setup = Callable[..., "anyio.abc.Awaitable[tuple[LiteLLMModel, ScriptedOpenAI]]"]


@pytest.fixture
async def provider() -> AsyncIterator[Setup]:
    """Give a function that starts a provider with a script and returns a model of it."""
    async with AsyncExitStack() as stack:

        async def start(script: Script, key=KEY, name=NAME, timeout=10.0):
            server = await stack.enter_async_context(ScriptedOpenAI(script))
            model = LiteLLMModel(
                name,
                api_base=server.base_url,
                api_key=key,
                timeout=timeout,
                profile=profile_for(name),
            )
            stack.push_async_callback(model.aclose)
            return model, server

        with anyio.fail_after(60):
            yield start
