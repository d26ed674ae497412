"""Wait until a session owes nothing, and tell what its model was shown last."""

from __future__ import annotations

import json

from bot.llm.base import ModelRequest
from bot.testing.host import Host
from bot.testing.scripted_model import ScriptedModel


async def settled(host: Host) -> None:
    """Wait until nothing accepted is owed anything."""
    await host.wait_for_pending(0)


def shown(model: ScriptedModel) -> list[str]:
    """Return what the newest request shows of the conversation."""
    return [str(message["content"]) for message in model.requests_for()[-1].messages[1:]]


def whole(request: ModelRequest) -> str:
    """Return everything that a request shows."""
    return json.dumps(list(request.messages), ensure_ascii=False, default=str)


def last(model: ScriptedModel) -> str:
    """Return everything that the newest request shows."""
    return whole(model.requests_for()[-1])
