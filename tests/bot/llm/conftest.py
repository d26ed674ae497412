"""A provider over a real socket, for tests of the clients that call models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import anyio
import pytest
from model_rig import KEY, NAME, make_model

from bot.llm.base import Model
from testkit.openai_server import Script, ScriptedOpenAI

Setup = Callable[..., "anyio.abc.Awaitable[tuple[Model, ScriptedOpenAI]]"]


@pytest.fixture(params=["http", "litellm"])
def client(request) -> str:
    return request.param


@pytest.fixture
async def provider(client) -> AsyncIterator[Setup]:
    """Give a function that starts a provider with a script and returns a model of it."""
    async with AsyncExitStack() as stack:

        async def start(script: Script, key=KEY, name=NAME, timeout=10.0):
            server = await stack.enter_async_context(ScriptedOpenAI(script))
            model = make_model(client, name, server.base_url, key, timeout)
            stack.push_async_callback(model.aclose)
            return model, server

        with anyio.fail_after(60):
            yield start
