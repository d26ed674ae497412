"""Showing an answer while it grows: its edits and drafts become the final text, and leave no half message behind."""

from __future__ import annotations

import asyncio
import selectors

import pytest
from delivery_paper import HERE, Paper, Running, answer
from waiting import until

from bot.bus import Activity, PartialAnswer
from channels.delivery.messenger import RateLimited

MINUTES = 600.0


class Passing(selectors.DefaultSelector):
    """Lets the time that the loop would wait pass at once."""

    now = 0.0

    def select(self, timeout=None):
        found = super().select(timeout and 0)
        if not found:
            self.now += timeout or 0
        return found


class PassingLoop(asyncio.SelectorEventLoop):
    """Goes by that time: nothing from outside is waited for here, such as a socket or a thread."""

    def __init__(self) -> None:
        self._passing = Passing()
        super().__init__(self._passing)

    def time(self) -> float:
        return self._passing.now


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "anyio_backend", [("asyncio", {"loop_factory": PassingLoop})], ids=["time passes at once"]
)
async def test_a_flood_of_minutes_is_waited_out_to_its_end(streamed):
    """A platform that is asked again before makes it longer."""
    paper = Paper()
    paper.faults["1"] = [RateLimited(MINUTES)]
    async with Running(paper) as run:
        if streamed:
            run.port.give(PartialAnswer(HERE, "t1", "once upon a time there was a king"))
            await until(lambda: not paper.faults["1"])
        run.port.give(answer("once upon a time there was a queen"))
        await run.port.until_final(1, within=10 * MINUTES)
    assert paper.shown() == ["once upon a time there was a queen"]
    [(_, _, flooded), (_, _, again)] = paper.calls
    assert again - flooded == pytest.approx(MINUTES)


async def test_a_command_answered_during_a_stream_leaves_no_half_message_behind():
    paper = Paper()
    async with Running(paper) as run:
        run.port.give(Activity(HERE, "thinking"))
        run.port.give(PartialAnswer(HERE, "t1", "the answer begins like this, and"))
        await until(lambda: bool(paper.shown()))
        run.port.give(answer("status: fine", "t2"))
        await run.port.until_final(1)
        typed = len(paper.typed)
        await until(lambda: len(paper.typed) > typed)
        run.port.give(answer("the answer begins like this, and ends so"))
        await run.port.until_final(2)
    assert paper.shown() == ["the answer begins like this, and ends so", "status: fine"]
