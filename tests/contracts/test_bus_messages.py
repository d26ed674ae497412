"""What every message bus promises of the messages that come in, and of the sessions that they wait in."""

from __future__ import annotations

from dataclasses import replace

import anyio
import bus_talk
import pytest
from bus_backends import LIMIT
from bus_talk import DESK, HERE, SENT, ids, inbound, publish, take

from bot.bus import Address, Attachment, BusClosed, InvalidInbound, Sender, SessionFull
from bot.bus.messages import PERSON, Cause, Grant

backend = bus_talk.backend
bus = bus_talk.bus


async def test_messages_of_a_session_come_in_the_order_of_their_acceptance(bus):
    await publish(bus, *(inbound(f"m{n}") for n in range(LIMIT)))
    inbox = await bus.claim()
    assert inbox.session == "fake:1"
    assert ids(await take(inbox, LIMIT)) == [f"m{n}" for n in range(LIMIT)]
    assert inbox.receive_nowait() is None


async def test_a_message_what_caused_it_and_what_its_token_allows_are_the_same_after_a_kill(
    backend,
):
    topic = Address("fake", "-100", "9")
    strange = inbound("m1", "line\n\u2028 \ud800 \0 你好", topic, private=False, quote="q\n")
    due = replace(inbound("m2", address=topic), cause=Cause("schedule", "3", 17))
    rights = Grant(frozenset({"chat", "read"}), own_sessions=True)
    held = Attachment("image", "é \ud800.png", "image/png", 7, "a" * 64, "read", "why", quoted=True)
    more = {"edited_message_id": "m0", "pressed_message_id": "a1", "moved_to": "-200"}
    full = inbound("m4", address=topic, attachments=(held, Attachment("voice", "v", "")), **more)
    full = replace(full, sender=Sender("7", "Ada", "de"), role="owner", expects_answer=False)
    sent = [full, strange, due, replace(inbound("m3", address=topic), grant=rights)]
    await publish(backend.bus, *sent)
    first = await take(await backend.bus.claim(), 4)
    again = await take(await (await backend.killed()).claim(), 4)
    assert [one.inbound for one in first] == [one.inbound for one in again] == sent
    assert [one.inbound.cause for one in again] == [PERSON, PERSON, due.cause, PERSON]
    assert [one.inbound.sender.language for one in again] == ["de", "", "", ""]
    assert again[0].redelivered


async def test_what_was_accepted_and_not_acknowledged_comes_again_after_a_kill_in_order(backend):
    await publish(backend.bus, *(inbound(f"m{n}") for n in range(4)))
    first, *_ = await take(await backend.bus.claim(), 2)
    await first.ack()
    await publish(backend.bus, inbound("m4"))
    again = await take(await (await backend.killed()).claim(), 4)
    assert ids(again) == ["m1", "m2", "m3", "m4"]
    assert again[0].redelivered


async def test_a_platform_id_is_accepted_once_even_after_its_answer_and_a_restart(backend):
    await publish(backend.bus, inbound("m1"))
    assert (await backend.bus.channel("fake").publish(inbound("m1"))).duplicate
    [taken] = await take(await backend.bus.claim(), 1)
    await taken.ack()
    assert (await backend.bus.channel("fake").publish(inbound("m1", "edited"))).duplicate
    bus = await backend.restarted()
    assert (await bus.channel("fake").publish(inbound("m1"))).duplicate
    assert (await bus.statistics())["pending"] == 0


async def test_of_two_copies_at_the_same_time_one_is_accepted(bus):
    results = []

    async def send() -> None:
        results.append((await bus.channel("fake").publish(inbound("m1"))).duplicate)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(send)
    assert sorted(results) == [False, True, True, True, True]
    assert ids(await take(await bus.claim(), 1)) == ["m1"]


async def test_the_same_id_in_two_chats_is_two_messages(bus):
    elsewhere = [Address("fake", "2"), Address("fake", "1", "1"), Address("other", "1")]
    await publish(bus, inbound("m1"), *(inbound("m1", address=one) for one in elsewhere))
    sessions = [(await bus.claim()).session for _ in range(4)]
    assert sorted(sessions) == ["fake:1", "fake:1:1", "fake:2", "other:1"]


async def test_a_session_has_one_holder_at_a_time(bus):
    await publish(bus, inbound("m1"))
    held = await bus.claim()
    await publish(bus, inbound("m2"), inbound("m1", address=Address("fake", "2")))
    assert (await bus.claim()).session == "fake:2"
    claimed = []

    async def claim() -> None:
        claimed.append(await bus.claim())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim)
        await anyio.wait_all_tasks_blocked()
        assert claimed == []
        held.release()
    assert ids(await take(claimed[0], 2)) == ["m1", "m2"]


async def test_what_a_holder_did_not_acknowledge_goes_to_the_next_before_what_is_new(bus):
    await publish(bus, inbound("m1"), inbound("m2"))
    inbox = await bus.claim()
    _, second = await take(inbox, 2)
    await publish(bus, inbound("m3"))
    await second.ack()
    inbox.release()
    again = await take(await bus.claim(), 2)
    assert ids(again) == ["m1", "m3"]
    assert [one.redelivered for one in again] == [True, False]


async def test_a_full_session_refuses_in_words_and_others_do_not_notice(bus):
    await publish(bus, *(inbound(f"m{n}") for n in range(LIMIT)))
    with pytest.raises(SessionFull, match=f"{LIMIT} messages already wait"):
        await publish(bus, inbound("one more"))
    await publish(bus, inbound("m1", address=Address("fake", "2")))
    [first] = await take(await bus.claim(), 1)
    await first.ack()
    await publish(bus, inbound("one more"))


async def test_a_command_from_elsewhere_takes_its_turn_in_the_session_that_it_is_for(backend):
    await publish(backend.bus, inbound("m1"))
    asked = inbound("m2", "/memory", answer_to=DESK)
    await backend.bus.channel("web").publish(asked)
    inbox = await backend.bus.claim()
    assert inbox.session == HERE.session
    first, second = await take(inbox, 2)
    assert (first.inbound.answer_to, second.inbound) == (None, asked)
    again = await take(await (await backend.killed()).claim(), 2)
    assert [one.inbound.answer_to for one in again] == [None, DESK]


async def test_what_is_overheard_leaves_room_for_what_is_asked(bus):
    await publish(bus, *(inbound(f"m{n}", expects_answer=False) for n in range(LIMIT // 2)))
    with pytest.raises(SessionFull):
        await publish(bus, inbound("more", expects_answer=False))
    await publish(bus, inbound("question"))


async def test_drain_ends_when_the_last_message_is_acknowledged(bus):
    await publish(bus, inbound("m1"), inbound("m2"))
    first, second = await take(await bus.claim(), 2)
    drained = anyio.Event()

    async def drain() -> None:
        await bus.drain()
        drained.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drain)
        await first.ack()
        await anyio.wait_all_tasks_blocked()
        assert not drained.is_set()
        await second.ack()
    assert drained.is_set()


async def test_a_closed_bus_refuses_and_keeps_what_it_has(backend):
    await publish(backend.bus, inbound("m1"))
    bus = backend.bus
    await bus.aclose()
    with pytest.raises(BusClosed):
        await publish(bus, inbound("m2"))
    assert ids(await take(await (await backend.killed()).claim(), 1)) == ["m1"]


async def test_a_cancelled_publisher_leaves_the_message_accepted_or_unknown(bus):
    """Never known and yet not delivered: then the platform's next try would be dropped."""
    for number in range(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish, bus, inbound("m", address=Address("fake", f"c{number}")))
            for _ in range(number % 4):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        again = await bus.channel("fake").publish(
            inbound("m", address=Address("fake", f"c{number}"))
        )
        assert isinstance(again.duplicate, bool)
        assert ids(await take(await bus.claim(), 1)) == ["m"]


@pytest.mark.parametrize(
    "parts",
    [
        ("fake", "a:b"),
        ("fake", ""),
        ("fake", "a b"),
        ("fake", "1", ""),
        ("fake", "1", "2:3"),
        ("Fake", "1"),
        ("fa:ke", "1"),
        ("", "1"),
        ("fake", "x" * 257),
    ],
)
def test_an_address_that_could_share_anothers_session_is_refused(parts):
    with pytest.raises(InvalidInbound):
        Address(*parts)


def test_a_message_whose_time_has_no_zone_is_refused_where_the_channel_makes_it():
    with pytest.raises(InvalidInbound, match="sent_at 2026-02-10 10:00:00 has no time zone"):
        replace(inbound("m1"), sent_at=SENT.replace(tzinfo=None))
