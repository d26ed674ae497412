"""Showing an answer while it grows: its edits and drafts become the final text, and leave no half message behind."""

from __future__ import annotations

from delivery_paper import HERE, Paper, Running, answer
from waiting import until

from bot.bus import Activity, Address, Button, PartialAnswer
from channels.delivery.messenger import MessageGone, RateLimited


async def test_a_stream_becomes_its_answer_without_a_second_message():
    async with Running() as run:
        for length in range(30, 120, 10):
            run.port.give(PartialAnswer(HERE, "t1", "word " * (length // 5)))
            await until(lambda size=length: sum(map(len, run.paper.shown())) >= size)
        run.port.give(answer("the end"))
        await run.port.until_final(1)
    assert run.paper.shown() == ["the end"]


async def test_a_stream_that_starts_anew_doubles_nothing():
    async with Running() as run:
        run.port.give(PartialAnswer(HERE, "t1", "a first try that broke off in the middle"))
        await until(lambda: bool(run.paper.shown()))
        run.port.give(PartialAnswer(HERE, "t1", "a second try, of which there is less yet"))
        run.port.give(answer("a second try that came to its end"))
        await run.port.until_final(1)
    assert run.paper.shown() == ["a second try that came to its end"]


async def test_a_flood_during_a_stream_delays_its_edits_and_the_final_text_arrives():
    paper = Paper()
    async with Running(paper) as run:
        run.port.give(PartialAnswer(HERE, "t1", "once upon a time there was a"))
        await until(lambda: bool(paper.shown()))
        paper.faults["1"] = [RateLimited(0.2)]
        run.port.give(PartialAnswer(HERE, "t1", "once upon a time there was a king"))
        await until(lambda: not paper.faults["1"])
        run.port.give(answer("once upon a time there was a queen"))
        await run.port.until_final(1)
    assert paper.shown() == ["once upon a time there was a queen"]
    # A platform that is asked again during a flood makes it longer.
    _, (_, _, flooded), (_, _, again), *_ = paper.calls
    assert again - flooded >= 0.15


async def test_a_message_that_was_deleted_while_it_streamed_is_sent_anew():
    paper = Paper()
    async with Running(paper) as run:
        run.port.give(PartialAnswer(HERE, "t1", "a text that somebody takes away"))
        await until(lambda: bool(paper.shown()))
        paper.pages["1"].clear()
        run.port.give(answer("a text that arrives all the same"))
        await run.port.until_final(1)
    assert paper.shown() == ["a text that arrives all the same"]


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


async def test_drafts_are_shown_where_there_are_any_and_become_one_message():
    paper = Paper(drafts=[])
    async with Running(paper) as run:
        run.port.give(PartialAnswer(HERE, "t1", "a draft that is no message yet"))
        await until(lambda: bool(paper.drafts))
        assert paper.shown() == []
        run.port.give(answer("a message that stays"))
        await run.port.until_final(1)
    assert paper.shown() == ["a message that stays"]


async def test_a_part_that_cannot_be_edited_any_more_is_taken_away_and_the_answer_sent_whole():
    class TooOld(Paper):
        async def edit(
            self, address: Address, message_id: str, piece: str, buttons: tuple[Button, ...] = ()
        ) -> None:
            raise MessageGone("message can't be edited")

    async with Running(TooOld()) as run:
        run.port.give(PartialAnswer(HERE, "t1", "half of an answer that grows"))
        await until(lambda: run.paper.shown() == ["half of an answer that grows"])
        run.port.give(answer("half of an answer that grows and ends"))
        await run.port.until_final(1)
    assert "".join(run.paper.shown()) == "half of an answer that grows and ends"
