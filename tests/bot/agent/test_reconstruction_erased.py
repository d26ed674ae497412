"""A request that is shown again names the entries of its messages, also beside erased calls."""

from __future__ import annotations

from pathlib import Path

from bot.agent.request_reconstruction import reconstruct_request
from bot.agent.turn_history import past_turns
from bot.llm.base import ModelReply
from bot.tape.service import TapeService
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


async def test_a_call_behind_an_erased_one_is_named_by_its_own_entry(tmp_path: Path) -> None:
    steps: list[ModelReply] = []
    model = ScriptedModel(lambda _: steps.pop() if steps else text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        for text in ("green tea", "rain"):
            steps.append(tool_call_reply(("memory_daily", {"content": text})))
            await host.channel.ask(f"Please note: {text}")
        await host.channel.ask('/memory forget "green tea"')
        await host.channel.ask(host.channel.answers[-1].buttons[0].command)
        await host.channel.ask("Hello")
        tape = TapeService(host.store, "fake:1")
        turns = [one async for one in past_turns(tape, scanned=1_000)]
        shown = await reconstruct_request(
            tape, turns[0], turns[0].calls[-1], host.services.agent.timezone
        )
        kinds = {entry.id: entry.kind for entry in await host.tape()}
    called = [one for one in shown.history if one.message.get("tool_calls")]
    results = [one for one in shown.history if one.message["role"] == "tool"]
    assert "rain" in str([one.message for one in called])
    assert [kinds[one.entries[0]] for one in called + results] == ["tool_call", "tool_result"]
    assert called[0].entries < results[0].entries
    calls = [one for one, kind in kinds.items() if kind == "tool_call"]
    assert called[0].entries == (calls[-1],)
