"""One person on several channels: joined, parted again, and kept apart, with nothing lost."""

from __future__ import annotations

import anyio
import pytest
from link_home import ADA, ELSE, consolidation, home, turn

from bot.bus import Sender
from bot.testing.host import HostLimits
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    consolidation_reply,
    fact_change,
)

# Joining.


async def test_what_is_told_on_one_channel_is_known_on_the_other_and_never_in_a_group(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ADA, "remember: I like zebras")
        await here.ask(ELSE, "remember: I like yaks")
        assert "zebras" not in await here.prompt(ELSE)
        told = await here.join(ADA, ELSE)
        assert "Linked with `N9` on other" in told
        assert "Linked with `N7` on fake" in (await here.until_told(ELSE, "Linked")).text
        for where in (ADA, ELSE):
            assert {"zebras", "yaks"} <= _animals(await here.prompt(where))
            assert {"zebras", "yaks"} <= _animals(await here.ask(where, "/memory"))
        group = {"sender": Sender("9", "Ada"), "private": False}
        assert _animals(await here.prompt("other:g", **group)) == set()
        assert _animals(await here.prompt("fake:g", "LOOK", **group)) == set()
        # The same id on another channel is somebody else.
        assert _animals(await here.prompt("third:7")) == set()
        assert _animals(await here.prompt("third:9")) == set()
        await here.ask(ELSE, "remember: I like xerus")
        assert "xerus" in _animals(await here.prompt(ADA))


# Parting.


@pytest.mark.slow
@pytest.mark.parametrize("who", [ADA, ELSE])
async def test_parted_each_knows_what_was_its_own_and_nothing_of_the_other(tmp_path, who):
    async with home(tmp_path) as here:
        await here.ask(ADA, "remember: I like zebras")
        await here.ask(ELSE, "remember: I like yaks")
        await here.join(ADA, ELSE)
        await here.ask(ADA, "remember: I own a quokka")
        await here.ask(ELSE, "remember: I own a numbat")
        await here.ask(ADA, "remember: I like tapirs")
        await here.ask(ELSE, "remember: I like tapirs")
        for where in (ADA, ELSE):
            await here.ask(where, "/new")
            assert {"zebras", "yaks", "quokka"} <= _animals(await here.prompt(where))
        asked = await here.ask(who, "/unlink")
        assert "/unlink yes" in asked
        await here.ask(who, here.told(who)[-1].buttons[0].command)
        other = ELSE if who == ADA else ADA
        assert "its own memory" in (await here.until_told(other, "is no longer linked")).text
        assert _animals(await here.prompt(ADA, "LOOK")) == {"zebras", "quokka", "tapirs"}
        assert _animals(await here.prompt(ELSE, "LOOK")) == {"yaks", "numbat", "tapirs"}
        for where, tape in ((ADA, "fake:7"), (ELSE, "other:9")):
            for fact in (await here.scope(tape)).active():
                assert {one.tape for one in fact.evidence} == {where}
        # What is learned from now on stays apart, and no undo brings the other's back.
        await here.ask(ADA, "remember: I like voles")
        assert "voles" not in _animals(await here.prompt(ELSE, "LOOK"))
        for where in (ADA, ELSE):
            for _ in range(4):
                await here.ask(where, "/memory undo")
        assert _animals(await here.prompt(ADA, "LOOK")) <= {"zebras", "quokka", "tapirs", "voles"}
        assert _animals(await here.prompt(ELSE, "LOOK")) <= {"yaks", "numbat", "tapirs"}
        assert await here.facts("fake:7") == {
            "I like zebras", "I own a quokka", "I like tapirs",
        }  # fmt: skip


async def test_what_one_side_replaced_holds_again_for_the_other(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ADA, "remember: I like zebras")
        await here.ask(ELSE, "remember: I like yaks")
        await here.join(ADA, ELSE)
        await here.ask(ELSE, "/memory edit 1 I own a quokka")
        await here.ask(ADA, "/memory edit 2 I own a numbat")
        await here.ask(ELSE, "/memory edit 3 I like tapirs")
        for where in (ADA, ELSE):
            assert _animals(await here.prompt(where)) >= {"numbat", "tapirs"}
            assert _animals(await here.ask(where, "/memory")) == {"numbat", "tapirs"}
        await here.part(ELSE)
        assert await here.facts("fake:7") == {"I like zebras", "I own a numbat"}
        assert await here.facts("other:9") == {"I like yaks", "I like tapirs"}
        assert _animals(await here.prompt(ELSE)) == {"yaks", "tapirs"}
        # Joined again, what words on either side ended stays ended; parted again, so does the rest.
        await here.join(ADA, ELSE)
        assert await here.facts("fake:7") == {
            "I like zebras", "I own a numbat", "I like tapirs",
        }  # fmt: skip
        await here.ask(ADA, "/memory undo")
        await here.part(ADA)
        assert await here.facts("fake:7") == {"I like zebras", "I own a numbat"}
        assert await here.facts("other:9") == {"I like yaks", "I like tapirs"}


async def test_values_are_shared_while_linked_and_each_sides_own_again_after(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ADA, "/reference set deadline Friday")
        here.clock.advance(60)
        await here.ask(ELSE, "/reference set deadline Monday")
        await here.ask(ADA, "/reference set colour red")
        await here.join(ADA, ELSE)
        for where in (ADA, ELSE):
            told = await here.ask(where, "/reference")
            assert "Monday" in told
            assert "red" in told
        assert "Friday" in await here.ask(ELSE, "/reference versions deadline")
        here.clock.advance(60)
        await here.ask(ELSE, "/reference set colour blue")
        await here.ask(ELSE, "/reference set city Rome")
        assert "blue" in await here.ask(ADA, "/reference")
        await here.part(ELSE)
        ours, theirs = await here.ask(ADA, "/reference"), await here.ask(ELSE, "/reference")
        assert [one in ours for one in ("Friday", "red", "Monday", "blue", "Rome")] == [
            True, True, False, False, False,
        ]  # fmt: skip
        assert [one in theirs for one in ("Friday", "red", "Monday", "blue", "Rome")] == [
            False, False, True, True, True,
        ]  # fmt: skip


async def test_a_consolidation_that_runs_while_they_are_parted_learns_nothing_for_the_other(
    tmp_path,
):
    quote = "I like yaks a lot."
    held = PausedStep(
        consolidation_reply("[2026-02-10 10:00] x", fact_change("The user likes yaks.", quote))
    )
    steps = iter([held])
    model = ScriptedModel(
        turn, consolidation=lambda request: next(steps, None) or consolidation(request)
    )
    async with home(tmp_path, model=model, bounds=HostLimits(window=4)) as here:
        await here.join(ADA, ELSE)
        for text in (quote, "Well.", "Yes."):
            await here.ask(ELSE, text)
        with anyio.fail_after(30):
            await held.entered.wait()
        await here.part(ADA)
        held.release.set()
        await here.ask(ELSE, "Go on.")
        await here.host.wait_for_event("memory/consolidated", session=ELSE)
        assert await here.facts("fake:7") == set()
        assert await here.facts("other:9") == {f'On 10 February 2026 the user said: "{quote}"'}


async def test_somebody_else_in_the_chat_makes_it_a_group_also_where_it_is_joined(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ELSE, "remember: I like yaks")
        await here.join(ADA, ELSE)
        stranger = {"sender": Sender("666", "Mallory")}
        assert _animals(await here.prompt(ELSE, "What do you know?", **stranger)) <= {"yaks"}
        assert await here.host.events("memory.scope", ELSE)
        assert (await here.host.events("memory.scope", ELSE))[-1].data == {"home": ELSE}
        await here.ask(ADA, "remember: I like zebras")
        assert "zebras" not in await here.prompt(ELSE, "LOOK")


# Forgetting, and taking away.


async def test_what_is_forgotten_on_one_channel_is_forgotten_on_all(tmp_path):
    async with home(tmp_path) as here:
        await here.ask(ELSE, "remember: I like zqxyak")
        await here.ask(ELSE, "The zqxyak is ill, by the way", topic="t")
        await here.join(ADA, ELSE)
        await here.ask(ADA, "Is a zqxyak large?")
        await here.ask("other:8", "I saw a zqxyak")
        await here.ask("third:7", "I saw a zqxyak")
        await here.ask(ADA, "/memory forget zqxyak")
        await here.ask(ADA, here.told(ADA)[-1].buttons[0].command)
        left = [
            tape
            for tape in await here.host.store.list_tapes()
            if "zqxyak" in str(await here.host.tape(tape))
        ]
        # Only other people's: the same id on another channel is somebody else.
        assert left == ["other:8", "third:7"]
        await here.part(ELSE)
        assert await here.facts("other:9") == set()
        assert "zqxyak" not in await here.prompt(ELSE, "LOOK")


def _animals(text: str) -> set[str]:
    known = ("zebras", "yaks", "xerus", "quokka", "numbat", "tapirs", "voles")
    return {one for one in known if one in text}
