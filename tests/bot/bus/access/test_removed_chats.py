"""What is scheduled goes to a chat only while it is allowed, and while who set it is."""

from __future__ import annotations

import pytest

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
