"""The problem tools: what they tell, what they note, and what they do once the turn has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from bot.bus import Sender
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.service import TapeService
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

BOB = Sender("8", "Bob")
DONE = {"paused": "pause", "background": "background", "completed": "complete"}


def work(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """Return the call that notes something, or does something with a problem."""
    if name == "close":
        kind, text = DONE[arguments["state"]], arguments.get("problem", "")
        return "problem_note", {"kind": kind, "text": text}
    if name == "open":
        return "problem_note", {"kind": "open", "text": arguments["problem"]}
    return "problem_note", arguments if name == "note" else {"kind": name, **arguments}


class Chat:
    """A chat in which the model calls what a test says, and the test reads the results."""

    def __init__(self) -> None:
        self.planned: list[tuple[str, dict[str, Any]]] = []
        self.model = ScriptedModel(self._step)
        self.host: Host

    def _step(self, request: Any) -> Any:
        planned, self.planned = self.planned, []
        return tool_call_reply(*planned) if planned else text_reply("done")

    async def call(self, *planned: tuple[str, dict[str, Any]], **more: Any) -> list[str]:
        """Let a turn call tools; return what they answered."""
        self.planned = list(planned)
        sent = await self.host.channel.send("do it", **more)
        await self.host.channel.wait_for_answer(sent)
        # What a turn wants is done before the next thing that it is asked.
        await self.host.channel.ask("/status")
        results = [m for m in self.model.requests_for()[-1].messages if m["role"] == "tool"]
        found = [str(one["content"]).partition("\n\n<records>")[0] for one in results]
        return found[-len(planned) :]

    async def one(self, name: str, **arguments: Any) -> str:
        return (await self.call(work(name, **arguments)))[0]

    async def states(self) -> dict[str, str]:
        return {one.name: one.state for one in await self.problems()}

    async def problems(self) -> list[Any]:
        tape = TapeService(self.host.store, "fake:1")
        fold = await load_fold(tape, max_messages=200, max_tokens=96_000)
        held = fold.compartments
        found = [held.problem(name) for name in held.problems]
        return [one for one in found if one is not None]


@pytest.fixture
async def chat(tmp_path: Path):
    made = Chat()
    async with session_host(tmp_path, made.model) as host:
        made.host = host
        yield made


async def test_a_problem_that_is_opened_is_worked_on_once_the_answer_is_given(chat):
    assert "'Taxes' (p1) is opened once you have answered" in await chat.one(
        "open", problem="Taxes"
    )
    assert await chat.states() == {"Taxes": "active", "general": "paused"}
    await chat.one("note", kind="ask", text="which year?")
    back = await chat.one("open", problem="GENERAL")
    assert "'general' (general) is opened" in back
    told = await chat.one("open", problem="p1")
    assert told.endswith("What it came to so far:\nopen: which year?")
    assert await chat.one("open", problem="tax") == "'Taxes' is the current problem."
    assert await chat.states() == {"Taxes": "active", "general": "paused"}


@pytest.mark.parametrize("state", ["paused", "background", "completed"])
async def test_the_current_problem_is_closed_once_the_answer_is_given(chat, state):
    await chat.one("open", problem="Taxes")
    await chat.one("note", kind="must", text="be done by May")
    [told, listed] = await chat.call(work("close", state=state), work("list"))
    assert told == f"'Taxes' will be {state} once you have answered; answer now."
    assert "p1: Taxes (worked on now" in listed
    assert await chat.states() == {"Taxes": state, "general": "active"}


async def test_another_problem_is_closed_at_once(chat):
    await chat.one("open", problem="Taxes")
    await chat.one("open", problem="Trip")
    assert await chat.one("close", state="completed", problem="taxes") == "'Taxes' is completed."
    assert await chat.one("close", state="paused", problem="taxes") == "'Taxes' is completed."
    assert "general is always there" in await chat.one("close", state="paused", problem="general")
    assert "no problem 'nothing'" in await chat.one("close", state="paused", problem="nothing")
    assert await chat.states() == {"Taxes": "completed", "Trip": "active", "general": "paused"}


async def test_notes_are_shown_with_the_list_and_taken_away_by_their_text(chat):
    await chat.one("open", problem="Taxes")
    for kind, text, why in (
        ("must", "be done by May", ""),
        ("must-not", "cost over 100", ""),
        ("assume", "the form is the same", ""),
        ("ask", "which year?", ""),
        ("decide", "do it online", "it is free"),
        ("draft", "Dear office", "letter"),
    ):
        assert await chat.one("note", kind=kind, text=text, why=why) == "Noted."
    listed = await chat.one("list")
    assert listed.startswith("p1: Taxes (worked on now, used 2026-02-10)\n")
    assert listed.count("be done by May") == 1
    for text in ("must: be done by May", "open: which year?", "draft letter: Dear office"):
        assert text in listed
    assert await chat.one("note", kind="drop", text="Which year?") == "Dropped."
    assert await chat.one("note", kind="drop", text="letter") == "Dropped."
    listed = await chat.one("list")
    assert "which year" not in listed
    assert "Dear office" not in listed
    assert "no note says this" in await chat.one("note", kind="drop", text="which year?")
    assert "a draft needs a name" in await chat.one("note", kind="draft", text="Dear")


async def test_a_note_is_no_place_for_secrets_and_nothing_is_noted_while_memory_is_paused(chat):
    secret = "the password is hunter2-Xy77!"
    assert "it looks like a password" in await chat.one("note", kind="must", text=secret)
    await chat.host.channel.ask("/memory pause")
    assert "paused memory" in await chat.one("note", kind="must", text="be quiet")
    assert "be quiet" not in await chat.one("list")


async def test_in_a_group_a_member_moves_the_model_to_no_switch(chat):
    await chat.one("open", problem="Taxes")
    for wanted in (work("open", problem="general"), work("close", state="completed")):
        [told] = await chat.call(wanted, sender=BOB, role="member", private=False)
        assert "only an owner" in told
    assert await chat.states() == {"Taxes": "active", "general": "paused"}


async def test_a_call_that_a_kill_cut_short_makes_and_wants_one_problem(tmp_path: Path):
    chat = Chat()
    entered, release = anyio.Event(), anyio.Event()

    class Interrupted(ScriptedModel):
        """Waits before its second step, so that what runs can be cut off there."""

        async def complete(self, request: Any, on_text: Any = None) -> Any:
            if request.messages[-1]["role"] == "tool" and not release.is_set():
                entered.set()
                await release.wait()
            return await super().complete(request, on_text)

    model = Interrupted(chat._step)
    chat.planned = [work("open", problem="Taxes")]
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("do it")
        with anyio.fail_after(30):
            await entered.wait()
    release.set()
    async with session_host(tmp_path, model) as host:
        chat.host = host
        assert await host.channel.wait_for_answer(sent) == "done"
        assert len(await host.wait_for_event("problem/p1")) == 1
        assert await chat.states() == {"Taxes": "active", "general": "paused"}
