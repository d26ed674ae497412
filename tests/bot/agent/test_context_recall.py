"""What the model is shown unasked of what was said before, and that it is bounded."""

from __future__ import annotations

import pytest

from bot.agent.views.automatic_recall import MIN_RECALL_BUDGET
from bot.agent.views.passage_selection import MOST_PASSAGES
from bot.agent.views.registry import context_builder
from bot.llm.base import CapabilityProfile, estimate_tokens
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


async def tail(model: ScriptedModel) -> str:
    return str(model.requests_for()[-1].messages[-1]["content"]).partition("<records>")[2]


@pytest.fixture(params=["with-recall", "small"])
async def recalling(tmp_path, request):
    """A chat that recalls unasked, by its builder or since its model is small."""
    profile = CapabilityProfile(tools=False, small=True) if request.param == "small" else None
    model = ScriptedModel(lambda _: text_reply("ok"), profile=profile)
    builder = context_builder("default" if request.param == "small" else request.param)
    async with session_host(
        tmp_path, model, builder=builder, bounds=HostLimits(view_messages=6)
    ) as host:
        yield host, model


async def test_what_fits_the_newest_message_and_is_out_of_view_is_in_the_tail(recalling):
    host, model = recalling
    await host.channel.ask("My sister Beatrix plays the cello.")
    for number in range(6):
        await host.channel.ask(f"something else, number {number}")
    await host.channel.ask("What does Beatrix play?")
    assert "My sister Beatrix plays the cello." not in str(model.requests_for()[-1].messages[:-1])
    assert "Ada [#" in await tail(model)
    assert "My sister Beatrix plays the cello." in await tail(model)
    step = (await host.events("loop.step"))[-1]
    assert "Beatrix plays" in str(step.data["extra"])


async def test_what_is_in_view_or_in_memory_is_not_recalled(recalling):
    host, model = recalling
    await host.channel.ask("/memory add Beatrix plays the cello")
    await host.channel.ask("/new now")
    await host.channel.ask("Beatrix has a concert")
    await host.channel.ask("Where is the concert of Beatrix, who plays the cello?")
    assert "From the tape" not in await tail(model)


@pytest.mark.parametrize("empty", ["ok", "Thanks!", "yes please", "好的", "???", "what is it"])
async def test_a_message_that_says_nothing_recalls_nothing(recalling, empty):
    host, model = recalling
    await host.channel.ask(f"I said {empty} ok thanks yes please to it")
    await host.channel.ask("/new now")
    await host.channel.ask(empty)
    assert await tail(model) == ""


async def test_what_is_recalled_is_bounded(recalling):
    host, model = recalling
    for number in range(12):
        await host.channel.ask(f"The llama number {number} " + "eats hay and looks at it " * 20)
    await host.channel.ask("/new now")
    await host.channel.ask("Which llama?")
    lines = [line for line in (await tail(model)).splitlines() if line.startswith("- ")]
    assert 1 < len(lines) <= MOST_PASSAGES
    assert estimate_tokens("\n".join(lines)) <= MIN_RECALL_BUDGET


async def test_all_steps_of_a_turn_have_the_same_recalled_text(tmp_path):
    model = ScriptedModel(
        [
            text_reply("ok"),
            text_reply("ok"),
            tool_call_reply(("memory_show", {})),
            tool_call_reply(("memory_show", {})),
            text_reply("done"),
        ]
    )
    bounds = HostLimits(view_messages=2)
    builder = context_builder("with-recall")
    async with session_host(tmp_path, model, builder=builder, bounds=bounds) as host:
        await host.channel.ask("My sister Beatrix plays the cello.")
        await host.channel.ask("The weather is fine.")
        await host.channel.ask("What does Beatrix play?")
    tails = {
        str(r.messages[-1]["content"]).partition("<records>")[2] for r in model.requests_for()[2:]
    }
    assert len(tails) == 1
    assert "cello" in tails.pop()
