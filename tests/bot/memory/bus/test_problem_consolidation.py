"""What is consolidated where people go to and fro between problems, and groups chatter beside them."""

from __future__ import annotations

import random
import re
from datetime import UTC
from typing import Any

import pytest
from problem_rig import Talk

from bot.agent.consolidation.policy import ConsolidationPolicy, EntryRange
from bot.agent.consolidation.runner import consolidate, record_result
from bot.llm.base import ModelRequest
from bot.memory.records.conversation_entries import TURN_START
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.tape.entries import event, message
from bot.tape.search import GENERAL_PROBLEM, problem_of
from bot.testing.scripted_model import ScriptedModel, consolidation_reply

_SAID = re.compile(r"said-[a-z0-9]+-\d+-")


class Busy:
    """A session with several problems, consolidated as its policy says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.talk = Talk()
        self.talk.bounds = {"max_messages": self.random.choice([10, 40]), "max_tokens": 4_000}
        self.policy = ConsolidationPolicy(
            self.random.choice([4, 10]), self.random.choice([60, 400]), 10**9
        )
        self.portion = self.random.choice([20, 100, 1_000])
        self.problems = [GENERAL_PROBLEM]
        self.told: list[str] = []
        self.numbers = 0
        self.model = ScriptedModel(consolidation=self._answer)

    def _answer(self, request: ModelRequest) -> Any:
        """Note what is told of persons' words: of one problem alone."""
        told = _SAID.findall(str(request.messages[-1]["content"]))
        assert len({one.split("-")[1] for one in told}) <= 1
        self.told += told
        return consolidation_reply("They talked.")

    def words(self) -> str:
        self.numbers += 1
        return f"said-{self.talk.fold.problem}-{self.numbers}- " + "and so on " * (
            self.random.randint(0, 6)
        )

    async def live(self) -> None:
        talk, chance = self.talk, self.random.random()
        if chance < 0.2 and len(self.problems) < 6:
            made = await talk.bus.problems.create(f"n{len(self.problems)}")
            self.problems.append(made.problem_id)
        elif chance < 0.45:
            await talk.bus.problems.switch_to(self.random.choice(self.problems))
        elif chance < 0.55:
            for _ in range(self.random.randint(1, 4)):
                said = message("user", self.words(), overheard=True, private=False)
                await talk.tape.append(said)
        elif chance < 0.7:
            await self.join()
        elif chance < 0.75:
            await talk.open()
        else:
            await talk.say(self.words(), "well")

    async def join(self) -> None:
        """A turn that takes in what was overheard, and a message that waited."""
        talk = self.talk
        taken = [one.id for one in talk.fold.window.overheard_messages()][-3:]
        number = f"q{self.numbers}"
        waits = await talk.tape.append(message("user", self.words(), queued=True, inbound=number))
        data = {"turn": number, "inbound": [number], "joined": [*taken, waits.id]}
        await talk.tape.append(event(TURN_START, data))
        await talk.end(number, "well")

    async def consolidate(self, wanted: EntryRange) -> None:
        memory = self.talk.bus._memory
        made = await consolidate(
            self.model, memory, wanted, portion_tokens=self.portion, timezone=UTC
        )
        assert await record_result(memory, made)

    async def settle(self) -> None:
        """Consolidate what is due, as often as it is."""
        for _ in range(60):
            if (due := self.policy.due(self.talk.fold)) is None:
                return
            await self.consolidate(due)
        pytest.fail("the policy asks for ever")

    async def finish(self) -> None:
        """Consolidate all that is left, as ``/new`` does."""
        fold = self.talk.fold
        end = fold.version
        while fold.window.unconsolidated and fold.window.consolidated_through < end:
            await self.consolidate(EntryRange(fold.window.consolidated_through + 1, end))


@pytest.mark.parametrize("seed", range(12))
async def test_every_message_is_consolidated_once_whatever_problems_it_belongs_to(seed):
    busy = Busy(seed)
    await busy.talk.open()
    for _ in range(70):
        await busy.live()
        await busy.settle()
    await busy.finish()
    window = busy.talk.fold.window
    assert (window.unconsolidated, window.unconsolidated_tokens) == (0, 0)
    entries = await busy.talk.tape.read_entries()
    taken = {one for entry in entries for one in entry.data.get("joined") or ()}
    heard = [
        entry.payload["content"].split()[0]
        for entry in entries
        if entry.kind == "message" and entry.payload["role"] == "user"
        if "overheard" not in entry.meta or entry.id in taken
    ]
    assert sorted(busy.told) == sorted(heard)
    told = [entry for entry in entries if entry.name == HISTORY_EVENT]
    assert len(told) == len(busy.model.requests)
    assert {problem_of(entry) for entry in told} == {one.split("-")[1] for one in busy.told}


async def test_a_turn_longer_than_a_portion_is_not_led_by_an_empty_consolidation():
    talk = await Talk().open()
    await talk.say("a long story " * 100)
    await talk.say("and another")
    model = ScriptedModel(consolidation=lambda _: consolidation_reply("A long story."))
    made = await consolidate(
        model,
        talk.bus._memory,
        EntryRange(1, await talk.tape.version()),
        portion_tokens=50,
        timezone=UTC,
    )
    assert len(model.requests) == 1
    assert made.messages == 2
