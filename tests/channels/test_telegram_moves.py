"""Groups that become supergroups have another id; both lead to one session."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial

import pytest
from databases import drop, fresh_database
from telegram_rig import rigged

from bot.bus import Address, Answer, BusError
from bot.bus.access.control import open_access_control
from bot.bus.access.postgres_store import PostgresAccessStore
from bot.core.database.connections import Database

OLD = -55
NEW = -1009


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        rig.chat = rig.telegram.private(7)
        rig.group = rig.telegram.group(OLD, "Garden", basic=True)
        rig.answering = False
        kept: dict[str, str] = {}

        async def move_chats(moves: dict[str, str]) -> dict[str, str]:
            kept.update(moves)
            return dict(kept)

        rig.move_chats = move_chats
        yield rig


@pytest.fixture(params=["a home", pytest.param("a database", marks=pytest.mark.slow)])
def place(request, tmp_path):
    if request.param == "a home":
        yield tmp_path / "home"
        return
    url = fresh_database()
    yield url
    drop(url)


@asynccontextmanager
async def gateway(rig, place, name: str):
    """Run the channel with the access list of a place and a folder of this machine's own."""
    database = None
    try:
        if isinstance(place, str):
            database = Database(place, connections=4)
            await database.open()
        opened = place if database is None else PostgresAccessStore(database)
        async with open_access_control(opened, owners=("telegram:7",)) as access:
            rig.folder = rig.folder.parent / name
            rig.access_control, rig.move_chats = access, partial(access.move_chats, "telegram")
            async with rig.running():
                yield access
    finally:
        if database is not None:
            await database.close()


async def test_both_ids_lead_to_one_session_on_a_machine_that_did_not_see_the_move(rig, place):
    """Those who may write in the group still may, until either id is removed."""
    async with gateway(rig, place, "one") as access:
        await access.allow_chat(f"telegram:{OLD}")
        rig.telegram.say(rig.group, 13, "@tape_bot hello")
        await rig.arrived(1)
        new = rig.telegram.migrate(rig.group, NEW)
        await rig.telegram.until_confirmed()
    async with gateway(rig, place, "two") as access:
        rig.telegram.say(new, 13, "@tape_bot hello again")
        before, after = await rig.arrived(2)
        assert after.address == before.address == Address("telegram", str(OLD))
        assert (before.moved_to, after.moved_to) == (None, str(NEW))
        await rig.bus.send(Answer(after.address, "a2", "two", after.id))
        await rig.telegram.until(lambda books: "two" in books.texts(NEW))
        assert await access.remove(f"telegram:{NEW}") == "removed"
        rig.telegram.say(new, 13, "@tape_bot may I still?")
        rig.telegram.say(new, 7, "@tape_bot I may")
        assert [one.text for one in await rig.arrived(3)][2:] == ["I may"]


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
    rig.access_control.chats.add(str(OLD))
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


async def test_a_message_of_the_new_chat_that_comes_before_the_word_on_the_move_is_no_new_session(
    rig,
):
    rig.access_control.chats.add(str(OLD))
    new = rig.telegram.group(NEW, "Garden")
    rig.telegram.say(new, 7, "@tape_bot hello")
    chat = rig.telegram.world.rooms[NEW].chat.as_json()
    head = {"message_id": 900, "date": 1_700_000_000, "chat": chat}
    rig.telegram.raw({"message": head | {"migrate_from_chat_id": OLD}})
    async with rig.running():
        [inbound] = await rig.arrived(1)
    assert inbound.address == Address("telegram", str(OLD))


async def test_an_answer_for_the_old_chat_comes_to_the_new_one_and_replies_to_nothing(rig):
    number = rig.telegram.say(rig.group, 7, "@tape_bot hello")
    new = rig.telegram.migrate(rig.group, NEW)
    async with rig.running():
        old = Address("telegram", str(OLD))
        for one in ("one", "two"):
            await rig.bus.send(Answer(old, f"a-{one}", one, str(number)))
        assert await rig.shown(new, 2) == ["one", "two"]
    asked = [one.params for one in rig.telegram.records.called("sendMessage", chat=NEW)]
    assert not any(one.get("reply_parameters") for one in asked)
