"""Whatever is sent when: each accepted message is settled once, and answered or said why not."""

from __future__ import annotations

import random
from collections import Counter

import anyio
import pytest

from bot.bus import SessionFull
from bot.core.errors import TransientModelError
from bot.llm.base import ModelRequest
from bot.memory.records.turn_marks import turn_end, turn_start
from bot.tape.entries import TapeEntry
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    ScriptStep,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)

BOUNDS = HostLimits(window=10, session_limit=20, view_messages=14, archive_timeout=0.2)
ACTIONS = {
    "hello": 8,
    "remember: the number is {}": 2,
    "/memory add fact {}": 2,
    "/memory undo": 1,
    "/status": 1,
    "/stop": 3,
    "/new": 1,
    "/new now": 1,
    "/nonsense": 1,
}


class Chaos:
    """Sends what dice say to a model that does what dice say."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.held: list[PausedStep] = []
        self.sent: list[str] = []
        self.model = ScriptedModel(
            self._turn, consolidation=self._consolidation, summary=lambda _: text_reply("short")
        )

    def _turn(self, _: ModelRequest) -> ScriptStep:
        chosen = self.dice.random()
        reply: ScriptStep = text_reply("ok")
        if chosen < 0.25:
            reply = tool_call_reply(("memory_show", {}), ("memory_daily", {"content": "x"}))
        elif chosen < 0.3:
            reply = TransientModelError("down")
        return self._maybe_held(reply)

    def _consolidation(self, _: ModelRequest) -> ScriptStep:
        good = consolidation_reply("[2026-02-10 10:00] Talk.")
        return self._maybe_held(good if self.dice.random() < 0.7 else text_reply("prose"))

    def _maybe_held(self, reply: ScriptStep) -> ScriptStep:
        if self.dice.random() < 0.4 and not isinstance(reply, PausedStep):
            self.held.append(PausedStep(reply, partial="so f"))
            return self.held[-1]
        return reply

    async def play(self, host: Host, steps: int) -> None:
        for _ in range(steps):
            [text] = self.dice.choices(list(ACTIONS), list(ACTIONS.values()))
            number = len(self.sent)
            try:
                await host.channel.send(text.format(number), message_id=f"m{number}")
            except SessionFull:
                self.let_go()
                continue
            self.sent.append(f"m{number}")
            if self.dice.random() < 0.3:
                self.let_go()
            for _ in range(self.dice.randrange(12)):
                await anyio.lowlevel.checkpoint()

    def let_go(self) -> None:
        for held in self.held:
            held.release.set()
        self.held.clear()

    async def settle(self, host: Host) -> None:
        """Let everything come to its end."""
        with anyio.fail_after(30):
            while (await host.bus.statistics())["pending"]:
                self.let_go()
                await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    "seed",
    # One of them at each run, all of them among the long proofs.
    [pytest.param(seed, marks=[pytest.mark.slow] if seed else []) for seed in range(6)],
)
async def test_each_message_is_settled_once_whatever_is_sent_when(tmp_path, seed):
    chaos = Chaos(seed)
    for _ in range(3):
        async with session_host(tmp_path, chaos.model, bounds=BOUNDS) as host:
            await chaos.play(host, 15)
            if chaos.dice.random() < 0.5:
                await chaos.settle(host)
    async with session_host(tmp_path, chaos.model, bounds=BOUNDS) as host:
        await chaos.settle(host)
    # Once nothing writes any more: a consolidation runs behind the last answer.
    store = FileTapeStore(tmp_path / "tapes", read_only=True)
    tape = await store.read("fake:1")
    ended = filter(None, map(turn_end, tape))
    ends = Counter(inbound for end in ended for inbound in end.data["inbound"])
    assert ends == dict.fromkeys(chaos.sent, 1)
    _check_tape(tape)
    await store.close()


def _check_tape(tape: list[TapeEntry]) -> None:
    """Ids are dense; turns do not overlap; each call has one result at most; zones are whole."""
    assert [entry.id for entry in tape] == list(range(1, len(tape) + 1))
    results = Counter(e.payload["call_id"] for e in tape if e.kind == "tool_result")
    assert set(results.values()) <= {1}
    opened: str | None = None
    for entry in tape:
        if (start := turn_start(entry)) is not None:
            assert opened is None
            opened = start.data["turn"]
        elif (end := turn_end(entry)) is not None and end.data["turn"] == opened:
            opened = None
    assert opened is None
    seals = [e.data["version"] for e in tape if e.name == "memory/seal"]
    assert seals == sorted(seals)
    assert seals == [e.data["version"] for e in tape if e.name == "memory/open"]
