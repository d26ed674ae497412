"""``/memory search``: what it finds in the conversation."""

from __future__ import annotations

import re

from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply


async def test_an_erased_entry_is_not_shown_beside_a_hit(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("Fine."))) as host:
        await host.channel.ask("The parcel is from Zagreb.")
        await host.channel.ask("My coffee is cold.")
        asked = str(await host.channel.ask("/memory forget Zagreb"))
        (confirmed,) = re.findall(r"`(/memory forget yes \S+)`", asked)
        await host.channel.ask(confirmed)
        found = str(await host.channel.ask("/memory search coffee"))
    assert "My coffee is cold." in found
    assert not [line for line in found.splitlines() if line.endswith("]: ")]
