"""Nothing that is said in a private problem is ever in a request to a model that is not private.

Each statement carries a marker. Two models answer, of which one is private, and both repeat every
marker that they see wherever they can: in answers, tool calls, handoffs and summaries. The embedding
model is not private. Facts learned elsewhere are shown to both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import examples
from test_problem_isolation import BUILDERS, LOOKS, MARKER, WORDS, Words, World

from bot.core.errors import ContextOverflow
from bot.llm.base import ModelReply, ModelRequest
from bot.llm.embeddings.base import Embedder, Vector
from bot.llm.presets import ModelPresets, Preset
from bot.testing.scripted_model import (
    ScriptedModel,
    ScriptStep,
    consolidation_reply,
    fact_change,
    judgement_reply,
    memory_save_call,
    text_reply,
    tool_call_reply,
)

PRIVATE, PRIVATE_ID, OPEN = "taxes", "p1", ("general", "garden")

NOTES: list[tuple[str, dict[str, Any]]] = [
    ("problem_note", {"op": "list"}),
    *(("problem_note", {"op": "open", "text": name}) for name in (PRIVATE, "garden")),
    *(("problem_note", {"op": kind, "text": PRIVATE}) for kind in ("pause", "complete")),
]
ACTIONS = [
    "My weather is {m} today.", "My weather is {m} today.", "SAY {m} of the tea", "FETCH {m}",
    "HAND {m}", "KEEP {m}", "OVERFLOW {m}", "remember: my tea is {m}.", "EDIT {m}",
    "/problem note ask draft {m}", "/memory add My note is {m}", "/reference set note {m}",
    "/problem note must take {m}", "/new", "/new now", "LOOK", "LOOK", "NOTES", "TASK",
    "/model open", "/model home", "/retry", "restart",
    *(f"/problem switch {one}" for one in (PRIVATE, *OPEN, PRIVATE, *OPEN)),
]  # fmt: skip


@dataclass
class PrivateWorld(World):
    """One session with a private problem, an open model and a private one."""

    first: tuple[str, ...] = (
        f"/problem new {PRIVATE}",
        "/problem private on",
        "/problem new garden",
    )
    embedded: list[str] = field(default_factory=list)
    home: ScriptedModel = field(init=False)

    def __post_init__(self) -> None:
        self.model, self.home = _model(), _model()

    def options(self) -> dict[str, Any]:
        return {
            "presets": ModelPresets([Preset("open", self.model), Preset("home", self.home, True)])
        }

    def embedder(self) -> Embedder:
        embedded = self.embedded

        class Recorded(Words):
            async def embed(self, texts: list[str]) -> list[Vector]:
                embedded.extend(texts)
                return await super().embed(texts)

        return Recorded()

    @property
    def secrets(self) -> set[str]:
        return {marker for marker, place in self.said.items() if place == PRIVATE_ID}

    def check(self, first: int, problem: str, what: str) -> None:
        """Refuse whatever of the private problem left the machine, at any time."""
        for request in self.model.requests:
            asked = f"{request.messages}{request.tools}"
            leaked = self.secrets & set(MARKER.findall(asked))
            assert not leaked, f"at {what!r} a {request.purpose} call shows {leaked}: " + "".join(
                asked[max(0, asked.index(one) - 300) : asked.index(one) + 100] for one in leaked
            )
        leaked = self.secrets & set(MARKER.findall(" ".join(self.embedded)))
        assert not leaked, f"at {what!r} the embedding model was given {leaked}"


def _model() -> ScriptedModel:
    overflown: set[str] = set()
    return ScriptedModel(
        lambda request: _turn(request, overflown),
        consolidation=_consolidation,
        summary=lambda request: text_reply(_all_markers(request)),
        judgement=lambda request: judgement_reply(request, lambda _: "supported"),
    )


def _all_markers(request: ModelRequest) -> str:
    return "The weather and the tea: " + " ".join(
        sorted(set(MARKER.findall(str(request.messages))))
    )


def _turn(request: ModelRequest, overflown: set[str]) -> ScriptStep:
    last = request.messages[-1]
    system = str(request.messages[0]["content"])
    if last["role"] != "user":
        return text_reply(_all_markers(request))
    told = str(last["content"])
    asked = re.findall(r"(?:LOOK|NOTES|TASK|SAY|FETCH|HAND|KEEP|OVERFLOW)(?: zq[a-j]+qz)?", told)
    wanted, _, marker = (asked[-1] if asked else "").partition(" ")
    if "working alone on one sub-task" in system:
        names = {spec.name for spec in request.tools}
        return tool_call_reply(*(one for one in LOOKS if one[0] in names))
    if wanted == "OVERFLOW" and marker not in overflown:
        overflown.add(marker)
        return ContextOverflow("too long")
    calls: dict[str, list[tuple[str, Any]]] = {
        "LOOK": LOOKS,
        "NOTES": NOTES,
        "TASK": [("memory_recall", {"query": f"Find out about {WORDS}.", "aside": True})],
        "FETCH": [("fetch", {"what": _all_markers(request)})],
        "HAND": [("tape_handoff", {"name": "phase/note", "summary": _all_markers(request)})],
        "KEEP": [
            memory_save_call(f"My weather is {marker} today.", _all_markers(request)),
            ("memory_daily", {"content": _all_markers(request)}),
            ("memory_refer", {"key": "weather", "value": _all_markers(request)}),
            ("problem_note", {"op": "must", "text": _all_markers(request)}),
            ("memory_save", {"changes": [{"op": "conclusion", "text": _all_markers(request)}]}),
        ],
    }
    return tool_call_reply(*calls[wanted]) if wanted in calls else text_reply(_all_markers(request))


def _consolidation(request: ModelRequest) -> ModelReply:
    text = _all_markers(request)
    quoted = re.findall(r"My weather is zq[a-j]+qz today\.", str(request.messages))[-1:]
    operations = [fact_change(one, one) for one in quoted]
    return consolidation_reply(f"[2026-02-10 10:00] {text}.", *operations)


PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
SWEEP = [f"/problem switch {PRIVATE}", "LOOK", "My weather is {m} today.", "restart"]
SWEEP += [step for one in OPEN for step in (f"/problem switch {one}", "LOOK", "NOTES", "TASK")]
SWEEP += ["/new", "LOOK"]


def _check(todo: list[str], builder: str) -> None:
    with TemporaryDirectory() as folder:
        anyio.run(PrivateWorld(Path(folder), builder).live, [*todo, *SWEEP])


@pytest.mark.slow
@pytest.mark.timeout(400)
@settings(max_examples=examples(16), phases=PHASES)
@given(st.lists(st.sampled_from(ACTIONS), min_size=8, max_size=20), st.sampled_from(BUILDERS))
def test_nothing_of_a_private_problem_is_shown_to_another_model(todo, builder):
    _check(todo, builder)


@pytest.mark.slow
@pytest.mark.parametrize("builder", BUILDERS)
async def test_every_way_to_say_something_is_private_and_is_seen_by_the_private_model(
    tmp_path, builder
):
    """The world above is no empty one: the private model sees what is said, and sums it up."""
    world = PrivateWorld(tmp_path, builder)
    ways = [action for action in dict.fromkeys(ACTIONS) if "{m}" in action]
    # A consolidation may be ahead of an overflow, and leave nothing to sum up; just after "/new" none is.
    overflows = ["/new", "My weather is {m} today.", "OVERFLOW {m}"]
    todo = [f"/problem switch {PRIVATE}", *ways, *ways, *overflows, *ways]
    await world.live([*todo, *SWEEP])
    shown = set(MARKER.findall("".join(str(one.messages) for one in world.home.requests)))
    # What only a command says is not a part of the conversation, and a refused fact is nowhere.
    assert len(world.secrets & shown) > len(world.secrets) // 2
    assert world.home.requests_for("consolidation")
    assert world.home.requests_for("summary")
    assert world.model.requests_for("turn")
