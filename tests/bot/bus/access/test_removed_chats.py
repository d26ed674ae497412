"""What is scheduled goes to a chat only while it is allowed, and while who set it is."""

from __future__ import annotations

import pytest
from door_talk import group, opened

from bot.bus import Address
from bot.bus.access.control import open_access_control


@pytest.mark.parametrize("channel", ["telegram", "telegram-work", "discord"])
@pytest.mark.parametrize("who", ["1", "13"])
async def test_a_chat_that_was_removed_gets_nothing_until_it_is_allowed_again(
    tmp_path, channel, who
):
    chat = Address(channel, "-5")
    platform = channel.partition("-")[0]
    async with open_access_control(tmp_path, owners=[f"{platform}:1"]) as control:
        assert await control.still_has_access(chat, who, private=False) == (who == "1")
        await control.allow_chat(f"{platform}:-5")
        assert await control.still_has_access(chat, who, private=False)
        assert await control.remove(f"{platform}:-5") == "removed"
    async with open_access_control(tmp_path, owners=[f"{platform}:1"]) as control:
        assert not await control.still_has_access(chat, who, private=False)
        await control.allow_chat(f"{platform}:-5")
        assert await control.still_has_access(chat, who, private=False)


@pytest.mark.parametrize("allowed", ["list", "settings"])
@pytest.mark.parametrize(("first", "other"), [("-5", "-1009"), ("-1009", "-5")])
async def test_a_group_that_moved_is_allowed_and_removed_by_either_id(home, first, other, allowed):
    """Also where another process learned of the move, and after a restart."""
    allow = [f"telegram:{first}"] if allowed == "settings" else []
    async with opened(home, allow=allow) as control:
        if allowed == "list":
            await control.allow_chat(f"telegram:{first}")
        assert (await control.authorize(group(chat=other))).role is None
        assert await control.move_chats("telegram-work", {"-5": "-1009"}) == {"-5": "-1009"}
        assert await control.move_chats("discord", {}) == {}
    async with opened(home, allow=allow) as control:
        for chat in (first, other):
            assert (await control.authorize(group(chat=chat))).role == "member"
        removed = await control.remove(f"telegram:{other}")
        assert removed == ("removed" if allowed == "list" else "allow")
        role = None if allowed == "list" else "member"
        for chat in (first, other):
            assert (await control.authorize(group(chat=chat))).role == role
            told = await control.still_has_access(Address("telegram", chat), "1", private=False)
            assert told == (role is not None)
        await control.allow_chat(f"telegram:{other}")
        for chat in (first, other):
            assert await control.still_has_access(Address("telegram", chat), "1", private=False)


async def test_moves_that_strangers_make_do_not_fill_the_list(home):
    async with opened(home) as control:
        kept = await control.move_chats(
            "telegram", {f"-{number}": f"-100{number}" for number in range(1, 1_500)}
        )
        assert len(kept) == 1_000
        assert "-1499" in kept
