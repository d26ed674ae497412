"""What a tape, its service and its view promise: files, phases, forks, and a history that is too long."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import md5
from pathlib import Path

import anyio
import pytest

from bot.agent.views.registry import context_builder
from bot.core.errors import ContextOverflow, TapeNotFound
from bot.llm.call_slots import CallSlots
from bot.runtime.app.build import open_app
from bot.runtime.models import ModelOptions, build_model
from bot.runtime.settings import load_settings
from bot.tape.entries import event, message, tool_call, tool_result
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from testkit.openai_server import Failure, Reply, ScriptedOpenAI

TAPE = "fake:1"
STATE = {"summary": "It is sanded.", "next_steps": ["Paint the hull"], "owner": "human"}


@asynccontextmanager
async def opened(folder: Path, **more: object) -> AsyncIterator[FileTapeStore]:
    store = FileTapeStore(folder, sync=False, **more)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def tape_in(folder: Path) -> AsyncIterator[TapeService]:
    """Yield the tape of the chat ``fake:1`` of a home, while no program runs there."""
    async with opened(folder / "tapes") as store:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        yield tape


async def said(tape: TapeService) -> list[str]:
    return [one.payload["content"] for one in await tape.read_entries() if one.kind == "message"]


# Files.


async def test_a_file_is_named_by_workspace_and_session_and_shared_with_no_other_workspace(
    tmp_path,
):
    for workspace, known in (("/ada", []), ("/bob", []), ("/ada", ["for /ada"])):
        async with opened(tmp_path, workspace=workspace) as store:
            tape = TapeService(store, TAPE)
            await tape.ensure_bootstrap_anchor()
            assert await said(tape) == known
            await tape.append(message("user", f"for {workspace}"))
        name = "__".join(md5(one.encode()).hexdigest()[:16] for one in (workspace, TAPE))
        assert f"for {workspace}" in (tmp_path / f"{name}.jsonl").read_text()


async def test_a_program_in_another_workspace_knows_nothing_and_on_return_everything(tmp_path):
    async def ask(workspace: str, text: str) -> str:
        settings = load_settings(home=tmp_path, workspace=tmp_path / workspace, model="offline")
        async with open_app(settings) as app, anyio.create_task_group() as tasks:
            channel = FakeChannel(app.bus.channel("fake"))
            for run in (app.supervisor.run, app.store.run, channel.run):
                tasks.start_soon(run)
            sent = await channel.send(text, message_id=f"{workspace} {text}")
            answer = await channel.wait_for_answer(sent)
            await app.bus.drain()
            tasks.cancel_scope.cancel()
        return answer

    await ask("ada", "My name is Ada.")
    assert "Ada" not in await ask("bob", "What is my name?")
    assert "Ada" in await ask("ada", "What is my name?")


# Phases.


async def test_after_a_handoff_a_model_sees_its_name_and_state_and_only_what_follows(tmp_path):
    model = ScriptedModel(lambda _: text_reply("Fine."))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("We talk of lighthouses.")
    async with tape_in(tmp_path) as tape:
        await tape.handoff("boat/painting", STATE)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("Which colour?", chat="2")
        await host.channel.ask("Which colour?")
    elsewhere, shown = (str(one.messages) for one in model.requests_for()[-2:])
    for told in ("boat/painting", "It is sanded.", "Paint the hull", "human"):
        assert told in shown
        assert told not in elsewhere
    assert "lighthouses" in str(model.requests_for()[0].messages)
    assert "lighthouses" not in shown


async def test_the_exact_view_is_the_phase_entry_by_entry(tmp_path):
    function = {"name": "t", "arguments": "{}"}
    async with tape_in(tmp_path) as tape:
        await tape.append(message("user", "before"))
        await tape.handoff("boat/painting", STATE)
        await tape.append_many(
            [
                message("user", "look"),
                tool_call("let me see", [{"id": one, **function} for one in ("c1", "c2")]),
                tool_result("c1", "t", "one"),
                tool_result("c2", "t", "two"),
                message("assistant", "Seen."),
                event("a/thing", {"of": "no view"}),
            ]
        )
    model = ScriptedModel(lambda _: text_reply("Fine."))
    async with session_host(tmp_path, model, builder=context_builder("exact")) as host:
        await host.channel.ask("and now?")
    _, head, *shown = model.requests_for()[-1].messages
    assert head["role"] == "assistant"
    name, _, state = head["content"].partition("]: ")
    assert (name, json.loads(state)) == ("[Anchor created: boat/painting", STATE)
    calls = [{"id": one, "type": "function", "function": function} for one in ("c1", "c2")]
    talk = [one for one in shown if "[Anchor created: memory/" not in str(one["content"])]
    assert talk[:-1] == [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "assistant", "content": "Seen."},
    ]
    assert talk[-1]["content"].startswith("and now?")


async def test_a_tape_is_read_by_its_anchors_across_its_sealed_parts(tmp_path):
    async with tape_in(tmp_path) as tape:

        async def say(text: str) -> None:
            await tape.append_many([message("user", text), event("a/thing", {"of": text})])

        async def talk(entries) -> list[str]:
            return [one.payload["content"] for one in await entries if one.kind == "message"]

        for text in ("one", "two"):
            await tape.handoff("begin")
            await say(text)
            await tape.handoff("end", STATE)
            await tape.archive()
            await say(f"after {text}")
        assert await talk(tape.between_anchors("begin", "end")) == ["two"]
        assert await talk(tape.between_anchors("end", "begin")) == ["after one"]
        assert await talk(tape.after_anchor("begin")) == ["two", "after two"]
        kinds = {one.kind for one in await tape.after_anchor("begin", {"event"})}
        assert kinds == {"event"}
        [cut, *phase] = await tape.from_last_anchor({"anchor", "message"})
        assert (cut.name, cut.data) == ("end", STATE)
        assert [one.payload["content"] for one in phase] == ["after two"]
        info = await tape.info()
        assert (info.name, info.entries, info.segments) == (TAPE, await tape.version(), 2)
        assert (info.boundary.name, info.parent) == ("end", None)
        assert info.since_boundary == info.entries - cut.id
        for start, end in (("begin", "nowhere"), ("nowhere", "end")):
            with pytest.raises(TapeNotFound, match="nowhere"):
                await tape.between_anchors(start, end)


# Forks.


class Stopped(Exception):
    """Ends a fork."""


def stop(ending: str) -> None:
    if ending == "an exception":
        raise Stopped


@pytest.mark.parametrize("ending", ["merged", "not merged", "an exception", "a cancellation"])
async def test_what_a_fork_writes_is_hidden_until_its_end_and_there_only_if_it_is_merged(
    tmp_path, ending
):
    async with tape_in(tmp_path) as tape, opened(tmp_path / "tapes", read_only=True) as reader:
        await tape.append(message("user", "before"))
        with anyio.CancelScope() as scope:
            try:
                async with tape.fork(merge_back=ending != "not merged") as fork:
                    await fork.append_many([message("user", "c"), message("user", "d")])
                    await tape.append(message("user", "meanwhile"))
                    assert await said(fork) == ["before", "c", "d"]
                    for outside in (tape, TapeService(reader, TAPE)):
                        assert await said(outside) == ["before", "meanwhile"]
                    stop(ending)
                    if ending == "a cancellation":
                        scope.cancel()
                        await anyio.lowlevel.checkpoint()
            except Stopped:
                assert ending == "an exception"
        kept = ["c", "d"] if ending == "merged" else []
        assert await said(tape) == ["before", "meanwhile", *kept]
        ids = [one.id for one in await tape.read_entries()]
        assert ids == list(range(1, len(ids) + 1))


# What is too long.

LENGTHS = (
    "This model's maximum context length is 9000 tokens.", "CONTEXT LENGTH exceeded",
    "Maximum Context reached", "the token limit was passed", "Prompt Too Long",
)  # fmt: skip


@pytest.mark.parametrize("words", LENGTHS)
async def test_a_history_that_is_too_long_is_set_aside_and_the_message_sent_once_more(
    tmp_path, words
):
    refused: list[str] = []

    def step(body: dict) -> Failure | Reply:
        if "third" in str(body["messages"][-1]) and not refused:
            refused.append(str(body["messages"]))
            return Failure(400, words)
        return Reply("ok")

    async with ScriptedOpenAI(step) as server:
        async with asks(server, tmp_path) as host:
            for text in ("first", "second", "third"):
                assert await host.channel.ask(f"{text} " + "word " * 900) == "ok"
            [cut] = await host.events("auto_handoff/context_overflow")
            assert cut.data["reason"] == "context_length_exceeded"
            assert words in str(cut.data["error"])
            steps = [one.data for one in await host.events("loop.step")]
            assert [one["status"] for one in steps].count("auto_handoff") == 1
            # Nothing is lost: it is out of view and still there.
            assert "first word" in str(await host.tape())
        asked = [str(one["messages"]) for one in server.requests]
        first, second = (one for one in asked if "third word" in one)
        assert [first] == refused
        assert "first word" in first
        assert "first word" not in second


async def test_a_rate_limit_sets_nothing_aside(tmp_path):
    said = iter([Reply("ok"), Failure(429, LENGTHS[3], retry_after="0"), Reply("ok")])
    async with ScriptedOpenAI(lambda _: next(said)) as server, asks(server, tmp_path) as host:
        assert [await host.channel.ask(one) for one in ("first", "second")] == ["ok", "ok"]
        assert await host.events("auto_handoff/context_overflow") == []


async def test_the_second_time_in_a_turn_a_person_reads_that_it_is_too_long(tmp_path):
    long, ok = ContextOverflow("prompt too long"), text_reply("ok")
    model = ScriptedModel([ok, long, long, ok], summary=[ok])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("first")
        answer = await host.channel.ask("second " + "word " * 9)
        assert "Your message is kept" in answer
        assert len(await host.events("auto_handoff/context_overflow")) == 1
        assert len(model.requests_for()) == 3
        assert "second word" in str(await host.tape())
        assert await host.channel.ask("third") == "ok"


@asynccontextmanager
async def asks(server: ScriptedOpenAI, folder: Path):
    """Run a program whose model is on that server."""
    options = ModelOptions(api_base=server.base_url, api_key="key")
    model = build_model("openai/scripted", options, CallSlots(4))
    try:
        async with session_host(folder, model) as host:
            yield host
    finally:
        await model.aclose()
