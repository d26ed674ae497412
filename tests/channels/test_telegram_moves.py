"""Groups that become supergroups have another id; both lead to one session."""

from __future__ import annotations

import pytest
from telegram_rig import rigged

from bot.bus import Address, Answer, BusError

OLD = -55
NEW = -1009


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        rig.group = rig.telegram.group(OLD, "Garden", basic=True)
        rig.answering = False
        kept: dict[str, str] = {}

        async def move_chats(moves: dict[str, str]) -> dict[str, str]:
            kept.update(moves)
            return dict(kept)

        rig.move_chats = move_chats
        yield rig


async def test_nothing_of_a_moved_group_is_taken_before_the_move_is_kept(rig):
    keep, failures = rig.move_chats, [BusError("the database is away")] * 2

    async def move_chats(moves):
        if moves and failures:
            raise failures.pop()
        return await keep(moves)

    rig.move_chats = move_chats
    rig.telegram.say(rig.telegram.migrate(rig.group, NEW), 7, "@tape_bot hello")
    async with rig.running():
        [inbound] = await rig.arrived(1)
    assert (inbound.address, failures) == (Address("telegram", str(OLD)), [])


@pytest.mark.parametrize(
    "told", ["by both chats", "by the old chat", "by the new one", "by a send"]
)
async def test_both_ids_of_a_group_lead_to_the_session_that_it_had(rig, told):
    """Also after a restart, and messages of both chats that have one number are two."""
    rig.access_control.places.add(str(OLD))
    async with rig.running():
        rig.telegram.say(rig.group, 7, "@tape_bot hello")
        [before] = await rig.arrived(1)
    if told in ("by both chats", "by a send"):
        new = rig.telegram.migrate(rig.group, NEW)
    else:
        new = rig.telegram.group(NEW, "Garden")
        here, what = (
            (OLD, {"migrate_to_chat_id": NEW})
            if told == "by the old chat"
            else (NEW, {"migrate_from_chat_id": OLD})
        )
        chat = rig.telegram.world.rooms[here].chat.as_json()
        head = {"message_id": 900, "date": 1_700_000_000, "chat": chat}
        rig.telegram.raw({"message": head | what})
    if told == "by a send":
        async with rig.running():
            await rig.bus.send(Answer(before.address, "a1", "one", before.id))
            assert await rig.shown(new, 1) == ["one"]
    else:
        async with rig.running():
            await rig.telegram.until_confirmed()
    async with rig.running():
        number = rig.telegram.say(new, 13, "@tape_bot hello again")
        after = (await rig.arrived(2))[1]
        assert after.address == before.address == Address("telegram", str(OLD))
        assert after.id != before.id
        await rig.bus.send(Answer(after.address, "a2", "two", after.id))
        await rig.telegram.until(lambda books: "two" in books.texts(NEW))
        sent = rig.telegram.records.called("sendMessage", chat=NEW)[-1]
        assert str(number) in str(sent.params["reply_parameters"])


async def test_an_answer_for_the_old_chat_comes_to_the_new_one_and_replies_to_nothing(rig):
    number = rig.telegram.say(rig.group, 7, "@tape_bot hello")
    new = rig.telegram.migrate(rig.group, NEW)
    async with rig.running():
        old = Address("telegram", str(OLD))
        for one, named in (("one", f"{number}"), ("two", f"{number}.e55")):
            await rig.bus.send(Answer(old, f"a-{one}", one, named))
        assert await rig.shown(new, 2) == ["one", "two"]
    asked = [one.params for one in rig.telegram.records.called("sendMessage", chat=NEW)]
    assert not any(one.get("reply_parameters") for one in asked)
