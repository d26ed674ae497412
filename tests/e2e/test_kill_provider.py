"""Kills in turns with a real provider's protocol: litellm, a socket, calls of tools."""

from __future__ import annotations

import itertools
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kill_checks import read_tape
from kill_harness import Kill, Platform, kill_often
from kill_talk import Line
from sampling import many

from bot.memory.session.state.zone_snapshot import ZoneFold
from testkit.openai_server import Call, Reply, ScriptedOpenAI

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KILLS = many(10)
_ASKED = re.compile(r"Write down (N\d+)\b")


class NoteTaker:
    """A model that notes what it is asked to, with two calls in one step, and then says so.

    Attributes:
        platform: Loses its process at one of the requests.
        requests_left: At which; 0 for none.
    """

    def __init__(self) -> None:
        self.platform: Platform
        self.requests_left = 0
        self._numbers = itertools.count(1)

    def __call__(self, request: dict[str, Any]) -> Reply:
        if self.requests_left:
            self.requests_left -= 1
            if not self.requests_left:
                self.platform.host.kill()
        said = [m for m in request["messages"] if m["role"] in ("user", "tool")]
        asked = _ASKED.findall(str(said[-1]["content"]))
        if said[-1]["role"] == "tool" or not asked:
            return Reply("I wrote it down.")
        return Reply(calls=tuple(self._note(asked[-1], part) for part in "ab"))

    def kill_at(self, requests: int) -> None:
        """Lose the process at this many requests from now."""
        self.requests_left = requests

    def _note(self, word: str, part: str) -> Call:
        return Call(
            "memory_daily",
            f'{{"content": "A note is {word}{part}."}}',
            f"call{next(self._numbers)}",
        )


async def test_a_kill_between_two_calls_of_a_step_runs_each_of_them_once(tmp_path: Path):
    """At the request, between the calls, at the request that brings their results."""
    model = NoteTaker()
    words = (f"N{number}" for number in itertools.count(1))

    def script(_: object) -> list[Line]:
        word = next(words)
        said = f"Write down {word}: my first note is {word}a, my second note is {word}b."
        return [("one", said)]

    def plan(chance: Any) -> Kill:
        if chance.random() < 0.5:
            return Kill(arm=partial(model.kill_at, chance.choice([1, 2])), after=20)
        event, times = chance.choice([("tool", 1), ("tool", 2), ("answer", 1)])
        return Kill(event=event, times=times, after=20)

    async with ScriptedOpenAI(model) as server:
        platform = Platform(
            tmp_path,
            seed=71,
            settings={
                "TAPEBOT_MODEL": "openai/test",
                "TAPEBOT_MODEL_API_BASE": server.base_url,
                "TAPEBOT_MODEL_API_KEY": "sk-of-the-test",
            },
        )
        model.platform = platform
        found = await kill_often(platform, KILLS, plan, script, settled=1.0)
    assert found["resumed turns"] > KILLS / 2
    zone = ZoneFold()
    for entry in await read_tape(platform.home, "pipe:one"):
        zone.apply(entry)
    noted = re.findall(r"N\d+[ab]", " ".join(note.content for note in zone.snapshot.dailies))
    assert sorted(noted) == sorted(f"N{n}{part}" for n in range(1, KILLS + 1) for part in "ab")
