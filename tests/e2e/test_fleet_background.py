"""Work behind an answer is done once, by whoever is there to do it."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from fleet_trial import open_trial
from waiting import until

from bot.agent.consolidation.prompts import SAVE_MEMORY_TOOL_NAME
from bot.tape.entries import MEMORY_CONSOLIDATED
from testkit.openai_server import Call, Reply

SEED = 5
_BEARER = "Bearer key-of-"


@pytest.mark.family("fleets")
@pytest.mark.slow
async def test_a_consolidation_that_a_kill_cut_off_is_made_by_another_worker_unasked(
    tmp_path: Path,
):
    """Nobody writes anything after the kill: the hold that covered the work is enough."""
    askers: list[str] = []
    begun, never = anyio.Event(), anyio.Event()

    async with open_trial(
        tmp_path, SEED, people=2, gateways=1, workers=2, lease=5.0, memory_window=10
    ) as trial:
        model, telegram = trial.world.model.server, trial.world.telegram

        def answer(request: dict) -> Reply:
            names = [one["function"]["name"] for one in request.get("tools", ())]
            if names != [SAVE_MEMORY_TOOL_NAME]:
                return Reply("I see.")
            askers.append(model.headers[-1]["authorization"].removeprefix(_BEARER))
            begun.set()
            made = json.dumps({"history_entry": "Ada counted.", "operations": []})
            return Reply(
                calls=(Call(SAVE_MEMORY_TOOL_NAME, made, "c1"),),
                gate=never if len(askers) == 1 else None,
            )

        model._steps = answer
        ada = trial.world.chats[0]
        for number in range(8):
            telegram.say(ada, ada, f"number {number}")
            await telegram.until(lambda known, n=number: len(known.texts(ada)) > n, within=60)
        with anyio.fail_after(60):
            await begun.wait()
        trial.fleet.kill(trial.fleet.members[askers[0]])

        async def consolidated() -> bool:
            tape = await trial.read(f"telegram:{ada}")
            return any(one.name == MEMORY_CONSOLIDATED for one in tape)

        await until(consolidated, every=0.1, within=90)
        assert len(askers) == 2
        assert askers[1] != askers[0]
        assert len(telegram.records.texts(ada)) == 8
        never.set()
        await trial.fleet.stop_all()
