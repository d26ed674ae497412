"""A home with two channels on which one person writes, and others do."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from folded import fold_entries

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.link import link_commands
from bot.bus import Answer, Inbound, Sender
from bot.llm.base import ModelReply, ModelRequest
from bot.memory.records.fact_fold import FactFold
from bot.memory.session.scope.identities import IdentityFold
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    text_reply,
    tool_call_reply,
)

ADA, ELSE = "fake:7", "other:9"
"""Ada's private chat on one channel, and on another."""

_IDS = itertools.count()
_CODE = re.compile(r"`/link ([A-Z0-9-]+)`")
_LEARNS = re.compile(r"^#(\d+) .*?(I (?:like|own) (\w+) a lot\.)", re.MULTILINE)


@dataclass
class Home:
    host: Host
    model: ScriptedModel
    clock: ManualClock
    channels: dict[str, FakeChannel]

    @property
    def bus(self) -> Any:
        return self.host.bus

    async def send(self, where: str, text: str, *, name: str = "", **more: object) -> Inbound:
        """Say something at ``channel:chat``; a private chat is of the person whose id it has."""
        channel, _, chat = where.partition(":")
        sender = Sender(chat, name or f"N{chat}")
        # A platform never gives an id twice, whoever runs.
        told = {"chat": chat, "sender": sender, "role": "member", "message_id": f"n{next(_IDS)}"}
        inbound: Inbound = await self.channels[channel].send(text, **{**told, **more})
        return inbound

    async def ask(self, where: str, text: str, **more: object) -> str:
        channel = self.channels[where.partition(":")[0]]
        return await channel.wait_for_answer(await self.send(where, text, **more))

    async def code(self, where: str) -> str:
        told = _CODE.search(await self.ask(where, "/link"))
        assert told is not None
        return told[1]

    async def join(self, offerer: str, claimer: str) -> str:
        """Join two; return what the one who offered is told at the end."""
        await self.ask(claimer, f"/link {await self.code(offerer)} yes")
        return await self.ask(offerer, "/link confirm")

    async def part(self, where: str) -> str:
        return await self.ask(where, "/unlink yes")

    def told(self, where: str) -> list[Answer]:
        channel, _, chat = where.partition(":")
        return [one for one in self.channels[channel].answers if one.address.chat_id == chat]

    async def until_told(self, where: str, words: str) -> Answer:
        """Return the first answer in a chat that has these words, waiting for it."""
        channel = self.channels[where.partition(":")[0]]
        await channel.wait_until(lambda: any(words in one.text for one in self.told(where)))
        return next(one for one in self.told(where) if words in one.text)

    async def prompt(self, where: str, text: str = "What do you know?", **more: object) -> str:
        before = len(self.model.requests)
        await self.ask(where, text, **more)
        asked = [one for one in self.model.requests[before:] if one.purpose == "turn"]
        return "\n".join(str(one.messages) for one in asked)

    async def scope(self, identity: str) -> FactFold:
        return fold_entries(await self.host.tape(f"person:{identity}"))

    async def facts(self, identity: str) -> set[str]:
        return {one.text for one in (await self.scope(identity)).active()}

    async def people(self) -> IdentityFold:
        found = IdentityFold()
        for entry in await self.host.tape("workspace:people"):
            found.apply(entry)
        return found


def turn(request: ModelRequest) -> ModelReply:
    last = request.messages[-1]
    if last["role"] == "user" and "LOOK" in str(last["content"]):
        return tool_call_reply(
            ("memory_show", {}),
            ("memory_recall", {"query": "like own", "days": 999}),
            ("memory_recall", {}),
            ("memory_recall", {"query": "like own", "kind": "messages"}),
        )
    return text_reply("ok")


def consolidation(request: ModelRequest) -> ModelReply:
    told = _LEARNS.findall(str(request.messages[-1]["content"]))
    operations = [fact_change(f"The user likes {what}.", quote) for _, quote, what in told]
    return consolidation_reply("[2026-02-10 10:00] They talked.", *operations)


@asynccontextmanager
async def home(
    folder: Path,
    *,
    clock: ManualClock | None = None,
    bounds: HostLimits | None = None,
    model: ScriptedModel | None = None,
) -> AsyncIterator[Home]:
    """Run the program with the channels ``fake``, ``other`` and ``third``."""
    clock = clock or ManualClock()
    model = model or ScriptedModel(turn, consolidation=consolidation)
    hosts: list[Host] = []

    async def send(answer: Answer) -> None:
        await hosts[0].bus.send(answer)

    async def language_of(identity: str) -> str:
        return await hosts[0].services.languages.of(identity)

    commands = builtin_commands(link_commands(send, language_of))
    made = session_host(
        folder,
        model,
        clock=clock,
        commands=commands,
        bounds=bounds,
    )
    async with made as host:
        hosts.append(host)
        more = {name: host.add_channel(name) for name in ("other", "third")}
        yield Home(host, model, clock, {"fake": host.channel, **more})
