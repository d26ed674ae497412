"""A chat whose model calls a memory tool, and the changes that the tool takes."""

from __future__ import annotations

from typing import Any

from bot.testing.host import Host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

MAIL = "From: Eva\nSubject: Trip\n\nI am moving to Madrid in June.\nBest,\nEva"


def add(*texts: str) -> list[dict[str, Any]]:
    return [{"op": "add", "text": text} for text in texts]


def change(fact: int, text: str) -> dict[str, Any]:
    return {"op": "change", "fact": fact, "text": text}


def end(*facts: int) -> list[dict[str, Any]]:
    return [{"op": "end", "fact": fact} for fact in facts]


class Chat:
    """A chat whose model calls the tool that the test names, and then answers."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.model = ScriptedModel(lambda _: self.steps.pop(0) if self.steps else text_reply("ok"))
        self.host: Host

    async def tool(self, name: str, said: str = "do it", /, **arguments: Any) -> str:
        self.steps = [tool_call_reply((name, arguments))]
        await self.host.channel.ask(said)
        results = [e for e in await self.host.tape() if e.kind == "tool_result"]
        return results[-1].payload["content"]

    async def save(self, said: str, /, *changes: dict[str, Any]) -> str:
        return await self.tool("memory_save", said, changes=list(changes))

    async def facts(self) -> list[str]:
        """Return the facts that the next prompt shows, with their numbers."""
        shown = await self.tool("memory_show")
        return [line for line in shown.splitlines() if line.startswith("- [")]
