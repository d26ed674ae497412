"""``/tape``, as a person meets it."""

from __future__ import annotations

from bot.bus.messages import Sender
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


async def test_it_finds_what_was_said_and_says_so_where_there_is_nothing(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        await host.channel.ask("My bicycle is green.")
        await host.channel.ask("/new now")
        for _ in range(2):  # the second time there is the command itself on the tape
            told = await host.channel.ask("/tape search green bicycle")
            assert told.count("My bicycle is green.") == 1
        assert "No matching records." in await host.channel.ask("/tape search zebra")
        assert "What should I search for?" in await host.channel.ask("/tape search")


async def test_it_lists_the_phases_by_topic(tmp_path):
    handed = tool_call_reply(("tape_handoff", {"name": "trip", "summary": "Lisbon is booked."}))
    model = ScriptedModel([handed, text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("begin anew")
        told = await host.channel.ask("/tape anchors")
        assert told.index("trip") < told.index("session/start")
        assert "session/start" not in await host.channel.ask("/tape anchors lisbon")


async def test_in_a_group_whoever_may_read_the_chat_may_search_it(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        bob = Sender("8", "Bob")
        said = await host.channel.send("The key is under the mat.", private=False)
        await host.channel.wait_for_answer(said)
        asked = await host.channel.send(
            "/tape search key mat", private=False, sender=bob, role="member"
        )
        assert "Ada (7) [#" in await host.channel.wait_for_answer(asked)
