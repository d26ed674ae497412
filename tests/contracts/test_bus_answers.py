"""What every message bus promises of the answers that go out, and of the reports on them."""

from __future__ import annotations

import bus_talk
from bus_talk import DESK, HERE

from bot.bus import Address, Answer, Bus, ChannelPort, DeliveryReport, PartialAnswer

backend = bus_talk.backend
bus = bus_talk.bus


async def test_answers_of_a_chat_keep_their_order_and_chats_take_turns(bus):
    port = bus.channel("fake")
    for chat in ("1", "2"):
        for number in range(3):
            await bus.send(Answer(Address("fake", chat), f"{chat}-{number}", "text"))
    shown = [await port.receive() for _ in range(6)]
    assert [one.id for one in shown] == ["1-0", "2-0", "1-1", "2-1", "1-2", "2-2"]


async def test_of_partials_only_the_newest_waits_and_none_behind_its_answer(bus):
    port = bus.channel("fake")
    for text in ("a", "ab", "abc"):
        await bus.send(PartialAnswer(HERE, "s1", text))
    await bus.send(PartialAnswer(HERE, "s2", "x"))
    assert [(await port.receive()).text, (await port.receive()).text] == ["abc", "x"]
    await bus.send(PartialAnswer(HERE, "s1", "abcd"))
    await bus.send(Answer(HERE, "a1", "abcde", stream="s1"))
    assert isinstance(await port.receive(), Answer)


async def nothing_comes(bus: Bus, port: ChannelPort, place: Address = HERE) -> None:
    """See that nothing waits for a chat: what is sent next comes next."""
    await bus.send(Answer(place, "next", "text"))
    assert (await port.receive()).id == "next"


async def test_a_report_reaches_the_sessions_holder_and_wakes_a_session_that_has_none(bus):
    report = DeliveryReport("fake:1", "a1")
    await bus.channel("fake").report(report)
    inbox = await bus.claim()
    assert await inbox.receive() == report


async def test_an_answer_whose_last_report_still_waits_is_not_sent_again(bus):
    """A holder that breaks down over a receipt must not make the next one show the answer twice."""
    port = bus.channel("fake")
    answer = Answer(HERE, "a1", "once")
    await bus.send(answer)
    assert await port.receive() == answer
    await port.report(DeliveryReport(HERE.session, "a1", platform_ids=("5",)))
    inbox = await bus.claim()
    await bus.send(answer)
    assert (await inbox.receive()).answer == "a1"
    inbox.release(failed=True)
    await bus.claim()
    await bus.send(answer)
    await nothing_comes(bus, port)


async def test_an_answer_shown_elsewhere_is_reported_to_its_own_session(bus):
    port = bus.channel("web")
    answer = Answer(DESK, "a1", "done", "m1", report_to=HERE.session)
    await bus.send(answer)
    shown = await port.receive()
    assert shown == answer
    assert shown.session == HERE.session
    report = DeliveryReport(shown.session, shown.id, platform_ids=("5",))
    await port.report(report)
    inbox = await bus.claim()
    assert inbox.session == HERE.session
    # Its last report waits for its session: nothing is shown again by whoever has that next.
    await bus.send(answer)
    assert await inbox.receive() == report
    inbox.release(failed=True)
    inbox = await bus.claim()
    await bus.send(answer)
    await nothing_comes(bus, port, DESK)
    assert await inbox.receive() == report


async def test_a_word_on_the_way_leaves_the_answer_on_its_way(bus):
    port = bus.channel("fake")
    answer = Answer(HERE, "a1", "once")
    await bus.send(answer)
    await port.receive()
    await port.report(DeliveryReport(HERE.session, "a1", platform_ids=("5",), final=False))
    await bus.send(answer)
    await nothing_comes(bus, port)
