"""What happens at the limits of a model, a provider and a disk."""

from __future__ import annotations

import re

from bot.core.errors import ContextOverflow
from bot.llm.base import ModelRequest, estimate_tokens
from bot.memory.records.conversation_entries import LOOP_STEP
from bot.tape.entries import TapeEntry
from bot.testing.host import session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    memory_save_call,
    text_reply,
    tool_call_reply,
)

WINDOW = 3_000
WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _small(request: ModelRequest):
    """Refuse what is longer than a window that nobody knew of."""
    size = sum(estimate_tokens(str(message["content"])) for message in request.messages)
    if size > WINDOW:
        raise ContextOverflow(f"maximum context length is {WINDOW} tokens")
    return text_reply("a summary" if request.purpose == "summary" else "ok")


async def test_a_window_smaller_than_was_thought_costs_no_message(tmp_path):
    """Each overflow leaves a prompt that fits, so that every message is answered."""
    model = ScriptedModel(_small)
    async with session_host(tmp_path, model) as host:
        answers = [await host.channel.ask(f"number {n} " + "word " * 300) for n in range(30)]
        assert answers == ["ok"] * 30
        steps = await host.events(LOOP_STEP)
    handed_off = [step for step in steps if step.data["status"] == "auto_handoff"]
    assert 1 <= len(handed_off) <= 12


async def test_a_tool_that_the_model_invented_has_a_name_that_providers_take(tmp_path):
    model = ScriptedModel([tool_call_reply(("no such tool!", {})), text_reply("sorry")])
    async with session_host(tmp_path, model) as host:
        assert await host.channel.ask("hi") == "sorry"
    [asked] = [m for m in model.requests[1].messages if m.get("tool_calls")]
    assert WIRE_NAME.fullmatch(asked["tool_calls"][0]["function"]["name"])
    assert asked["content"] is None


async def test_no_user_message_stands_right_behind_a_tools_result(tmp_path):
    """Records stand at the end of the tool's message, and a follow-up behind an assistant's word."""
    save = tool_call_reply(memory_save_call("Ada likes tea."))
    model = ScriptedModel([save, text_reply("saved"), text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add I like jazz")
        await host.channel.ask("I like tea")
        await host.channel.ask("and now?")
    for request in model.requests:
        roles = [message["role"] for message in request.messages]
        assert "tool user" not in " ".join(roles)
    last = model.requests[1].messages[-1]
    assert last["role"] == "tool"
    said, _, records = last["content"].partition("<records>")
    assert "[2] Ada likes tea" in said
    assert "- [1] I like jazz" in records


async def test_a_change_that_names_another_facts_number_takes_nothing_away(tmp_path):
    drops = ("memory_save", {"changes": [{"op": "change", "fact": 1, "text": "Ada likes jazz."}]})
    model = ScriptedModel([text_reply("a"), tool_call_reply(drops), text_reply("c")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("Remember that my code is 4711")
        await host.channel.ask("I like jazz")
        memory = await host.channel.ask("/memory")
    assert "4711" in memory
    assert "Ada likes jazz." in memory


async def test_a_window_too_small_for_a_portion_is_consolidated_in_smaller_ones(tmp_path):
    """Consolidation halves what it asks at once until it fits."""

    def answer(request: ModelRequest):
        if request.purpose != "consolidation":
            return text_reply("ok")
        _small(request)
        return consolidation_reply("They talked.")

    model = ScriptedModel(answer, consolidation=answer)
    async with session_host(tmp_path, model) as host:
        for number in range(12):
            await host.channel.ask(f"number {number} " + "word " * 300)
        assert await host.channel.ask("/new") == "New session started."


async def test_a_tool_call_from_elsewhere_that_names_no_calls_wedges_nothing(tmp_path):
    model = ScriptedModel([text_reply("a"), tool_call_reply(("memory_show", {})), text_reply("b")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("hi")
        await host.wait_for_pending(0)
        for payload in ({}, {"calls": None}, {"calls": ["x", {}]}):
            await host.store.append("fake:1", TapeEntry(0, "tool_call", payload))
    async with session_host(tmp_path, model) as host:
        asked = await host.channel.send("and now?", message_id="another")
        assert await host.channel.wait_for_answer(asked) == "b"
