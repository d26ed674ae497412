"""``/new``: everything is kept first, then the next phase begins; or nothing has changed."""

from __future__ import annotations

import anyio

from bot.llm.base import ModelReply, ModelRequest
from bot.memory.records.event_names import HISTORY_EVENT
from bot.tape.entries import MEMORY_CONSOLIDATED, SESSION_NEW
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    consolidation_reply,
    fact_change,
    text_reply,
)

SMALL = HostLimits(window=10)
HOME = fact_change("The user lives in Oslo.", "I live in Oslo")
TOLD = consolidation_reply("[2026-02-10 10:00] Ada said that she lives in Oslo.", HOME)


def model_of(*consolidation) -> ScriptedModel:
    return ScriptedModel(lambda _: text_reply("ok"), consolidation=consolidation)


def _unchanged(_: ModelRequest) -> ModelReply:
    return consolidation_reply("[2026-02-10 10:00] Ada counted.")


async def test_new_keeps_what_was_said_then_hands_it_on(tmp_path):
    """Memory and the summary are in the next prompt; the old words are not, but on the tape."""
    model = model_of(TOLD)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I live in Oslo")
        assert await host.channel.ask("/new") == "New session started."
        await host.channel.ask("hello again")
        [boundary] = await host.events(SESSION_NEW)
        assert boundary.data["reason"] == "/new"
        assert "I live in Oslo" in {e.payload.get("content") for e in await host.tape()}
        [segment] = await host.store.segments("fake:1")
        assert segment.last_id < boundary.id
    system, *history = model.requests_for()[-1].messages
    assert '- [1] On 10 February 2026 the user said: "I live in Oslo' in system["content"]
    assert "summary: [2026-02-10 10:00] Ada said that she lives in Oslo." in system["content"]
    assert len(history) == 1


async def test_only_boundary_anchors_cut_the_view(tmp_path):
    """Saves and consolidations write anchors too; the conversation stays in the prompt."""
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=_unchanged)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        for number in range(6):
            await host.channel.ask(f"number {number}.")
            await host.channel.ask(f"/memory add fact {number}")
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        await host.channel.ask("and?")
        shown = str(model.requests_for()[-1].messages[1:])
        assert "number 5." in shown
        assert "number 4." in shown
        await host.channel.ask("/new")
        await host.channel.ask("hm")
    assert "number 5." not in str(model.requests_for()[-1].messages[1:])


async def test_new_now_begins_at_once_and_the_rest_is_consolidated_later(tmp_path):
    held = PausedStep(TOLD)
    model = model_of(held)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I live in Oslo")
        assert await host.channel.ask("/new now") == "New session started."
        assert await host.channel.ask("hello") == "ok"
        first = str(model.requests_for()[-1].messages)
        assert "The last words were" in first
        held.release.set()
        [history] = await host.wait_for_event(HISTORY_EVENT)
        [boundary] = await host.events(SESSION_NEW)
        assert history.data["range"][1] < boundary.id
        await host.channel.ask("and now?")
    last = model.requests_for()[-1].messages
    assert '- [1] On 10 February 2026 the user said: "I live in Oslo' in last[0]["content"]
    assert "hello" in str(last[1:])


async def test_new_during_a_running_consolidation_covers_each_message_once(tmp_path):
    """The running one is given up; what it would have said never hides a later message."""
    held = PausedStep(consolidation_reply("[2026-02-10 10:00] Stale."))
    model = model_of(held, TOLD)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        for number in range(5):
            await host.channel.ask(f"number {number}.")
        with anyio.fail_after(30):
            await held.entered.wait()
        assert await host.channel.ask("/new") == "New session started."
        held.release.set()
        await host.channel.ask("after")
        await anyio.wait_all_tasks_blocked()
        [history] = await host.events(HISTORY_EVENT)
        [cursor] = await host.events(MEMORY_CONSOLIDATED)
        [boundary] = await host.events(SESSION_NEW)
        assert "Stale" not in history.data["entry"]
        assert cursor.data["through"] < boundary.id
        await host.channel.ask("again")
    assert "after" in str(model.requests_for()[-1].messages)


async def test_each_message_that_waited_for_new_gets_an_answer_of_its_own(tmp_path):
    held = PausedStep(TOLD)

    def answer(request: ModelRequest) -> ModelReply:
        return text_reply(f"answered: {str(request.messages[-1]['content'])[-3:]}")

    model = ScriptedModel(answer, consolidation=[held])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I live in Oslo")
        new = await host.channel.send("/new")
        await held.entered.wait()
        waiting = [await host.channel.send(text) for text in ("one", "two", "/status", "six")]
        held.release.set()
        assert await host.channel.wait_for_answer(new) == "New session started."
        told = [await host.channel.wait_for_answer(one) for one in waiting]
    assert [told[0], told[1], told[3]] == ["answered: one", "answered: two", "answered: six"]
