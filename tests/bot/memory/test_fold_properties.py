"""Whatever was done in a session: opened from its tape's tail it is what the whole of the tape says."""

from __future__ import annotations

import itertools
from dataclasses import fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.core.errors import ContextOverflow
from bot.llm.base import ModelRequest
from bot.memory.session.state.fold_loader import load_fold, load_resumed_entries
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    ScriptStep,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)

MESSAGES, TOKENS = 8, 400
CACHES = {"_said", "_open", "_inside", "_conversation"}
BOUNDS = HostLimits(
    window=4, view_messages=MESSAGES, view_tokens=TOKENS, retention_days=3, group_context=4
)
ACTIONS = (
    *("hi", "word " * 12, "word " * 60, "EDIT", "OVERHEARD", "TOOLS", "NOTE", "FAIL", "OVERFLOW")
    * 2,
    *("/memory add I like {n}", "/memory undo", "/memory pause", "/memory clear yes", "/new now"),
    *("/problem new P{n}", "/problem switch P1", "/problem switch general", "/problem pause") * 2,
    *("/problem note ask {n}?", "/reference set key {n}", "hour", "day", "restart", "restart"),
    *("/remind in 5 hours {n}", "/remind every day at 09:00 {n}", "/schedules off 1"),
    *("/timezone Asia/Kolkata", "/quiet 22:00 07:00"),
)


def _turn(request: ModelRequest) -> ScriptStep:
    last = request.messages[-1]
    text = str(last["content"])
    if last["role"] != "user":
        return text_reply("done")
    if "OVERFLOW" in text and len(request.messages) > 4:
        return ContextOverflow("prompt too long")
    if "FAIL" in text:
        return ContextOverflow("prompt too long")
    if "TOOLS" in text:
        return tool_call_reply(("memory_show", {}), ("memory_recall", {"query": "word"}))
    if "NOTE" in text:
        return tool_call_reply(("memory_daily", {"content": "noted"}))
    return text_reply("I see")


class Session:
    """A chat in which anything is done, and whose tape is then read in two ways."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, ManualClock()
        self.model = ScriptedModel(
            _turn, consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] They talked.")
        )
        self._numbers = itertools.count(1)
        self._last = ""

    async def live(self, todo: list[str]) -> None:
        left = [*todo, "restart", "hi"]
        while left:
            bounds = {"bounds": BOUNDS, "clock": self.clock}
            async with session_host(self.folder, self.model, **bounds) as host:
                while left and (action := left.pop(0)) != "restart":
                    await self._do(host, action)
                await self._agree(host)

    async def _do(self, host: Host, action: str) -> None:
        if action in ("hour", "day"):
            self.clock.advance(3_600 if action == "hour" else 86_400)
            return
        number = f"n{next(self._numbers)}"
        text = action.replace("{n}", number)
        more: dict[str, Any] = {"message_id": number}
        if action == "OVERHEARD":
            await host.channel.send(text, asks=False, **more)
            return
        if action == "EDIT" and self._last:
            await host.channel.send("hi again", edits=self._last, **more)
            return
        self._last = number
        await host.channel.wait_for_answer(await host.channel.send(text, **more))

    async def _agree(self, host: Host) -> None:
        """See that the tape's tail and the whole of it say the same, and that the view is bounded."""
        await host.bus.drain()
        tape = TapeService(host.store, "fake:1")
        tail = await load_fold(tape)
        whole = SessionFold()
        for entry in await tape.read_entries(1, tail.version):
            whole.apply(entry)
        await load_resumed_entries(tape, whole.window)
        assert state(tail) == state(whole)
        assert {problem_of(one) for one in whole.window.conversation()} <= {whole.problem}


def state(value: Any) -> Any:
    """All that a fold holds, as plain values; caches are left out."""
    if is_dataclass(value) and not isinstance(value, (type, TapeEntry)):
        names = {one.name for one in fields(value)} - CACHES
        return {name: state(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: state(one) for key, one in value.items()}
    if isinstance(value, list):
        return [state(one) for one in value]
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=30))
def test_opened_from_its_tail_a_tape_says_what_a_fold_over_the_whole_says(todo):
    with TemporaryDirectory() as folder:
        anyio.run(Session(Path(folder)).live, todo)
