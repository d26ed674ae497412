"""Whatever is done in a session, nothing of one of its problems reaches the model in another.

Each statement carries a marker that nothing else does: what a person says, what the model says, what a
tool gives, what a handoff, a working set, an episode and a history entry note. After each step, all that
the model was asked for a turn or a sub-task holds only markers of the problem that is worked on.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from sampling import examples

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome
from bot.agent.views.registry import context_builder
from bot.llm.base import ModelReply, ModelRequest
from bot.llm.embeddings.base import Embedder, Vector
from bot.memory.records.conversation_entries import switched_problem
from bot.memory.session.vector_index import VectorIndex
from bot.tape.search import problem_of
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    memory_save_call,
    text_reply,
    tool_call_reply,
)
from testkit.openai_server import DIMENSIONS, embedding

MARKER = re.compile(r"zq[a-j]+qz")
BUILDERS = ("default", "exact", "with-recall", "summary-first")
PROBLEMS = ("general", "taxes", "garden")
WORDS = "weather tea note draft told log"
BOUNDS = HostLimits(window=8, view_messages=40)


def concludes(text: str, *entries: int) -> tuple[str, dict[str, Any]]:
    change = {"op": "conclusion", "text": text, "entries": list(entries)}
    return "memory_save", {"changes": [change]}


LOOKS: list[tuple[str, dict[str, Any]]] = [
    ("memory_recall", {"query": WORDS, "days": 9_999}),
    ("memory_recall", {}),
    ("memory_show", {}),
    *(("memory_forget", {"what": what}) for what in ("weather", "draft")),
    memory_save_call("The weather is good."),
    ("memory_daily", {"content": "The weather is good."}),
    ("memory_refer", {"key": "weather"}),
    concludes("Tea.", *range(1, 20)),
    *(concludes("The weather.", number) for number in range(5, 40, 7)),
    ("skill_read", {"name": "weather"}),
    ("memory_recall", {"kind": "phases", "query": "problem taxes garden session phase"}),
    ("memory_recall", {"kind": "messages", "query": '"the weather is"'}),
    ("memory_recall", {"kind": "tools", "query": "fetch"}),
    *(
        ("memory_recall", {"query": query, "kind": kind})
        for kind in ("messages", "tools", "history", "phases")
        for query in (WORDS, "")
    ),
    ("memory_recall", {"who": "Ada", "days": 9_999}),
    ("memory_recall", {"who": "assistant"}),
    ("schedule_manage", {"op": "list"}),
]
"""Every way in which a model can look at what was said."""

DOES = {"memory_clear", "tape_handoff", "fetch", "problem_note"}
"""Tools that show nothing of before, that are called by themselves, or that are meant to tell other
problems' summaries."""

LOOK = "LOOK at the weather, the tea, the note and the log"
TASK = "TASK: the weather, the tea, the note and the log"

ACTIONS = [
    "The weather is {m} today.", "The weather is {m} today.", "SAY {m} of the tea", "FETCH {m}", "HAND {m}",
    "/problem note ask draft {m}", "EDIT {m}", "/new", "/new now", LOOK, LOOK, TASK,
    *(f"/problem switch {one}" for one in (*PROBLEMS, *PROBLEMS[1:])), "restart", "hour", "day",
    "/problem note must take {m}", "/problem note draft plan {m}", "/problem pause",
    "/problem background taxes", "/problem done garden",
]  # fmt: skip


class Argument(BaseModel):
    what: str


async def _fetched(argument: Argument, _: ToolContext) -> ToolOutcome:
    return ToolOutcome(f"The tea told of {argument.what}")


FETCH = Tool("fetch", "Fetch something.", Argument, _fetched, effect="reads_world")


class Words(Embedder):
    """An embedding model to which texts with words in common are near to each other."""

    name = "words"
    dimensions = DIMENSIONS

    async def embed(self, texts: list[str]) -> list[Vector]:
        found = [np.asarray(embedding(text), dtype=np.float32) for text in texts]
        return [vector / np.linalg.norm(vector) for vector in found]

    async def aclose(self) -> None:
        pass


@dataclass
class World:
    """One session with three problems, and what was said in it."""

    folder: Path
    builder: str = "default"
    active: str = "general"
    said: dict[str, str] = field(default_factory=dict)
    seen: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    model: ScriptedModel = field(init=False)
    host: Host = field(init=False)
    clock: ManualClock = field(default_factory=ManualClock)
    first: tuple[str, ...] = (
        "/problem new taxes",
        "/problem new garden",
        "/problem switch general",
    )
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _last_said: str = ""

    def __post_init__(self) -> None:
        self.model = ScriptedModel(_turn, consolidation=_consolidation)

    def options(self) -> dict[str, Any]:
        return {}

    def embedder(self) -> Embedder:
        return Words()

    async def live(self, todo: list[str]) -> None:
        """Do one thing after the other, and look at all that was shown for each."""
        left = [*self.first, *todo]
        while left:
            async with session_host(
                self.folder,
                self.model,
                clock=self.clock,
                bounds=BOUNDS,
                tools=[FETCH],
                builder=context_builder(self.builder),
                vectors=lambda store: VectorIndex(self.folder / "vectors", store, self.embedder()),
                **self.options(),
            ) as self.host:
                while left and (action := left.pop(0)) != "restart":
                    if action in ("hour", "day"):
                        self.clock.advance(3_600 if action == "hour" else 86_400)
                    else:
                        await self.step(action)

    async def step(self, action: str) -> str:
        """Let the person do something; return what they were answered."""
        asked, number, problem = len(self.model.requests), f"n{next(self._numbers)}", self.active
        text, edits, marker = action, None, ""
        if "{m}" in action:
            marker = f"zq{''.join('abcdefghij'[int(sign)] for sign in number[1:])}qz"
            text = action.replace("{m}", marker)
            if action.startswith("EDIT"):
                edits, text = self._last_said or None, f"The weather is {marker} after all."
            elif not text.startswith("/"):
                self._last_said = number
        inbound = await self.host.channel.send(text, message_id=number, edits=edits)
        if edits is not None:
            # It is answered, or not; whatever is said next is.
            told = await self.step("Hello.")
        else:
            told = await self.host.channel.wait_for_answer(inbound)
        tape = await self.host.tape()
        # A model may have put the problem aside after its answer: the tape knows where it was said.
        places = [problem_of(one) for one in tape if one.meta.get("inbound") == number]
        if marker and places:
            self.said[marker] = places[0]
        switches = [one for entry in tape if (one := switched_problem(entry)) is not None]
        self.active = switches[-1] if switches else "general"
        self.check(asked, problem, text)
        return told

    def check(self, first: int, problem: str, what: str) -> None:
        """Refuse what may not be shown in the problem that was worked on."""
        for request in self.model.requests[first:]:
            shown = str(request.messages)
            markers = set(MARKER.findall(shown)) & self.said.keys()
            if request.purpose != "turn":
                continue
            self.seen[problem] |= markers
            for marker in markers:
                assert self.said[marker] == problem, (
                    f"at {what!r} in {problem} the model is shown {marker} of {self.said[marker]}: "
                    + shown[max(0, shown.index(marker) - 400) : shown.index(marker) + 100]
                )


def _turn(request: ModelRequest) -> ModelReply:
    system, last = str(request.messages[0]["content"]), request.messages[-1]
    if last["role"] != "user":
        return text_reply("ok")
    # What is recalled behind the message asks for nothing.
    told = str(last["content"]).partition("<records>")[0]
    asked = re.findall(r"(?:LOOK|TASK|SAY|FETCH|HAND)(?: zq[a-j]+qz)?", told)
    wanted = asked[0] if asked else ""
    marker = wanted.partition(" ")[2]
    if "working alone on one sub-task" in system:
        return tool_call_reply(*(one for one in LOOKS if one[0] in _names(request)))
    if wanted.startswith("LOOK"):
        return tool_call_reply(*LOOKS)
    if wanted.startswith("TASK"):
        return tool_call_reply(
            ("memory_recall", {"query": f"Find out about {WORDS}.", "aside": True})
        )
    if wanted.startswith("FETCH"):
        return tool_call_reply(("fetch", {"what": marker}))
    if wanted.startswith("HAND"):
        summary = {"summary": f"The note is {marker}.", "next_steps": [f"Note {marker}"]}
        return tool_call_reply(("tape_handoff", {"name": "phase/note", **summary}))
    return text_reply(f"The tea told of {marker}" if marker else "ok")


def _names(request: ModelRequest) -> set[str]:
    return {spec.name for spec in request.tools}


def _consolidation(request: ModelRequest) -> ModelReply:
    markers = sorted(set(MARKER.findall(str(request.messages))))
    return consolidation_reply(
        f"[2026-02-10 10:00] The weather and the tea were {' '.join(markers)}."
    )


# A life takes a second: to look for the shortest one that fails would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
actions = st.sampled_from(ACTIONS)
SWEEP = [action for one in PROBLEMS for action in (f"/problem switch {one}", LOOK)]


def _check(todo: list[str], builder: str) -> None:
    with TemporaryDirectory() as folder:
        anyio.run(World(Path(folder), builder).live, [*todo, "restart", *SWEEP, TASK])


@pytest.mark.slow
@settings(max_examples=examples(10), phases=PHASES)
@given(st.lists(actions, min_size=6, max_size=20), st.sampled_from(BUILDERS))
def test_nothing_of_a_problem_is_shown_in_another(todo, builder):
    _check(todo, builder)


WAYS = [
    "The weather is {m} today.",
    "SAY {m} of the tea",
    "FETCH {m}",
    "/problem note ask draft {m}",
    "HAND {m}",
]


@pytest.mark.slow
@pytest.mark.parametrize("builder", BUILDERS)
async def test_what_is_not_shown_elsewhere_is_there_in_its_own_problem(tmp_path, builder):
    """The world above is no empty one: what may be shown, is."""
    world = World(tmp_path, builder)
    todo = [*WAYS, "/problem switch taxes", *WAYS, "/new", *WAYS, "/new now", *WAYS]
    todo += ["/problem switch garden", "Hello.", LOOK, TASK, "/new", LOOK]
    todo += ["/problem switch taxes", LOOK, TASK, "/problem switch general", LOOK, TASK]
    await world.live(todo)
    for one in ("general", "p1", "p2"):
        assert world.seen[one] == {marker for marker, place in world.said.items() if place == one}


async def test_the_person_sees_everything_and_which_problem_it_is_of(tmp_path):
    world = World(tmp_path)
    todo = ["/problem switch taxes", "The weather is {m} today.", "/new", "/problem switch garden"]
    await world.live([*todo, "The weather is {m} here."])
    first, second = world.said
    async with session_host(tmp_path, world.model) as world.host:
        for command in ("/memory search weather", "/tape search weather"):
            told = await world.step(command)
            [own] = [line for line in told.splitlines() if second in line]
            others = [line for line in told.splitlines() if first in line]
            assert others
            assert all("(problem “taxes”)" in line for line in others)
            assert "(problem" not in own
        told = await world.step("/memory history")
        assert f"{first}. (problem “taxes”)" in told
        await world.step("/problem switch taxes")
        told = await world.step("/memory history")
        assert f"{first}." in told
        assert "(problem" not in told


async def test_every_tool_that_a_model_has_is_looked_through(tmp_path):
    world = World(tmp_path)
    await world.live(["Hello."])
    missing = _names(world.model.requests_for()[-1]) - {name for name, _ in LOOKS} - DOES
    assert not missing, "add calls of these that could reach across problems"
