"""Showing answers: whatever a platform does, the final text arrives, once, in order."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Self

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from waiting import until

from bot.bus import Activity, Address, Answer, Button, DeliveryReport, Outbound, PartialAnswer
from channels.delivery.answer_stream import AnswerStream
from channels.delivery.dispatcher import OutboundDispatcher
from channels.delivery.messenger import (
    FormattingRejected,
    MessageGone,
    MessageRejected,
    MessengerError,
    OutgoingMessage,
    Pace,
    PlatformUnreachable,
    RateLimited,
    RateLimitState,
)

LIMIT = 40
HERE = Address("paper", "1")
THERE = Address("paper", "2")


@dataclass
class Paper:
    """A platform in memory: a strip of messages per chat, and faults to come, one a call."""

    pages: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    replies: dict[str, str | None] = field(default_factory=dict)
    buttons: dict[str, tuple[Button, ...]] = field(default_factory=dict)
    typed: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, float]] = field(default_factory=list)
    faults: dict[str, list[MessengerError]] = field(default_factory=lambda: defaultdict(list))
    drafts: list[str] | None = None
    seen: list[str] = field(default_factory=list)
    interval: float = 0.0
    refuses_markup: bool = False
    numbers: int = 0

    def shown(self, address: Address = HERE) -> list[str]:
        return list(self.pages[address.chat_id].values())

    def rate_limit_key(self, address: Address) -> str:
        return address.chat_id

    def pace(self, _: Address) -> Pace:
        return Pace(edit=self.interval, typing=0.01, first_edit=0.0)

    def render(self, text: str) -> list[str]:
        return [text[at : at + LIMIT] for at in range(0, len(text), LIMIT)]

    def render_plain(self, text: str) -> list[str]:
        return self.render(text.replace("*", ""))

    async def send(self, message: OutgoingMessage[str]) -> str:
        await self._called("send", message.address, message.piece)
        self.numbers += 1
        page = str(self.numbers)
        self.pages[message.address.chat_id][page] = message.piece
        self.replies[page] = message.reply_to
        self.buttons[page] = message.buttons
        return page

    async def edit(
        self, address: Address, message_id: str, piece: str, buttons: tuple[Button, ...] = ()
    ) -> None:
        await self._called("edit", address, piece)
        if message_id not in self.pages[address.chat_id]:
            raise MessageGone("there is no such message")
        self.pages[address.chat_id][message_id] = piece
        self.buttons[message_id] = buttons

    async def delete(self, address: Address, message_id: str) -> None:
        await self._called("delete", address, "")
        self.pages[address.chat_id].pop(message_id, None)

    async def typing(self, address: Address) -> None:
        await anyio.lowlevel.checkpoint()
        self.typed.append(address.chat_id)

    async def draft(self, address: Address, stream: str, piece: str) -> bool:
        await anyio.lowlevel.checkpoint()
        if self.drafts is None:
            return False
        self.drafts.append(piece)
        return True

    async def _called(self, call: str, address: Address, piece: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.calls.append((call, address.chat_id, anyio.current_time()))
        self.seen.append(piece)
        if self.refuses_markup and "*" in piece:
            raise FormattingRejected("can't parse entities")
        if self.faults[address.chat_id]:
            raise self.faults[address.chat_id].pop(0)


class Port:
    """A channel's two ends, held by the test."""

    def __init__(self) -> None:
        self.reports: list[DeliveryReport] = []
        self._give, self._take = anyio.create_memory_object_stream[Outbound](math.inf)
        self._reported = anyio.Event()

    def give(self, *outbound: Outbound) -> None:
        for one in outbound:
            self._give.send_nowait(one)

    async def publish(self, inbound: object) -> None:
        raise AssertionError("nothing comes in here")

    async def receive(self) -> Outbound:
        return await self._take.receive()

    async def report(self, report: DeliveryReport) -> None:
        self.reports.append(report)
        self._reported.set()
        self._reported = anyio.Event()

    async def wait_drained(self) -> None:
        raise AssertionError("nobody waits for it here")

    def finals(self) -> list[DeliveryReport]:
        return [report for report in self.reports if report.final]

    async def until_final(self, count: int, within: float = 20.0) -> None:
        with anyio.fail_after(within):
            while len(self.finals()) < count:
                await self._reported.wait()

    def close(self) -> None:
        self._give.close()
        self._take.close()


class Running:
    """A courier at work on paper."""

    def __init__(self, paper: Paper | None = None) -> None:
        self.paper = paper or Paper()
        self.port = Port()
        self.courier = OutboundDispatcher(self.port, self.paper)

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self.courier.run)
        return self

    def stop(self) -> None:
        self._tasks.cancel_scope.cancel()

    async def until_left(self) -> None:
        """Wait until every chat was left: nothing has been due in it for a while."""
        await until(lambda: self.courier.statistics() == {"lines": 0})

    async def __aexit__(self, *error: object) -> None:
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(*error)
        self.port.close()


def answer(text: str, name: str = "t1", address: Address = HERE, **more) -> Answer:
    return Answer(address, name, text, reply_to="7", stream=name, **more)


async def test_an_answer_is_shown_as_a_reply_and_reported_once_with_its_platform_ids():
    async with Running() as run:
        run.port.give(answer("hello"))
        await run.port.until_final(1)
    assert run.paper.shown() == ["hello"]
    assert run.paper.replies == {"1": "7"}
    assert run.port.reports == [DeliveryReport("paper:1", "t1", platform_ids=("1",))]


@pytest.mark.parametrize("text", ["42", '{"a": [1]}', "null", "/etc/passwd", "@everyone", " x "])
async def test_text_is_text(text):
    async with Running() as run:
        run.port.give(answer(text))
        await run.port.until_final(1)
    assert run.paper.shown() == [text]


async def test_an_answer_without_a_visible_sign_still_says_something():
    async with Running() as run:
        run.port.give(answer(""))
        await run.port.until_final(1)
    assert run.paper.shown() == ["(an answer without words)"]


async def test_a_long_answer_arrives_whole_and_only_its_first_part_is_a_reply():
    text = "".join(f"{number:04d}" for number in range(50))
    async with Running() as run:
        run.port.give(answer(text))
        await run.port.until_final(1)
    assert "".join(run.paper.shown()) == text
    assert list(run.paper.replies.values()) == ["7", None, None, None, None]
    # Each part is told of before the next is sent, so that a restart goes on from there.
    assert [report.platform_ids for report in run.port.reports if not report.final] == [
        ("1",), ("1", "2"), ("1", "2", "3"), ("1", "2", "3", "4"),
    ]  # fmt: skip


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


async def test_a_flooded_chat_delays_no_other():
    paper = Paper()
    paper.faults["1"] = [RateLimited(30)]
    async with Running(paper) as run:
        run.port.give(answer("slow"), answer("quick", "t2", THERE))
        await run.port.until_final(1, within=20)
        assert (paper.shown(THERE), paper.shown(HERE)) == (["quick"], [])


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


async def test_formatting_that_the_platform_refuses_is_sent_plain():
    async with Running(Paper(refuses_markup=True)) as run:
        run.port.give(PartialAnswer(HERE, "t1", "**bold words that are shown to you"))
        run.port.give(answer("**bold** words that are shown"))
        await run.port.until_final(1)
    assert run.paper.shown() == ["bold words that are shown"]
    assert run.port.finals()[0].delivered


async def test_an_answer_that_is_refused_for_good_is_reported_with_the_reason():
    paper = Paper()
    paper.faults["1"] = [MessageRejected("bot was blocked by the user")]
    async with Running(paper) as run:
        run.port.give(answer("hello"), answer("again", "t2"))
        await run.port.until_final(2)
    first, second = run.port.finals()
    assert (first.delivered, first.error) == (False, "bot was blocked by the user")
    assert second.delivered


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


async def test_an_error_of_the_adapters_own_costs_one_answer_and_no_other():
    class Broken(Paper):
        def render(self, text: str) -> list[str]:
            if "boom" in text:
                raise ValueError(text)
            return super().render(text)

    async with Running(Broken()) as run:
        run.port.give(PartialAnswer(HERE, "t0", "boom, in what is streamed, too"))
        run.port.give(answer("boom"), answer("fine", "t2"), answer("fine, too", "t3", THERE))
        await run.port.until_final(3)
    reports = {report.answer: report.delivered for report in run.port.finals()}
    assert reports == {"t1": False, "t2": True, "t3": True}
    assert run.paper.shown() == ["fine"]


async def test_an_answer_to_a_message_that_is_gone_is_sent_without_it_once():
    class Gone(Paper):
        async def send(self, message: OutgoingMessage[str]) -> str:
            await self._called("send", message.address, message.piece)
            if message.reply_to is not None or message.piece == "never":
                raise MessageGone("message to be replied not found")
            return await super().send(message)

    async with Running(Gone()) as run:
        run.port.give(answer("hello"), answer("never", "t2"))
        await run.port.until_final(2)
    assert run.paper.shown() == ["hello"]
    assert [report.delivered for report in run.port.finals()] == [True, False]
    assert len(run.paper.calls) < 8


async def test_an_edit_that_is_refused_becomes_a_message():
    paper = Paper(numbers=1)
    paper.pages["1"] = {"1": "page 1"}
    paper.faults["1"] = [MessageRejected("message can't be edited")]
    async with Running(paper) as run:
        run.port.give(answer("page 2", replaced_message_id="1"))
        await run.port.until_final(1)
    assert paper.shown() == ["page 2"]
    assert run.port.finals()[0].delivered


async def test_topics_of_a_chat_share_its_flood():
    """Asking again in another topic makes it longer for all."""
    paper = Paper()
    paper.faults["1"] = [RateLimited(0.3)]
    topics = [Address("paper", "1", str(number)) for number in range(3)]
    async with Running(paper) as run:
        run.port.give(answer("one", "t1", topics[0]))
        await until(lambda: bool(paper.calls))
        run.port.give(answer("two", "t2", topics[1]), answer("three", "t3", topics[2]))
        await run.port.until_final(3)
    (_, _, began), *later = paper.calls
    assert len(later) == 3
    assert all(when - began >= 0.25 for _, _, when in later)


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


async def test_buttons_that_the_platform_refuses_cost_no_answer():
    class NoButtons(Paper):
        async def send(self, message: OutgoingMessage[str]) -> str:
            if message.buttons:
                raise FormattingRejected("invalid form body")
            return await super().send(message)

    async with Running(NoButtons()) as run:
        run.port.give(answer("hello", buttons=(Button("More", "/memory 2"),)))
        await run.port.until_final(1)
    assert run.paper.shown() == ["hello"]


async def test_a_stop_while_a_message_is_sent_still_tells_that_it_was():
    sending, go = anyio.Event(), anyio.Event()

    class Slow(Paper):
        async def send(self, message: OutgoingMessage[str]) -> str:
            sending.set()
            await go.wait()
            return await super().send(message)

    async with Running(Slow()) as run:
        run.port.give(answer("hello"))
        await sending.wait()
        run.stop()
        go.set()
    assert run.paper.shown() == ["hello"]
    assert run.port.reports[-1].platform_ids == ("1",)


async def test_after_a_restart_what_was_shown_is_edited_and_not_sent_again():
    paper = Paper(numbers=3)
    paper.pages["1"] = {"1": "It was a dark and", "2": "and then too much of it", "3": "rest"}
    async with Running(paper) as run:
        run.port.give(answer("It was a dark night.", sent_message_ids=("1", "2", "3")))
        await run.port.until_final(1)
    assert paper.pages["1"] == {"1": "It was a dark night."}
    assert [call for call, _, _ in paper.calls] == ["edit", "delete", "delete"]


async def test_the_answer_to_a_button_takes_the_place_of_its_message():
    paper = Paper(numbers=1)
    paper.pages["1"] = {"1": "page 1"}
    more = (Button("More", "/memory 3"),)
    async with Running(paper) as run:
        run.port.give(answer("page 2", replaced_message_id="1", buttons=more))
        await run.port.until_final(1)
    assert paper.pages["1"] == {"1": "page 2"}
    assert paper.buttons["1"] == more


async def test_drafts_are_shown_where_there_are_any_and_become_one_message():
    paper = Paper(drafts=[])
    async with Running(paper) as run:
        run.port.give(PartialAnswer(HERE, "t1", "a draft that is no message yet"))
        await until(lambda: bool(paper.drafts))
        assert paper.shown() == []
        run.port.give(answer("a message that stays"))
        await run.port.until_final(1)
    assert paper.shown() == ["a message that stays"]


async def test_typing_is_shown_while_a_turn_runs_and_not_after(monkeypatch):
    monkeypatch.setattr("channels.delivery.dispatcher._IDLE_SECONDS", 0.05)
    async with Running() as run:
        run.port.give(Activity(HERE, "thinking"))
        await until(lambda: len(run.paper.typed) >= 3)
        run.port.give(answer("done"), Activity(HERE, "idle"))
        await run.port.until_final(1)
        # A chat where the sign is still shown is not left.
        await run.until_left()
        assert len(run.paper.typed) >= 3


@pytest.mark.slow
async def test_answers_of_a_chat_keep_their_order():
    paper = Paper()
    paper.faults["1"] = [PlatformUnreachable("no network")]
    async with Running(paper) as run:
        run.port.give(*(answer(f"number {n}", f"t{n}") for n in range(20)))
        await run.port.until_final(20)
    assert paper.shown() == [f"number {n}" for n in range(20)]


FAULTS = st.sampled_from(
    [RateLimited(0.0), RateLimited(0.001), MessageGone("gone"), FormattingRejected("entities")]
)


@given(
    partials=st.lists(st.text("ab *", min_size=20, max_size=130), max_size=6),
    final=st.text("ab *", min_size=1, max_size=130),
    faults=st.lists(FAULTS, max_size=6),
    before=st.integers(0, 3),
)
@settings(max_examples=examples(150))
def test_whatever_goes_wrong_the_final_text_is_all_that_is_shown(partials, final, faults, before):
    """Streams that restart, floods, refusals and deletions: what is left is the answer."""

    async def run() -> None:
        paper = Paper(numbers=before)
        paper.pages["1"] = {str(n + 1): "old" for n in range(before)}
        paper.faults["1"] = list(faults)
        shown = tuple(paper.pages["1"])
        async with Running(paper) as running:
            for text in partials:
                running.port.give(PartialAnswer(HERE, "t1", text, sent_message_ids=shown))
                await anyio.lowlevel.checkpoint()
            running.port.give(answer(final, sent_message_ids=shown))
            await running.port.until_final(1)
        report = running.port.finals()[0]
        if report.delivered:
            visible = [paper.pages["1"][page] for page in report.platform_ids]
            gone = any(isinstance(fault, MessageGone) for fault in faults)
            assert gone or visible == paper.shown()
            assert "".join(visible) in (final, final.replace("*", "") or final)

    anyio.run(run)


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
