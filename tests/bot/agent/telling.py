"""What a person says in a chat, what they are told, and what the model calls and is shown of it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.bus import Sender
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

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
    return [(one.label, one.command) for one in host.channel.answers[-1].buttons]


async def forget(host: Host, words: str) -> str:
    question = await say(host, f"/memory forget {words}")
    await say(host, pressed(host)[0][1])
    return question


def shown(model: ScriptedModel) -> str:
    """Return all that the newest prompt of a turn shows."""
    return "\n".join(str(one["content"]) for one in model.requests_for("turn")[-1].messages)


async def results(host: Host, session: str = "fake:1") -> list[str]:
    entries = await host.tape(session)
    return [str(one.payload["content"]) for one in entries if one.kind == "tool_result"]


class ToolChat:
    """A chat whose model calls the tools that a test names, and then answers."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.model = ScriptedModel(lambda _: self.steps.pop(0) if self.steps else text_reply("ok"))
        self.host: Host

    async def call(self, name: str, said: str = "do it", /, **arguments: Any) -> str:
        """Have the model call a tool in a turn; return what the tool tells it."""
        return await self.call_as({}, name, said, **arguments)

    async def call_as(self, who: dict[str, Any], name: str, said: str, /, **arguments: Any) -> str:
        self.steps = [tool_call_reply((name, arguments))]
        await say(self.host, said, **who)
        return (await results(self.host, f"fake:{who.get('chat', '1')}"))[-1]


@asynccontextmanager
async def tool_chat(folder: Path, **settings: Any) -> AsyncIterator[ToolChat]:
    chat = ToolChat()
    async with session_host(folder, chat.model, **settings) as chat.host:
        yield chat
