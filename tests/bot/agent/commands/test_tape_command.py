"""``/tape``, as a person meets it."""

from __future__ import annotations

from bot.agent.commands.pagination import split_page_number
from bot.bus.messages import Sender
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply


async def test_it_shows_the_state_of_the_tape(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        await host.channel.ask("hello")
        told = await host.channel.ask("/tape")
    assert "- Tape: `fake:1`" in told
    assert "- This phase: `session/start`" in told


async def test_it_finds_what_was_said_and_says_so_where_there_is_nothing(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        await host.channel.ask("My bicycle is green.")
        await host.channel.ask("/new now")
        for _ in range(2):  # the second time there is the command itself on the tape
            told = await host.channel.ask("/tape search green bicycle")
            assert told.count("My bicycle is green.") == 1
        assert "No matching records." in await host.channel.ask("/tape search zebra")
        assert "What should I search for?" in await host.channel.ask("/tape search")


async def test_many_hits_come_in_pages_with_buttons_that_every_platform_carries(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        for number in range(20):
            await host.channel.ask(f"llama {number} " + "hay " * 40)
        first = await host.channel.ask("/tape search llama")
        [button] = host.channel.answers[-1].buttons
        assert button.command == "/tape search llama page 2"
        second = await host.channel.ask(button.command)
        assert "Page 2 of" in second
        assert second.splitlines()[0] != first.splitlines()[0]
        long = "llama " + "hay " * 30
        assert "Page 1 of" in await host.channel.ask(f"/tape search {long}")
        assert host.channel.answers[-1].buttons == ()


async def test_it_lists_the_phases_by_topic(tmp_path):
    handed = tool_call_reply(("tape_handoff", {"name": "trip", "summary": "Lisbon is booked."}))
    model = ScriptedModel([handed, text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("begin anew")
        told = await host.channel.ask("/tape anchors")
        assert told.index("trip") < told.index("session/start")
        assert "session/start" not in await host.channel.ask("/tape anchors lisbon")


async def test_a_mistyped_form_is_answered_with_the_nearest(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        told = await host.channel.ask("/tape serch x")
    assert "Did you mean `/tape search`?" in told
    assert "`/tape anchors TOPIC`" in told


async def test_in_a_group_whoever_may_read_the_chat_may_search_it(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        bob = Sender("8", "Bob")
        said = await host.channel.send("The key is under the mat.", private=False)
        await host.channel.wait_for_answer(said)
        asked = await host.channel.send(
            "/tape search key mat", private=False, sender=bob, role="member"
        )
        assert "Ada (7) [#" in await host.channel.wait_for_answer(asked)


def test_a_page_is_asked_for_at_the_end_and_found_at_once_in_any_text():
    assert split_page_number("bike page 2") == ("bike", 2)
    assert split_page_number("the homepage 2") == ("the homepage 2", 1)
    assert split_page_number("page 3") == ("", 3)
    # Quadratic in the blanks this would take hours.
    words = "a" + " " * 400_000 + "b"
    assert split_page_number(words) == (words, 1)
