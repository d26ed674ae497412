"""Whatever people do, nobody reads what is not theirs to read.

Each statement carries a marker that nothing else does. After each step, all that was shown in a session -
what its model was asked, with system prompt, records and tools' results; what it was answered; the files
that it was sent - holds only markers that were said there, that are facts of the person who is alone there
with the bot, or that an owner shared with everybody.
"""

from __future__ import annotations

import itertools
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus import Answer, Sender
from bot.llm.base import ModelReply, ModelRequest
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    text_reply,
    tool_call_reply,
)

MARKER = re.compile(r"zq[a-j]+qz")
_TOLD = re.compile(r"^#(\d+) .*?(I like (zq[a-j]+qz) a lot\.)", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A session: a person alone with the bot, or a group of three; perhaps a topic of it."""

    channel: str
    chat: str
    topic: str | None = None

    @property
    def private(self) -> bool:
        return self.chat.startswith("p")

    @property
    def session(self) -> str:
        return ":".join(filter(None, (self.channel, self.chat, self.topic)))

    @property
    def home(self) -> str:
        return f"person:{self.channel}:{self.chat[1:]}" if self.private else self.session


PLACES = [
    Place(channel, chat, topic)
    for channel in ("fake", "other")
    for chat, topics in {"p1": (None, "t"), "p2": (None,), "g1": (None, "t"), "g2": (None,)}.items()
    for topic in topics
]
NUMBERS = ["1", "2", "3", "w1", "w2"]
ACTIONS = [
    "The weather is {marker} today.", "/memory add I like {marker}", "remember: I own {marker}",
    "I like {marker} a lot.", "What do you make of this {marker}?", "/memory edit {number} I keep {marker}",
    "/memory share {number}", "/memory share {number}", "/memory unshare {number}", "/memory forget {number}",
    "/memory undo", "/memory clear yes", "/memory", "/memory why {number}", "/memory search like own weather",
    "/memory history", "/memory pending", "/memory pause", "/memory resume", "/memory export",
    "/new", "/new now", "LOOK", "LOOK", "restart",
]  # fmt: skip

steps = st.tuples(*map(st.sampled_from, (PLACES, ["1", "2"], ACTIONS, NUMBERS)))


@dataclass
class World:
    """What was said, where; and who may read it."""

    said: dict[str, Place] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    model: ScriptedModel = field(init=False)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    asked: dict[Place, list[ModelRequest]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(_turn, consolidation=_consolidation)

    def marker(self, place: Place) -> str:
        digits = "".join("abcdefghij"[int(sign)] for sign in str(len(self.said)))
        self.said[f"zq{digits}qz"] = place
        return f"zq{digits}qz"

    async def step(self, channel: FakeChannel, place: Place, who: str, text: str) -> None:
        who = place.chat[1:] if place.private else who
        asked, answered = len(self.model.requests), len(channel.answers)
        inbound = await channel.send(
            text,
            chat=place.chat,
            topic=place.topic,
            sender=Sender(who, "Ada"),
            private=place.private,
            role="owner" if who == "1" else "member",
            message_id=f"n{next(self._numbers)}",
        )
        told = await channel.wait_for_answer(inbound)
        if told.startswith("Shared:") or (" edit w" in text and told.startswith("Changed:")):
            self.shared.update(MARKER.findall(told))
        for request in self.model.requests[asked:]:
            shown = str(request.messages)
            if request.purpose == "turn":
                self.asked.setdefault(place, []).append(request)
                self.check(place, shown, f"the model at {text!r}")
            else:
                # What `/new now` left is consolidated in the background, at whatever time.
                assert any(self.may_see(one, shown) for one in PLACES), shown
        for answer in channel.answers[answered:]:
            assert answer.address.session == place.session
            self.check(place, "\n".join(_shown(answer)), f"the answer to {text!r}")

    def check(self, place: Place, shown: str, what: str) -> None:
        for marker in set(MARKER.findall(shown)):
            where = self.said[marker].session
            told = f"{what} at {place.session} shows {marker}, which was said at {where}"
            assert self.may_see(place, marker), told

    def may_see(self, place: Place, shown: str) -> bool:
        """Say whether all markers of a text may be shown at a place."""
        origins = {one: self.said[one] for one in MARKER.findall(shown) if one not in self.shared}
        return all(
            origin == place or (place.private and origin.home == place.home)
            for origin in origins.values()
        )


def _turn(request: ModelRequest) -> ModelReply:
    last = request.messages[-1]
    if last["role"] == "user" and "LOOK" in str(last["content"]):
        return tool_call_reply(
            ("memory_show", {}),
            ("memory_recall", {"query": "like own weather make", "days": 999}),
            ("memory_recall", {}),
            ("memory_recall", {"query": "like own weather make", "kind": "messages"}),
        )
    return text_reply("ok")


def _consolidation(request: ModelRequest) -> ModelReply:
    told = _TOLD.findall(str(request.messages[-1]["content"]))
    operations = [fact_change(f"The user likes {m}.", quote) for _, quote, m in told]
    return consolidation_reply("[2026-02-10 10:00] They talked.", *operations)


def _shown(answer: Answer) -> Iterator[str]:
    yield answer.text
    yield from (button.command for button in answer.buttons)
    for file in answer.files:
        with zipfile.ZipFile(file.path) as archive:
            yield from (archive.read(name).decode(errors="replace") for name in archive.namelist())


Step = tuple[Place, str, str, str]

SWEEP: list[Step] = [
    *((place, "1", "LOOK", "1") for place in PLACES),
    *((place, "1", "/memory export", "1") for place in (PLACES[0], PLACES[3], PLACES[-1])),
]


async def _live(folder: Path, todo: list[Step]) -> World:
    world = World()
    left = [*todo, (PLACES[0], "1", "restart", "1"), *SWEEP]
    while left:
        async with session_host(folder, world.model) as host:
            channels = {"fake": host.channel, "other": host.add_channel("other")}
            while left:
                place, who, action, number = left.pop(0)
                if action == "restart":
                    break
                text = action
                if "{marker}" in action:
                    text = text.replace("{marker}", world.marker(place))
                text = text.replace("{number}", number)
                await world.step(channels[place.channel], place, who, text)
    return world


@pytest.mark.slow
@settings(max_examples=examples(24))
@given(st.lists(steps, min_size=4, max_size=30))
def test_nobody_is_shown_what_was_said_elsewhere(todo):
    with TemporaryDirectory() as folder:
        anyio.run(_live, Path(folder), todo)


def test_facts_are_seen_by_whom_they_are_meant_for(tmp_path):
    """The world above is no empty one: what may be shown, is."""
    alone, topic, group = PLACES[0], PLACES[1], PLACES[3]
    todo: list[Step] = [
        (alone, "1", "/memory add I like {marker}", "1"),
        (alone, "1", "I like {marker} a lot.", "1"),
        (alone, "1", "/new", "1"),
        (group, "2", "remember: I own {marker}", "1"),
        (group, "1", "/memory share {number}", "1"),
    ]
    world = anyio.run(_live, tmp_path, todo)
    told, learned, shared = world.said
    assert world.shared == {shared}
    seen = {
        place: set(MARKER.findall(str([one.messages for one in world.asked.get(place, [])])))
        for place in (alone, topic, group, PLACES[-1])
    }
    assert seen[alone] == seen[topic] == {told, learned, shared}
    assert seen[group] == seen[PLACES[-1]] == {shared}
