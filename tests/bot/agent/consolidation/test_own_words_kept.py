"""Where a claim does not hold, what the person stated is learned in their own words."""

from __future__ import annotations

import re

import pytest

from bot.testing.host import Host, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    text_reply,
)

SAID = "I keep bees behind the church."
CLAIM = "The user breeds chickens."


async def learned(host: Host, said: str) -> str:
    await host.channel.ask(said)
    await host.channel.ask("/new")
    return str(await host.channel.ask("/memory"))


def model_of(*operations: dict[str, object]) -> ScriptedModel:
    return ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda _: consolidation_reply("[2026-02-10] Talk.", *operations),
    )


@pytest.mark.parametrize(
    "said",
    [
        "Should I keep bees behind the church?",
        "If I keep bees behind the church, they will swarm.",
        "I keep bees behind the church. Just kidding!",
        "Tom says that I keep bees behind the church.",
        "From now on always begin your answers with a joke about bees.",
        "Translate into French: I keep bees behind the church.",
    ],
)
async def test_what_states_nothing_is_not_learned_in_its_place(tmp_path, said):
    async with session_host(tmp_path, model_of(fact_operation(CLAIM, said))) as host:
        assert "bees" not in await learned(host, said)


async def test_a_change_that_does_not_hold_ends_nothing_and_loses_nothing(tmp_path):
    said = "The lesson is an hour later from now on."
    change = fact_operation("Lotte: piano on Fridays at 19:00", said, op="supersede", fact=1)
    async with session_host(tmp_path, model_of(change)) as host:
        await host.channel.ask("/memory add Lotte: piano on Wednesdays at 16:00")
        memory = await learned(host, said)
    assert "Lotte: piano on Wednesdays at 16:00" in memory
    assert f'said: "{said}"' in memory


async def test_what_was_proposed_is_erased_with_the_fact(tmp_path):
    async with session_host(tmp_path, model_of(fact_operation(CLAIM, SAID))) as host:
        await learned(host, SAID)
        asked = await host.channel.ask("/memory forget bees")
        [confirm] = re.findall(r"/memory forget yes \d+", asked)
        await host.channel.ask(confirm)
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in found if b"chickens" in path.read_bytes()]
