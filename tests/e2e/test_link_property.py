"""However people join and part, each knows what was said by whom they are joined with, and groups know nothing of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_home import Home, home
from sampling import many

from bot.bus import Sender

MARKER = re.compile(r"zq[a-j]+qz")
PEOPLE = ["fake:7", "fake:8", "other:9", "third:7"]
"""Private chats of identities; the first two are on one channel, and two have the same id."""

who = st.sampled_from(PEOPLE)
steps = st.one_of(
    st.tuples(st.sampled_from(["say", "say", "look", "part", "group", "restart"]), who, who),
    st.tuples(st.sampled_from(["join", "join", "alone"]), who, who),
)


@dataclass
class World:
    """What must be so.

    Attributes:
        people: Identities that are one person, by each of them.
        said: What each asked to remember.
        read: What each may have read so far.
    """

    people: dict[str, frozenset[str]] = field(
        default_factory=lambda: {one: frozenset({one}) for one in PEOPLE}
    )
    said: dict[str, set[str]] = field(default_factory=lambda: {one: set() for one in PEOPLE})
    read: dict[str, set[str]] = field(default_factory=lambda: {one: set() for one in PEOPLE})

    def join(self, one: str, other: str) -> None:
        mine, theirs = self.people[one], self.people[other]
        channels = [{who.partition(":")[0] for who in group} for group in (mine, theirs)]
        if channels[0].isdisjoint(channels[1]):
            self.people |= dict.fromkeys(mine | theirs, mine | theirs)

    def part(self, one: str) -> None:
        rest = self.people[one] - {one}
        self.people |= dict.fromkeys(rest, rest) | {one: frozenset({one})}

    def known(self, one: str) -> set[str]:
        """Return what somebody knows now."""
        return set().union(*(self.said[other] for other in self.people[one]))


async def _step(here: Home, world: World, op: str, one: str, other: str) -> None:
    if op == "say":
        digits = "".join(
            "abcdefghij"[int(sign)] for sign in str(sum(map(len, world.said.values())))
        )
        world.said[one].add(f"zq{digits}qz")
        await here.ask(one, f"Remember that I own zq{digits}qz")
    elif op == "join":
        await here.join(one, other)
        world.join(one, other)
    elif op == "alone":
        # Without the other side's word nothing is joined.
        await here.ask(one, "/link")
        await here.ask(other, "/link confirm")
    elif op == "part":
        await here.part(one)
        world.part(one)
    elif op == "group":
        sender = Sender(one.partition(":")[2], "Ada")
        group = f"{one.partition(':')[0]}:g"
        assert not MARKER.findall(await here.prompt(group, "LOOK", sender=sender, private=False))
    elif op == "look":
        world.read[one] |= world.known(one)
        seen = set(MARKER.findall(await here.prompt(one, "LOOK")))
        # What was looked up in a chat stays in it.
        assert world.known(one) <= seen <= world.read[one]
    for someone in PEOPLE:
        world.read[someone] |= world.said[someone]


async def _check(here: Home, world: World) -> None:
    people = await here.people()
    for one in PEOPLE:
        assert set(people.members(one)) == world.people[one]
        believed = (await here.scope(people.primary_identity(one))).active()
        assert {marker for fact in believed for marker in MARKER.findall(fact.text)} == world.known(
            one
        )
    assert people.unfinished == set()


async def _live(folder: Path, todo: list[tuple[str, str, str]]) -> None:
    world = World()
    left = [*todo, ("restart", "", ""), *(("look", one, "") for one in PEOPLE)]
    while left:
        async with home(folder) as here:
            while left:
                op, one, other = left.pop(0)
                if op == "restart":
                    break
                await _step(here, world, op, one, other)
                await _check(here, world)


def _lived(todo: list[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as folder:
        anyio.run(_live, Path(folder), todo)


@pytest.mark.slow
@settings(max_examples=many(8))
@given(st.lists(steps, min_size=4, max_size=12))
def test_each_knows_what_was_said_by_whom_they_are_joined_with(todo):
    _lived(todo)


@pytest.mark.slow
@pytest.mark.night
@settings(max_examples=25)
@given(st.lists(steps, min_size=10, max_size=25))
def test_each_knows_what_was_said_by_whom_they_are_joined_with_in_long_lives(todo):
    _lived(todo)


def test_a_life_in_which_all_of_that_happens():
    ada, bob, other, third = PEOPLE
    todo = [
        ("say", ada, ""), ("say", other, ""), ("say", third, ""), ("join", ada, other), ("say", other, ""),
        ("join", bob, third), ("join", third, other), ("say", bob, ""), ("group", ada, ""),
        ("part", bob, ""), ("join", third, ada), ("look", third, ""), ("part", ada, ""),
        ("say", third, ""), ("look", other, ""), ("look", ada, ""), ("join", ada, third),
    ]  # fmt: skip
    _lived([(op, one, two) for op, one, two in todo])
