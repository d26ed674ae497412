"""Groups that become supergroups have another id; whoever used the bot there learns what that means."""

from __future__ import annotations

import pytest
from telegram_rig import rigged

from bot.bus import Address, Answer
from channels.telegram.notices import MIGRATED_TEXT

OLD = -55
NEW = -1009


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        rig.chat = rig.telegram.private(7)
        rig.group = rig.telegram.group(OLD, "Garden", basic=True)
        rig.answering = False
        yield rig


async def settled(rig) -> None:
    await rig.telegram.until_confirmed()
    mark = rig.telegram.say(rig.chat, 7, "the last")
    await rig.until(lambda: any(one.id == str(mark) for one in rig.inbounds))


@pytest.mark.parametrize("admitted", ["the group", "a person"])
async def test_a_group_with_a_new_id_is_told_once_what_that_means(rig, admitted):
    if admitted == "the group":
        rig.access_control.chats.add(str(OLD))
    who = 13 if admitted == "the group" else 7
    async with rig.running():
        rig.telegram.say(rig.group, who, "@tape_bot hello")
        await rig.arrived(1)
        new = rig.telegram.migrate(rig.group, NEW)
        assert await rig.shown(new, 1) == [MIGRATED_TEXT]
        await settled(rig)
    assert rig.telegram.records.texts(NEW) == [MIGRATED_TEXT]
    assert "/pair here" in MIGRATED_TEXT
    assert "\n" not in MIGRATED_TEXT
    [line] = [one for one in rig.said if f"telegram:{NEW}" in one]
    assert str(OLD) in line


@pytest.mark.parametrize("told_in", ["the old chat", "the new one"])
async def test_one_of_telegrams_two_words_on_a_move_is_enough(rig, told_in):
    rig.access_control.chats.add(str(OLD))
    new = rig.telegram.group(NEW, "Garden")
    here, what = (
        (OLD, {"migrate_to_chat_id": NEW})
        if told_in == "the old chat"
        else (NEW, {"migrate_from_chat_id": OLD})
    )
    chat = rig.telegram.world.rooms[here].chat.as_json()
    head = {"message_id": 900, "date": 1_700_000_000, "chat": chat}
    async with rig.running():
        rig.telegram.raw({"message": head | what})
        assert await rig.shown(new, 1) == [MIGRATED_TEXT]
        await rig.until(lambda: any(f"the group {OLD} is now {NEW}" in one for one in rig.said))


async def test_a_group_of_strangers_is_told_nothing(rig):
    async with rig.running():
        rig.telegram.say(rig.group, 13, "@tape_bot hello")
        rig.telegram.migrate(rig.group, NEW)
        await settled(rig)
    assert rig.telegram.records.texts(NEW) == []
    assert rig.telegram.records.texts(OLD) == []


async def test_an_answer_for_the_old_chat_comes_to_the_new_one_and_replies_to_nothing(rig):
    number = rig.telegram.say(rig.group, 7, "@tape_bot hello")
    new = rig.telegram.migrate(rig.group, NEW)
    async with rig.running():
        old = Address("telegram", str(OLD))
        for one in ("one", "two"):
            await rig.bus.send(Answer(old, f"a-{one}", one, str(number)))
        shown = await rig.shown(new, 3)
    assert [one for one in shown if one != MIGRATED_TEXT] == ["one", "two"]
    asked = [one.params for one in rig.telegram.records.called("sendMessage", chat=NEW)]
    assert not any(one.get("reply_parameters") for one in asked)


async def test_strangers_groups_do_not_keep_a_move_from_being_announced(rig):
    groups = [rig.telegram.group(-3000 - number, "New", bots=[]) for number in range(25)]
    async with rig.running():
        for group in groups:
            rig.telegram.join(rig.telegram.me, group, 13)
        rig.telegram.migrate(rig.group, NEW)
        await rig.until(lambda: any(f"telegram:{NEW}" in one for one in rig.said))
    assert sum("was added to the group" in one for one in rig.said) == 20
