"""Memory knows what the user is called: claims may call the user so, without citing the introduction."""

from __future__ import annotations

import pytest
from judged_claims import until_judged

from bot.llm.base import ModelReply, ModelRequest
from bot.testing.host import session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    judgement_reply,
    text_reply,
    tool_call_reply,
)

NAME = {"op": "add", "text": "The user's name is Nora", "slot": "user: name"}
HELLO = "Hi, I'm Nora and I live in Leeds."
SAID = "Our car broke down, so we take the tram."
CLAIM = "Nora's family takes the tram because their car broke down"


def saving(*changes: dict[str, str], asked: list[str]) -> ScriptedModel:
    """A model that saves one change in each turn, with a judge that supports all."""
    steps = []
    for change in changes:
        steps += [tool_call_reply(("memory_save", {"changes": [change]})), text_reply("saved")]

    def rule(request: ModelRequest) -> ModelReply:
        asked.append(str(request.messages[-1]["content"]))
        return judgement_reply(request, lambda _: "supported")

    left = iter(steps)
    return ScriptedModel(lambda _: next(left, text_reply("ok")), judgement=rule)


async def test_a_claim_may_name_the_user_after_the_introduction_is_out_of_view(tmp_path):
    """Without a second try, and on the words that say it alone."""
    asked: list[str] = []
    model = saving(NAME, {"op": "add", "text": CLAIM}, asked=asked)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(HELLO)
        await until_judged(host)
        await host.channel.ask("/new now")
        await host.channel.ask(SAID)
        await until_judged(host, 2)
        why = str(await host.channel.ask("/memory why 2"))
    assert CLAIM in why
    assert SAID in why
    assert HELLO not in why
    assert "Ada, called Nora" in asked[-1]


async def test_a_claim_that_names_the_user_does_not_rest_on_the_introduction_in_view(tmp_path):
    """Erasing the words about the tram must not take the introduction with them."""
    model = saving(NAME, {"op": "add", "text": CLAIM}, asked=[])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(HELLO)
        await until_judged(host)
        await host.channel.ask(SAID)
        await until_judged(host, 2)
        why = str(await host.channel.ask("/memory why 2"))
        forget = str(await host.channel.ask("/memory forget 2"))
    assert HELLO not in why
    assert HELLO not in forget


def consolidating(claim: str, asked: list[str], name: str, message: int = 3) -> ScriptedModel:
    """A model that learns from two messages the user's name and a claim, with a judge that supports all."""

    def rule(request: ModelRequest) -> ModelReply:
        asked.append(str(request.messages[-1]["content"]))
        return judgement_reply(request, lambda _: "supported")

    introduced = {**fact_operation(name, "I'm Nora"), "slot": "user: name"}
    learned = consolidation_reply(
        "[2026-02-10] Hi.", introduced, fact_operation(claim, SAID, message)
    )
    return ScriptedModel(lambda _: text_reply("ok"), consolidation=[learned], judgement=rule)


@pytest.mark.parametrize(
    ("hello", "name"),
    [
        (HELLO, "The user's name is Nora."),
        ("Since I married Greta, I'm Nora.", "Since marrying Greta, the user's name is Nora."),
        ("I'm Nora, not Greta.", "The user's name is not Greta but Nora."),
    ],
)
async def test_a_consolidation_may_not_call_the_user_otherwise(tmp_path, hello, name):
    claim = CLAIM.replace("Nora", "Greta")
    async with session_host(tmp_path, consolidating(claim, [], name, message=9)) as host:
        await host.channel.ask(hello)
        # It gives no short answer its subject.
        for number in range(3):
            await host.channel.ask(f"I count number {number}.")
        await host.channel.ask(SAID)
        await host.channel.ask("/new")
        memory = str(await host.channel.ask("/memory"))
    assert claim not in memory
