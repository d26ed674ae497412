"""The chat in which the tests of the memory tools call them."""

from __future__ import annotations

import pytest
from memory_tool_chat import Chat

from bot.testing.host import HostLimits, session_host


@pytest.fixture
async def chat(tmp_path):
    chat = Chat()
    bounds = HostLimits(retention_days=3)
    async with session_host(tmp_path, chat.model, bounds=bounds) as chat.host:
        yield chat
