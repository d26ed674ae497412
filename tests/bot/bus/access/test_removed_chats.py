"""A group that became another keeps who may use it, and what is scheduled there, under either id."""

from __future__ import annotations

import pytest
from door_talk import group, opened

from bot.bus import Address


@pytest.mark.parametrize("allowed", ["list", "settings"])
@pytest.mark.parametrize(("first", "other"), [("-5", "-1009"), ("-1009", "-5")])
async def test_a_group_that_moved_is_allowed_and_removed_by_either_id(home, first, other, allowed):
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
