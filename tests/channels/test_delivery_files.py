"""Showing files below answers: whatever a platform does, each is there once, in order, or told of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from delivery_paper import Paper, Running, answer
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus import OutgoingFile
from channels.delivery import dispatcher as line
from channels.delivery.messenger import (
    MessageGone,
    MessageRejected,
    MessengerError,
    OutgoingMessage,
    PlatformUnreachable,
    RateLimited,
)

ONE, TWO = (
    OutgoingFile("one.zip", Path("/home/exports/one.zip")),
    OutgoingFile("two.zip", Path("/x/two.zip")),
)


@dataclass
class Pinboard(Paper):
    """Paper that files are pinned to; ``trouble`` is what goes wrong with each, one a call."""

    trouble: dict[str, list[MessengerError]] = field(default_factory=lambda: defaultdict(list))

    async def send_file(self, message: OutgoingMessage[OutgoingFile]) -> str:
        await self._called("send_file", message.address, message.piece.name)
        if self.trouble[message.piece.name]:
            raise self.trouble[message.piece.name].pop(0)
        self.numbers += 1
        self.pages[message.address.chat_id][str(self.numbers)] = f"<{message.piece.name}>"
        return str(self.numbers)

    async def edit(self, address, message_id, piece, buttons=()) -> None:
        if self.pages[address.chat_id].get(message_id, "").startswith("<"):
            raise MessageGone("there is no text in the message to edit")
        await super().edit(address, message_id, piece, buttons)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(line, "_FIRST_RETRY", 0.001)


async def shown(paper: Pinboard, *answers) -> Running:
    run = Running(paper)
    async with run:
        run.port.give(*answers)
        await run.port.until_final(len(answers))
    return run


async def test_a_file_that_the_platform_refuses_is_told_of_with_where_it_lies():
    paper = Pinboard()
    paper.trouble["one.zip"] = [MessageRejected("no files here")]
    run = await shown(paper, answer("Here.", files=(ONE, TWO)))
    assert "".join(run.paper.shown()) == (
        "Here.\n\n(one.zip could not be sent: no files here. It is in tapebot's home folder, as "
        "exports/one.zip.)<two.zip>"
    )
    assert run.port.finals()[0].delivered


@pytest.mark.parametrize("before", [(), ("1",), ("1", "2"), ("1", "2", "3")])
async def test_what_was_shown_before_a_restart_is_not_shown_again(before):
    paper = Pinboard(numbers=len(before))
    standing = ["Here.", "<one.zip>", "<two.zip>"][: len(before)]
    paper.pages["1"] = dict(zip(before, standing, strict=True))
    run = await shown(paper, answer("Here.", files=(ONE, TWO), sent_message_ids=before))
    assert run.paper.shown() == ["Here.", "<one.zip>", "<two.zip>"]
    assert run.port.finals()[0].platform_ids == ("1", "2", "3")


TROUBLE = st.lists(
    st.sampled_from(
        [RateLimited(0), PlatformUnreachable("lost"), MessageRejected("no"), MessageGone("?")]
    ),
    max_size=3,
)


@given(TROUBLE, TROUBLE, st.booleans())
@settings(max_examples=examples(60))
async def test_whatever_goes_wrong_each_file_is_there_once_in_order_or_told_of(one, two, taken):
    paper = Pinboard()
    paper.trouble |= {"one.zip": one, "two.zip": two}
    paper.pages["1"] = {"0": "old"} if taken else {}
    more = {"replaced_message_id": "0"} if taken else {}
    run = await shown(paper, answer("Here.", files=(ONE, TWO), **more))
    texts = run.paper.shown()
    pinned = [text for text in texts if text.startswith("<")]
    said = "".join(text for text in texts if not text.startswith("<"))
    assert said.startswith("Here.")
    assert texts[len(texts) - len(pinned) :] == pinned
    assert pinned == sorted(set(pinned))
    for file in (ONE, TWO):
        assert (f"<{file.name}>" in pinned) != (f"({file.name} could not be sent" in said)
