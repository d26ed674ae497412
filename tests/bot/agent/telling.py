"""What a person says in a chat, what they are told, and what the model was shown of it."""

from __future__ import annotations

import itertools
from typing import Any

from bot.bus import Sender
from bot.testing.host import Host
from bot.testing.scripted_model import ScriptedModel

BOB, EVE = Sender("8", "Bob"), Sender("9", "Eve")
GROUP: dict[str, Any] = {"chat": "-1", "private": False}
DAY = 86_400
_NUMBERS = itertools.count(1)


async def say(host: Host, text: str, **more: Any) -> str:
    """Say something; return what is told. No id comes twice, also over restarts."""
    sent = await host.channel.send(text, **{"message_id": f"said-{next(_NUMBERS)}", **more})
    return await host.channel.wait_for_answer(sent)


async def talk(host: Host, *lines: tuple[str, ...], **more: Any) -> None:
    """Say the first text of each line; what is told has the others in it."""
    for said, *parts in lines:
        told = await say(host, said, **more)
        assert [part for part in parts if part not in told] == [], (said, told)


def pressed(host: Host) -> list[tuple[str, str]]:
    """Return the buttons below the newest answer."""
    return [(one.label, one.command) for one in host.channel.answers[-1].buttons]


def shown(model: ScriptedModel) -> str:
    """Return all that the newest prompt of a turn shows."""
    return "\n".join(str(one["content"]) for one in model.requests_for("turn")[-1].messages)


async def results(host: Host, session: str = "fake:1") -> list[str]:
    """Return what the tools told the model."""
    entries = await host.tape(session)
    return [str(one.payload["content"]) for one in entries if one.kind == "tool_result"]
