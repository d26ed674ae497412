"""Examples for training: whole turns, every call answered, as the model saw them."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from exchange_files import UTC, export, tapes
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sampling import examples

from bot.tape.entries import (
    CONTEXT_OVERFLOW,
    MEMORY_CONSOLIDATED,
    SESSION_NEW,
    SESSION_START,
    TapeEntry,
    anchor,
    event,
    message,
    system,
    tool_call,
    tool_result,
)
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, memory_save_call, text_reply, tool_call_reply
from bot.transfer.export import export_chunks
from bot.transfer.trajectories import Trajectories

TAPE = "telegram:42"


def numbered(*entries: TapeEntry) -> list[TapeEntry]:
    return [
        TapeEntry(number, one.kind, one.payload, {"ts": "2026-02-10T10:00:00+00:00", **one.meta})
        for number, one in enumerate(entries, start=1)
    ]


def lines_of(entries: list[TapeEntry]) -> list[dict[str, Any]]:
    trajectories = Trajectories()
    lines = [line for entry in entries for line in trajectories.take(entry)]
    return [json.loads(line) for line in [*lines, *trajectories.finish()]]


def check(example: dict[str, Any]) -> list[dict[str, Any]]:
    """Assert that a line is a chat fine-tuning example; return its messages."""
    assert set(example) == {"messages"}
    messages = example["messages"]
    spoken = messages[1:] if messages[0]["role"] == "system" else messages
    assert spoken[0]["role"] == "user"
    assert spoken[-1]["role"] == "assistant"
    assert not spoken[-1].get("tool_calls")
    waiting: list[str] = []
    for one in messages:
        if one["role"] == "tool":
            assert set(one) == {"role", "tool_call_id", "content"}
            assert waiting.pop(0) == one["tool_call_id"]
            continue
        assert not waiting
        assert one["role"] in ("system", "user", "assistant")
        assert isinstance(one["content"], str) or (one["content"] is None and one["tool_calls"])
        for call in one.get("tool_calls", []):
            assert call["type"] == "function"
            assert call["function"]["name"].replace("-", "_").replace("_", "a").isalnum()
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            waiting.append(call["id"])
    assert [one["role"] for one in messages].count("system") <= 1
    return messages


_ids = st.sampled_from(["a", "b", "", "\ud800"])
_any = st.one_of(
    st.builds(message, st.sampled_from(["user", "assistant", "odd"]), st.text(max_size=5)),
    st.builds(
        lambda text, **meta: message("user", text, **meta),
        st.text(max_size=5),
        queued=st.just(True),
    ),
    st.builds(
        lambda text, old: message("user", text, replaces=old),
        st.text(max_size=5),
        st.integers(1, 30),
    ),
    st.builds(
        lambda ids, text: tool_call(
            text, [{"id": i, "name": "a.b", "arguments": text} for i in ids]
        ),
        st.lists(_ids, max_size=2, unique=True),
        st.text(max_size=5),
    ),
    st.builds(tool_result, _ids, st.just("a.b"), st.text(max_size=5)),
    st.builds(lambda ids: event("loop.step", {"joined": ids}), st.lists(st.integers(1, 30))),
    st.builds(lambda text: event("turn.start", {"turn": text}), st.text(max_size=3)),
    st.builds(system, st.text(max_size=5)),
    st.builds(
        lambda name, keep: anchor(name, {"keep_from": keep, "through": keep}),
        st.sampled_from([SESSION_NEW, CONTEXT_OVERFLOW, MEMORY_CONSOLIDATED]),
        st.none() | st.integers(-1, 40),
    ),
)


@given(st.lists(_any, max_size=30))
@hypothesis_settings(max_examples=examples(400))
def test_whatever_a_tape_holds_each_line_is_a_valid_example(entries):
    for example in lines_of(numbered(*entries)):
        check(example)


async def test_what_the_model_saw_is_what_is_exported_without_the_tail(tmp_path):
    def model(request: Any) -> Any:
        newest = str(request.messages[-1]["content"])
        if "remember" in newest and request.messages[-1]["role"] == "user":
            return tool_call_reply(memory_save_call("likes tea"))
        return text_reply(f"answer {len(request.messages)}")

    scripted = ScriptedModel(model)
    async with session_host(tmp_path, scripted) as host:
        for text in ("hello", "remember that I like tea", "and now?"):
            await host.channel.ask(text)
        await host.channel.ask("/new now")
        await host.channel.ask("again")
        lines = [piece async for piece in export_chunks(host.store, "fake:1", "trajectories", UTC)]
    first, second = (check(json.loads(line)) for line in b"".join(lines).splitlines())
    seen = [dict(one) for one in scripted.requests[3].messages]
    # What was saved in this phase rides in the tail of its later requests only.
    assert "<records>" in seen[-1]["content"]
    seen[-1]["content"] = seen[-1]["content"].partition("\n\n<records>")[0]
    assert first[1:-1] == seen[1:]
    assert first[0] == scripted.requests[0].messages[0]
    assert [one["role"] for one in first].count("tool") == 1
    assert "again" in second[1]["content"]
    assert second[0]["content"] != first[0]["content"]
    assert not any("<records>" in str(one["content"]) for one in (*first[1:], *second[1:]))


def test_a_phase_is_a_line_and_what_an_anchor_keeps_belongs_to_the_next():
    entries = numbered(
        anchor(SESSION_START),
        message("user", "one"),
        message("assistant", "first"),
        message("user", "two"),
        tool_call("", [{"id": "c", "name": "look", "arguments": "{}"}]),
        tool_result("c", "look", "seen"),
        anchor(CONTEXT_OVERFLOW, {"summary": "one was said", "keep_from": 4}),
        message("assistant", "second"),
        anchor(SESSION_NEW),
        message("user", "unanswered"),
    )
    first, second = map(check, lines_of(entries))
    assert [one["content"] for one in first][1] == "first"
    assert [one["role"] for one in second] == ["user", "assistant", "tool", "assistant"]


def test_a_queued_message_stands_where_it_joined_and_an_edit_in_the_place_of_the_edited():
    entries = numbered(
        message("user", "one"),
        message("user", "meanwhile", queued=True),
        message("user", "one, corrected", replaces=1),
        message("user", "only overheard", queued=True, overheard=True),
        tool_call("", [{"id": "c", "name": "look", "arguments": "no json"}]),
        tool_result("c", "look", "seen"),
        message("assistant", "first"),
        event("turn.start", {"joined": [2]}),
        message("assistant", "second"),
    )
    (example,) = lines_of(entries)
    said = [str(one["content"]).rpartition("] ")[2] for one in check(example)]
    assert said == ["one, corrected", "None", "seen", "first", "meanwhile", "second"]


def test_a_message_that_waits_across_a_boundary_is_in_the_phase_that_takes_it_in():
    entries = numbered(
        message("user", "one"),
        message("user", "later", queued=True),
        message("assistant", "first"),
        anchor(SESSION_NEW),
        event("turn.start", {"joined": [2]}),
        message("assistant", "second"),
    )
    first, second = map(check, lines_of(entries))
    assert "later" not in json.dumps(first)
    assert "later" in second[0]["content"]


def test_an_example_has_the_prompt_of_its_own_first_turn():
    entries = numbered(
        message("user", "one"),
        system("prompt A"),
        message("assistant", "first"),
        message("user", "two"),
        system("prompt B"),
        message("assistant", "second"),
        anchor(SESSION_NEW),
        message("user", "three"),
        message("assistant", "third"),
        anchor(SESSION_NEW),
        message("user", "four"),
        system("prompt C"),
        message("assistant", "fourth"),
    )
    prompts = [check(one)[0]["content"] for one in lines_of(entries)]
    assert prompts == ["prompt A", "prompt B", "prompt C"]


def test_an_orphan_call_is_completed_and_an_orphan_result_left_out():
    entries = numbered(
        message("user", "one"),
        tool_result("x", "look", "nobody asked"),
        tool_call("", [{"id": "c", "name": "look", "arguments": "{}"}]),
        message("assistant", "first"),
    )
    (example,) = lines_of(entries)
    results = [one for one in check(example) if one["role"] == "tool"]
    assert len(results) == 1
    assert "Interrupted" in results[0]["content"]


@pytest.mark.slow
@pytest.mark.parametrize("turns", [4_000, pytest.param(20_000, marks=pytest.mark.night)])
def test_a_phase_of_many_queued_messages_costs_what_it_is_long(tmp_path, turns):
    async def run() -> None:
        async with tapes(tmp_path) as store:
            await store.create_tape(TAPE)
            for turn in range(turns):
                base = await store.version(TAPE)
                await store.append_many(
                    TAPE,
                    [
                        message("user", f"q {turn}", queued=True),
                        event("turn.start", {"joined": [base + 1]}),
                        message("assistant", "fine"),
                    ],
                )
            line = json.loads(await export(store, TAPE, "trajectories"))
            assert len(check(line)) == 2 * turns

    anyio.run(run)


def test_what_nobody_takes_in_of_a_group_is_not_held():
    made = Trajectories()
    for number in range(1, 5_001):
        overheard = message("user", f"chatter {number}", overheard=True)
        list(made.take(TapeEntry(number, "message", overheard.payload, overheard.meta)))
    joined = event("turn.start", {"joined": [4_999, 5_000]})
    list(made.take(TapeEntry(5_001, "event", joined.payload)))
    list(made.take(TapeEntry(5_002, "message", {"role": "assistant", "content": "fine"})))
    held = made._overheard | made._queued  # what is asked is what it holds
    assert held.keys() == {4_999, 5_000}
    [line] = made.finish()
    assert [len(one["content"]) > 0 for one in json.loads(line)["messages"]] == [True] * 3
