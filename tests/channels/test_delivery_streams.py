"""Showing an answer while it grows: its edits and drafts become the final text, and leave no half message behind."""

from __future__ import annotations

import anyio
from delivery_paper import HERE, LIMIT, Paper, Running, answer
from waiting import until

from bot.bus import Activity, Address, Button, PartialAnswer
from channels.delivery.answer_stream import AnswerStream
from channels.delivery.messenger import MessageGone, Pace, RateLimited, RateLimitState


async def test_a_stream_becomes_its_answer_without_a_second_message():
    async with Running() as run:
        for length in range(30, 120, 10):
            run.port.give(PartialAnswer(HERE, "t1", "word " * (length // 5)))
            await until(lambda size=length: sum(map(len, run.paper.shown())) >= size)
        run.port.give(answer("the end"))
        await run.port.until_final(1)
    assert run.paper.shown() == ["the end"]


async def test_a_first_part_above_the_limit_is_split_while_it_streams():
    async with Running() as run:
        run.port.give(PartialAnswer(HERE, "t1", "x" * 100))
        await until(lambda: len(run.paper.shown()) == 3)
        run.port.give(answer("x" * 110))
        await run.port.until_final(1)
    assert "".join(run.paper.shown()) == "x" * 110


async def test_a_stream_that_starts_anew_doubles_nothing():
    async with Running() as run:
        run.port.give(PartialAnswer(HERE, "t1", "a first try that broke off in the middle"))
        await until(lambda: bool(run.paper.shown()))
        run.port.give(PartialAnswer(HERE, "t1", "a second try, of which there is less yet"))
        run.port.give(answer("a second try that came to its end"))
        await run.port.until_final(1)
    assert run.paper.shown() == ["a second try that came to its end"]


async def test_a_partial_that_comes_after_its_answer_changes_nothing():
    async with Running() as run:
        run.port.give(answer("the end of the story, told in full"))
        await run.port.until_final(1)
        run.port.give(PartialAnswer(HERE, "t1", "the end of the story, told in"))
        run.port.give(answer("next", "t2"))
        await run.port.until_final(2)
    assert run.paper.shown() == ["the end of the story, told in full", "next"]


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


async def test_edits_are_spaced_and_only_the_newest_text_is_shown():
    paper = Paper(interval=0.05)
    async with Running(paper) as run:
        began = anyio.current_time()
        for most in range(40, 80, 10):
            run.port.give(
                *(PartialAnswer(HERE, "t1", "y" * size) for size in range(most - 9, most + 1))
            )
            await until(lambda size=most: "".join(paper.shown()) == "y" * size)
        run.port.give(answer("y" * 80))
        await run.port.until_final(1)
        lasted = anyio.current_time() - began
    assert "".join(paper.shown()) == "y" * 80
    edits = [when for call, _, when in paper.calls if call == "edit"]
    # However long it took on a busy machine: one in each interval, and the answer's own.
    assert 0 < len(edits) <= lasted / paper.interval + 2


async def test_a_message_that_was_deleted_while_it_streamed_is_sent_anew():
    paper = Paper()
    async with Running(paper) as run:
        run.port.give(PartialAnswer(HERE, "t1", "a text that somebody takes away"))
        await until(lambda: bool(paper.shown()))
        paper.pages["1"].clear()
        run.port.give(answer("a text that arrives all the same"))
        await run.port.until_final(1)
    assert paper.shown() == ["a text that arrives all the same"]


async def test_a_part_that_was_deleted_leaves_no_part_twice():
    paper = Paper()
    first, second = "a" * LIMIT, "b" * 10
    async with Running(paper) as run:
        run.port.give(PartialAnswer(HERE, "t1", first + second))
        await until(lambda: len(paper.shown()) == 2)
        del paper.pages["1"]["1"]
        run.port.give(answer("c" * LIMIT + second))
        await run.port.until_final(1)
    assert paper.shown() == ["c" * LIMIT, second]


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


async def test_a_draft_is_shown_again_before_it_goes_while_the_turn_runs(monkeypatch):
    monkeypatch.setattr("channels.delivery.answer_stream._DRAFT_SECONDS", 0.05)
    monkeypatch.setattr("channels.delivery.answer_stream._DRAFT_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr("channels.delivery.dispatcher._IDLE_SECONDS", 0.1)
    paper = Paper(drafts=[])
    async with Running(paper) as run:
        run.port.give(Activity(HERE, "tool"))
        run.port.give(PartialAnswer(HERE, "t1", "a draft that is no message yet"))
        await until(lambda: len(paper.drafts) >= 3)
        run.port.give(answer("a message that stays"), Activity(HERE, "idle"))
        await run.port.until_final(1)
        drafts = len(paper.drafts)
        await run.until_left()
    assert len(paper.drafts) == drafts


async def test_a_flood_of_drafts_holds_no_answer_back():
    drafted = anyio.Event()

    class Drafty(Paper):
        async def draft(self, address: Address, stream: str, piece: str) -> bool:
            drafted.set()
            raise RateLimited(30)

    async with Running(Drafty()) as run:
        run.port.give(PartialAnswer(HERE, "t1", "a draft that is no message yet"))
        await drafted.wait()
        run.port.give(answer("a message that stays"))
        await run.port.until_final(1, within=20)
    assert run.paper.shown() == ["a message that stays"]


async def test_drafts_are_shown_where_there_are_any_and_become_one_message():
    paper = Paper(drafts=[])
    async with Running(paper) as run:
        run.port.give(PartialAnswer(HERE, "t1", "a draft that is no message yet"))
        await until(lambda: bool(paper.drafts))
        assert paper.shown() == []
        run.port.give(answer("a message that stays"))
        await run.port.until_final(1)
    assert paper.shown() == ["a message that stays"]


async def test_a_streamed_answer_begins_within_half_a_second_and_drafts_follow_a_second_apart():
    class Plain(Paper):
        def pace(self, _: Address) -> Pace:
            return Pace(edit=1.0, typing=4.5)

    paper = Plain(drafts=[])
    stream = AnswerStream(paper, RateLimitState(), lambda _, __: anyio.lowlevel.checkpoint())
    stream.put(PartialAnswer(HERE, "t1", "a draft that is no message yet"))
    await stream.show()
    assert paper.drafts == []
    assert stream.seconds_until_due(busy=True) <= 0.5
    await stream.show()
    assert paper.drafts == ["a draft that is no message yet"]
    stream.put(PartialAnswer(HERE, "t1", "a draft that is no message yet, and goes on"))
    assert stream.seconds_until_due(busy=True) <= 1.0


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
