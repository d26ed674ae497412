"""Whatever is done with problems, scopes and time: no problem reads what belongs to another.

Each message and each note carries a marker that nothing else does. After each step, all that a model was
shown for a session holds only markers of the problem that is worked on there, and those of facts, shared
values and beliefs that the session may read. At the end the running state is what the tapes say, and each
belief leads to the words that it rests on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import many
from waiting import until

from bot.bus import Sender
from bot.llm.base import ModelReply, ModelRequest
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_fold, load_resumed_entries
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    text_reply,
    tool_call_reply,
)

MARKER = re.compile(r"zq[a-j]+qz")
_TOLD = re.compile(r"^#(\d+) .*?(I like (zq[a-j]+qz) a lot\.)", re.MULTILINE)
BOUNDS = HostLimits(window=14, view_messages=24)


@dataclass(frozen=True)
class Place:
    """A session."""

    channel: str
    chat: str

    @property
    def private(self) -> bool:
        return self.chat.startswith("p")

    @property
    def session(self) -> str:
        return f"{self.channel}:{self.chat}"

    @property
    def home(self) -> str:
        return f"person:{self.channel}:{self.chat[1:]}" if self.private else self.session


PLACES = (Place("fake", "p1"), Place("fake", "p2"), Place("fake", "g1"))
NAMES = ("Taxes", "Trip", "Garden")
ACTIONS = (
    *("The weather is {marker} today.",) * 4,
    *("I like {marker} a lot.",) * 2,
    *("/problem new {name}", "/problem switch {name}", "/problem switch general") * 2,
    "/problem pause", "/problem background {name}", "/problem done {name}", "/problem priority {name} 8",
    "/problem note must {marker}", "/problem note decide {marker}", "/problem note draft plan {marker}",
    "/problem", "/problem show", "/problem show {name}",
    "/reference set colour {marker}", "/reference rollback colour 1", "/memory add I own {marker}",
    "NOTE {marker}", "REFER {marker}", "CONCLUDE {marker}", "LOOK", "LOOK", "OPEN {name}",
    "/new now", "hour", "day", "restart", "restart",
)  # fmt: skip
STEPS = st.tuples(st.sampled_from(PLACES), st.sampled_from(ACTIONS), st.sampled_from(NAMES))
LOOKS = tool_call_reply(
    ("memory_show", {}),
    ("memory_recall", {"query": "weather like own must decide", "days": 999}),
    ("memory_recall", {}),
    ("memory_recall", {"query": "weather like own plan today", "kind": "messages"}),
)


@dataclass
class World:
    """What was said, and where it may be read.

    Attributes:
        said: Markers with the place and the problem that each was said in.
        common: Markers of facts, shared values and beliefs: all problems of the same home read them.
        active: The problem that is worked on, by place.
        clock: Everybody's.
    """

    said: dict[str, tuple[Place, str]] = field(default_factory=dict)
    common: set[str] = field(default_factory=set)
    active: dict[Place, str] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=ManualClock)
    prompts: int = 0
    switches: int = 0
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(_turn, consolidation=_consolidation)

    def marker(self, place: Place, *, common: bool) -> str:
        digits = "".join("abcdefghij"[int(sign)] for sign in str(len(self.said)))
        made = f"zq{digits}qz"
        self.said[made] = (place, self.active.get(place, GENERAL_PROBLEM))
        if common:
            self.common.add(made)
        return made

    async def step(self, host: Host, channel: FakeChannel, place: Place, text: str) -> None:
        asked = len(self.model.requests)
        before = self.active.get(place, GENERAL_PROBLEM)
        who = place.chat[1:] if place.private else "1"
        inbound = await channel.send(
            text,
            chat=place.chat,
            sender=Sender(who, "Ada"),
            private=place.private,
            message_id=f"n{next(self._numbers)}",
        )
        await channel.wait_for_answer(inbound)
        await _settled(host, place)
        self.active[place] = await _active(host, place)
        self.switches += self.active[place] != before
        for request in self.model.requests[asked:]:
            if request.purpose == "turn":
                self.prompts += 1
                self.check(place, before, str(request.messages), text)

    def check(self, place: Place, problem: str, shown: str, what: str) -> None:
        for marker in set(MARKER.findall(shown)):
            where, owner = self.said[marker]
            told = f"{what!r} at {place.session} in {problem} shows {marker} of {where} {owner}"
            if marker in self.common:
                assert where == place or (place.private and where.home == place.home), told
            else:
                assert (where, owner) == (place, problem), told


async def _settled(host: Host, place: Place) -> None:
    """Wait until what a turn wanted is done."""
    live = host.services.scopes.active_sessions
    await until(
        lambda: (one := live.get(place.session)) is None or not one.is_busy,
        every=0.001,
    )


async def _active(host: Host, place: Place) -> str:
    fold = await load_fold(
        TapeService(host.store, place.session), max_messages=24, max_tokens=100_000
    )
    return fold.compartments.requested_problem or fold.problem


def _turn(request: ModelRequest) -> ModelReply:
    last = request.messages[-1]
    text = str(last["content"])
    if last["role"] != "user":
        return text_reply("ok")
    said = text.split("<records>", maxsplit=1)[0]
    marker = next(iter(MARKER.findall(said)[-1:]), "")
    if "LOOK" in said:
        return LOOKS
    if "NOTE" in said:
        return tool_call_reply(("problem_note", {"kind": "decide", "text": f"go by {marker}"}))
    if "REFER" in said:
        return tool_call_reply(("memory_refer", {"key": f"k{marker}", "value": f"REFER {marker}"}))
    if "CONCLUDE" in said:
        change = {"op": "conclusion", "text": f"CONCLUDE {marker}"}
        return tool_call_reply(("memory_save", {"changes": [change]}))
    if "OPEN" in said and (name := re.search(r"OPEN (\w+)", said)) is not None:
        return tool_call_reply(("problem_note", {"kind": "open", "text": name[1]}))
    return text_reply("ok")


def _consolidation(request: ModelRequest) -> ModelReply:
    told = _TOLD.findall(str(request.messages[-1]["content"]))
    operations = [fact_operation(f"The user likes {m}.", quote, int(n)) for n, quote, m in told]
    return consolidation_reply("[2026-02-10 10:00] They talked.", *operations)


COMMON = ("I like", "/reference", "/memory add", "REFER", "CONCLUDE")


async def _live(folder: Path, todo: list[tuple[Place, str, str]]) -> World:
    world = World()
    left = [*todo, (PLACES[0], "restart", ""), *((place, "LOOK", "") for place in PLACES)]
    while left:
        async with session_host(folder, world.model, clock=world.clock, bounds=BOUNDS) as host:
            while left:
                place, action, name = left.pop(0)
                if action == "restart":
                    break
                if action in ("hour", "day"):
                    step = timedelta(hours=1) if action == "hour" else timedelta(days=1)
                    world.clock.advance(step.total_seconds())
                    continue
                text = action.replace("{name}", name)
                if "{marker}" in text:
                    common = text.startswith(COMMON)
                    text = text.replace("{marker}", world.marker(place, common=common))
                await world.step(host, host.channel, place, text)
            await _rebuilt(host, world)
    return world


async def _rebuilt(host: Host, world: World) -> None:
    """See that the tapes alone say what the running program knows."""
    for place in PLACES:
        live = host.services.scopes.active_sessions.get(place.session)
        if live is None:
            continue
        tape = TapeService(host.store, place.session)
        from_tail = await load_fold(tape, max_messages=24, max_tokens=100_000)
        whole = SessionFold(WindowFold(24, 100_000))
        for entry in await tape.read_entries():
            whole.apply(entry)
        await load_resumed_entries(tape, whole.window)
        assert whole.compartments.state() == from_tail.compartments.state()
        assert whole.window.conversation() == from_tail.window.conversation()
        assert whole.problem == from_tail.problem == whole.window.problem
        zone = MemoryZone(tape, fold=from_tail.zone)
        memory = LongTermMemory(tape, from_tail, zone, ScopeRegistry(host.store, world.clock))
        await memory.home.open()
        for pattern in await memory.bus.semantic.search():
            chain = await memory.bus.get_evidence_chain(pattern.id)
            assert chain, pattern
            assert all(one.content for one in chain)


@pytest.mark.slow
@given(st.lists(STEPS, min_size=5, max_size=40))
@settings(max_examples=many(15))
def test_no_problem_is_shown_what_belongs_to_another(todo):
    with TemporaryDirectory() as folder:
        anyio.run(_live, Path(folder), todo)


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(600)
@given(st.lists(STEPS, min_size=20, max_size=120))
@settings(max_examples=60)
def test_no_problem_is_shown_what_belongs_to_another_however_long_it_goes_on(todo):
    with TemporaryDirectory() as folder:
        anyio.run(_live, Path(folder), todo)
