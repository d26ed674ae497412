"""Nothing is forgotten before whoever may has confirmed what was shown, and no more than that goes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from forget_home import AUNT, BOB, CAT, home
from forget_traces import erase, traces, until_clean

from bot.memory.records.tombstones import is_erased
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply


async def test_the_tool_asks_and_the_person_confirms(tmp_path: Path) -> None:
    async with home(tmp_path) as host:
        await host.channel.ask(f"remember: my cat is called {CAT}")
        told = await host.channel.ask(f"Please erase what you know of {CAT}")
        found = re.search(r"/memory forget yes (\d+)", told)
        assert found is not None, told
        assert traces(tmp_path, [CAT])
        assert "Forgotten: 1 fact" in await host.channel.ask(found[0])
        await until_clean(host, tmp_path, [CAT])


async def test_no_more_goes_than_was_shown(tmp_path: Path) -> None:
    async with home(tmp_path) as host:
        await host.channel.ask(f"/memory add My cat is called {CAT}")
        await host.channel.ask("/memory edit 1 My cat is called Tom")
        await host.channel.ask("/memory add Our old cat sleeps")
        await host.channel.ask("/memory edit 3 Our old cat is awake")
        await host.channel.ask("/memory clear yes")
        answer = await erase(host, CAT)
        assert answer.startswith("Forgotten: 1 fact, 1 message and")
        said = [one.data["arguments"] for one in await host.events("command")]
        assert {"add Our old cat sleeps", "edit 1 My cat is called Tom"} <= set(said)
        await until_clean(host, tmp_path, [CAT])


async def test_a_confirmation_counts_once_and_only_for_the_newest_request(tmp_path: Path) -> None:
    async with home(tmp_path) as host:
        await host.channel.ask(f"The cat {CAT} and the aunt {AUNT}.")
        await host.channel.ask(f"/memory forget {CAT}")
        first = host.channel.answers[-1].buttons[0].command
        await host.channel.ask(f"/memory forget {AUNT}")
        second = host.channel.answers[-1].buttons[0].command
        assert "newest" in await host.channel.ask(first)
        assert traces(tmp_path, [CAT])
        done = await host.channel.ask(second)
        assert done.startswith("Forgotten: 0 facts, 1 message")
        assert await host.channel.ask(second) == done
        assert "no such request" in await host.channel.ask("/memory forget yes 1")
        await host.channel.ask("My dog is Rex")
        await host.channel.ask("/memory forget Rex")
        late = host.channel.answers[-1].buttons[0].command
        assert isinstance(host.clock, ManualClock)
        host.clock.advance(25 * 3600)
        assert "more than a day old" in await host.channel.ask(late)
        assert "Rex" in str(await host.tape())


async def test_while_a_turn_runs_nothing_is_erased(tmp_path: Path) -> None:
    held = PausedStep(text_reply("done"))
    steps = [text_reply("one"), held]
    async with home(tmp_path, ScriptedModel(steps)) as host:
        await host.channel.ask(f"My cat is {CAT}")
        await host.channel.ask(f"/memory forget {CAT}")
        button = host.channel.answers[-1].buttons[0].command
        running = await host.channel.send("Hello")
        await held.entered.wait()
        assert "/stop" in await host.channel.ask(button)
        assert traces(tmp_path / "tapes", [CAT])
        held.release.set()
        await host.channel.wait_for_answer(running)
        assert "Forgotten" in await host.channel.ask(button)
        await until_clean(host, tmp_path, [CAT])


async def test_in_a_group_a_member_may_erase_what_is_theirs_alone(tmp_path: Path) -> None:
    async with home(tmp_path) as host:
        group: dict[str, Any] = {"private": False, "chat": "9"}
        for sender in (None, BOB):
            who = group if sender is None else {**group, "sender": sender, "role": "member"}
            await host.channel.wait_for_answer(await host.channel.send(f"I met {CAT} today", **who))
        bob = {**group, "sender": BOB, "role": "member"}
        assert "1 message" in await erase(host, CAT, **bob)
        said = [e for e in await host.tape("fake:9") if e.payload.get("role") == "user"]
        assert [is_erased(one) for one in said] == [False, True]
        # Nobody but an owner confirms what somebody else asked for.
        question = await host.channel.send(f"/memory forget {CAT}", **group)
        await host.channel.wait_for_answer(question)
        button = host.channel.answers[-1].buttons[0].command
        refused = await host.channel.send(button, **bob)
        assert "only" in await host.channel.wait_for_answer(refused)
        allowed = await host.channel.send(button, **group)
        assert "Forgotten" in await host.channel.wait_for_answer(allowed)
        await until_clean(host, tmp_path, [CAT])


async def test_what_has_grown_since_it_was_shown_is_asked_anew(tmp_path: Path) -> None:
    async with home(tmp_path) as host:
        await host.channel.ask(f"My cat is {CAT}")
        await host.channel.ask(f"/memory forget {CAT}")
        button = host.channel.answers[-1].buttons[0].command
        for number in range(5):
            await host.channel.ask(f"Again {CAT}, {number}")
        assert (await host.channel.ask(button)).startswith("This would now erase more")
        assert traces(tmp_path / "tapes", [CAT])
        assert "6 messages" in await host.channel.ask(host.channel.answers[-1].buttons[0].command)
        await until_clean(host, tmp_path, [CAT])
