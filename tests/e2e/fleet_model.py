"""The model of a fleet: it answers with the tokens of what it was asked, and knows who asked."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
from platform_stage import TOKEN, now, unanswered

from testkit.openai_server import Reply, ScriptedOpenAI

_FILLER = "this is what I would say to that, with some words so that it is worth to be streamed. "
KEY = "key-of-"
"""Begins the keys, each of which ends with the name of a process."""

_BEARER = f"Bearer {KEY}"


class FleetModel:
    """Answers after a while; each process has a key of its own, which names it."""

    def __init__(self, chance: random.Random, latency: tuple[float, float] = (0.05, 0.3)) -> None:
        self.server = ScriptedOpenAI(self._answer)
        self.asked = 0
        self.asker: dict[str, str] = {}
        self.asked_at: dict[str, float] = {}
        self.on_asked: Callable[[str, list[str]], None] = lambda _who, _tokens: None
        self.reply_for: Callable[[dict[str, Any]], Reply | None] = lambda _request: None
        self._chance = chance
        self._latency = latency

    def _answer(self, request: dict[str, Any]) -> Reply:
        who = self.server.headers[-1].get("authorization", "").removeprefix(_BEARER)
        # They grow with the conversations.
        self.server.requests.clear()
        self.server.headers.clear()
        self.asked += 1
        tokens = unanswered(request["messages"])
        self.asker.update(dict.fromkeys(tokens, who))
        self.asked_at.update(dict.fromkeys(tokens, now()))
        self.on_asked(who, tokens)
        gate = anyio.Event()
        asyncio.get_running_loop().call_later(self._chance.uniform(*self._latency), gate.set)
        if (reply := self.reply_for(request)) is not None:
            return replace(reply, gate=gate)
        numbers = ", ".join(token[1:] for token in tokens)
        text = f"About {numbers}: {_FILLER}{' '.join(tokens)}"
        assert TOKEN.search(text) or not tokens
        return Reply(text, piece=len(text) // 2, gate=gate)
