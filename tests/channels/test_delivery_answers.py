"""Showing answers: whatever a platform does, the final text arrives, once, in order."""

from __future__ import annotations

import anyio
from delivery_paper import HERE, THERE, Paper, Running, answer
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus import PartialAnswer
from channels.delivery.messenger import (
    FormattingRejected,
    MessageGone,
    RateLimited,
)


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


async def test_a_flooded_chat_delays_no_other():
    paper = Paper()
    paper.faults["1"] = [RateLimited(30)]
    async with Running(paper) as run:
        run.port.give(answer("slow"), answer("quick", "t2", THERE))
        await run.port.until_final(1, within=20)
        assert (paper.shown(THERE), paper.shown(HERE)) == (["quick"], [])


async def test_formatting_that_the_platform_refuses_is_sent_plain():
    async with Running(Paper(refuses_markup=True)) as run:
        run.port.give(PartialAnswer(HERE, "t1", "**bold words that are shown to you"))
        run.port.give(answer("**bold** words that are shown"))
        await run.port.until_final(1)
    assert run.paper.shown() == ["bold words that are shown"]
    assert run.port.finals()[0].delivered


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
