"""Kill -9 while fifty chats work on four problems each: nothing is done twice, lost, or mixed up.

People make problems, go from one to another, note, conclude and set values in them, by commands and by
the tools of a model; the program dies at planned writes, at its start, and at any time. In the end what
it believes is what its tapes tell, and what people said comes to.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from nursery import Nursery, nursery
from problems_checks import check_home, check_prompts
from problems_talk import Talk, needed

from bot.cli.memory_audit import audit_memory
from bot.cli.tape_verify import verify
from bot.runtime.settings import Settings, load_settings

pytestmark = pytest.mark.slow

HOST = Path(__file__).with_name("problems_host.py")
MARKS = (
    '"memory.bus"', '"problem/', '"turn.end"', '"end"', '"turn.start"', '"start"', '"tool_call"',
    '"tool_result"', '"command"', '"delivery"', '"references"', '"patterns"', '"active"', '"wanted"', '"export"',
    '"memory/consolidated"', '"inbound"',
)  # fmt: skip
"""Texts in the writes that kills are aimed at."""

WINDOW = "12"
"""Messages not yet consolidated that start it: some are, while problems are switched."""


def plan(chance: random.Random, at: int) -> dict[str, Any]:
    """Return when to kill; of five kills, two in a row come while the program starts."""
    part = chance.choice((0.0, chance.random(), 1.0))
    if at % 5 >= 3:
        return {"changes": chance.randrange(1, 120), "part": part, "start": True}
    kind = ("mark", "changes", "mark", chance.choice(("model", "answer", "seconds")))[at % 4]
    if kind == "mark":
        mark, times = chance.choice(MARKS), chance.choice((1, 1, 2, 5))
        return {"mark": mark, "times": times, "part": part}
    if kind == "changes":
        return {"changes": chance.randrange(1, 250), "part": part}
    return {kind: chance.uniform(0.0, 0.5) if kind == "seconds" else chance.randrange(1, 25)}


@dataclass
class Platform:
    """What the platform knows of its chats, over all lives of the program.

    Attributes:
        folder: Holds the program's home, and what was logged.
        talks: What is said.
        chance: Draws when to kill.
        met: The moments at which it died.
    """

    folder: Path
    talks: list[Talk]
    chance: random.Random
    met: Counter[str] = field(default_factory=Counter)
    acked: set[str] = field(default_factory=set)
    delivered: dict[str, list[str]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def live(self, children: Nursery, until: float, kill: dict[str, Any]) -> None:
        """Let the program live until it is killed.

        Args:
            children: Where it is born.
            until: The share of all that is to be said up to which people go on.
            kill: When; empty for when all was answered.
        """
        firsts = [self._first(talk) for talk in self.talks]
        bursts = [
            talk.bursts[first] if first < len(talk.bursts) else []
            for talk, first in zip(self.talks, firsts, strict=True)
        ]
        now = {one.id for burst in bursts for one in burst}
        heard = children.life(
            folder=self.folder,
            settings={"TAPEBOT_HOME": str(self.folder / "home"), "TAPEBOT_MEMORY_WINDOW": WINDOW},
            chats=len(self.talks),
            seed=self.talks[0].seed,
            rounds=self.talks[0].rounds,
            until=[
                max(round(len(one.bursts) * until), at)
                for one, at in zip(self.talks, firsts, strict=True)
            ],
            known={
                "at": firsts,
                "begun": [int(any(one.id in self.acked for one in burst)) for burst in bursts],
                "acked": sorted(now & self.acked),
                "answered": sorted(now & self.answered),
            },
            kill=kill,
            last=not kill,
        )
        for event in heard:
            self._hear(event)

    def _first(self, talk: Talk) -> int:
        """Return the first burst that is not answered."""
        return next(
            (at for at, one in enumerate(talk.bursts) if not self.answered.issuperset(needed(one))),
            len(talk.bursts),
        )

    def _hear(self, event: dict[str, Any]) -> None:
        if "ack" in event:
            self.acked.add(event["ack"])
        elif "answer" in event:
            self.answered.add(event["answer"])
            self.delivered.setdefault(event["turn"], []).append(event["text"])
        elif "died" in event:
            self.met[event["died"]] += 1


def kill_often(folder: Path, *, chats: int, kills: int, seed: int, rounds: int) -> Counter[str]:
    """Kill that many times, let it finish, and look at all that is left; print and return what was met."""
    talks = [Talk(number, seed, rounds) for number in range(chats)]
    platform = Platform(folder, talks, random.Random(seed))
    plans = [plan(platform.chance, at) for at in range(kills)]
    try:
        with nursery(HOST) as children:
            for at, kill in enumerate(plans, 1):
                platform.live(children, at / (kills + 1), kill)
            platform.live(children, 1.0, {})
        found = Counter(
            kills=platform.met.total() - 1, messages=sum(len(t.messages()) for t in talks)
        )
        found += check_prompts(folder / "prompts.jsonl", talks)
        found += anyio.run(check_home, folder / "home", talks)
        check_programs(folder / "home")
    except BaseException as error:
        error.add_note(f"seed {seed}, kills {plans}\n{errors(folder)[-4000:]}")
        raise
    assert "Traceback" not in errors(folder), errors(folder)
    assert all(len(set(texts)) == 1 for texts in platform.delivered.values()), "an answer changed"
    found["delivered again"] = sum(len(texts) - 1 for texts in platform.delivered.values())
    moments = dict(sorted(platform.met.items()))
    sys.stdout.write(f"seed {seed}: {dict(sorted(found.items()))}\nmoments: {moments}\n")
    assert found["kills"] == kills
    assert found["problems"] == 4 * chats
    return found


def errors(folder: Path) -> str:
    """Return what the program wrote to its standard error."""
    path = folder / "errors.txt"
    return path.read_text() if path.exists() else ""


def check_programs(home: Path) -> None:
    """What ``tapebot tape verify`` and ``tapebot memory audit`` say."""
    settings: Settings = load_settings().model_copy(update={"home": home, "timezone": "UTC"})
    assert verify(settings, None) == 0
    assert audit_memory(settings, None, as_json=False) == 0


def test_three_kills_among_forty_problems_mix_nothing_up(tmp_path: Path) -> None:
    """A few, for every run of the suite."""
    found = kill_often(tmp_path, chats=10, kills=3, seed=7, rounds=6)
    assert found["switches"] > 50


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(400)
def test_thirty_kills_among_two_hundred_problems_mix_nothing_up(tmp_path: Path) -> None:
    """Fifty chats at once, killed at every kind of moment."""
    found = kill_often(tmp_path, chats=50, kills=30, seed=20_270_131, rounds=9)
    assert found["resumed turns"]
    assert found["repairs"]
    assert found["whole states"]
    assert found["consolidations"]
    assert found["messages that came back"] > 200
