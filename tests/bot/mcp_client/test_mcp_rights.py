"""A server's tool is used where the owner allowed it, as the owner allowed it, and by nobody else."""

from __future__ import annotations

import pytest
from mcp_talk import calls_of, obeying, offered, stdio_server, talk, tool, write_tools

from bot.bus import Sender
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel

BOB = Sender("9", "Bob")


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    write_tools(folder, tool("echo"), tool("read"))
    return folder


@pytest.fixture
async def host(tmp_path, files):
    async with talk(tmp_path / "home", files=stdio_server(files)) as running:
        yield running


async def test_without_a_right_nothing_is_offered_or_run_and_once_is_for_one_call(host, files):
    answer = await host.channel.ask("use mcp_files_echo")
    assert "Not run: mcp_files_echo may not be used; the owner has not allowed it here." in answer
    assert offered(host) == []
    assert calls_of(files) == []
    await host.channel.ask("/mcp allow files echo once")
    answer = await host.channel.ask("use mcp_files_echo and use mcp_files_echo")
    assert "the owner allowed it once, and that is used up" in answer
    assert calls_of(files) == ["echo {}"]
    assert "one time, in the chat `fake:1`; used up" in await host.channel.ask("/mcp")
    assert offered(host) == []


@pytest.mark.slow
async def test_always_runs_a_call_without_asking_and_records_who_decided(host, files):
    allowed = await host.channel.ask("/mcp allow files echo always")
    assert allowed.startswith("Allowed: without asking for what is in your own words, in the chat")
    assert "`Does it.`" in allowed
    answer = await host.channel.ask('tea, please use mcp_files_echo {"text": "tea"}')
    assert "echo: tea" in answer
    assert offered(host) == ["mcp_files_echo"]
    assert calls_of(files) == ['echo {"text": "tea"}']
    [decided] = await host.events("tool.decided")
    assert (decided.data["by"], decided.data["standing"]) == ("fake:7", True)
    assert len(await host.events("tool.started")) == len(await host.events("tool.result")) == 1
    assert await host.channel.ask("/approvals") == "Nothing waits for your yes."
    [result] = [entry for entry in await host.tape() if entry.kind == "tool_result"]
    assert result.meta["from_outside"] is True


@pytest.mark.slow
async def test_a_right_that_is_taken_away_stops_a_call_that_was_approved_too_late(host, files):
    await host.channel.ask("/mcp allow files echo ask")
    await host.channel.ask("use mcp_files_echo")
    await host.channel.ask("/mcp allow files echo never")
    assert "may not be used" in await host.channel.ask("/approve 1")
    assert calls_of(files) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "here", "elsewhere", "to_others"),
    [
        (["always here"], True, False, False),
        (["always me"], True, True, False),
        (["always everybody"], True, True, True),
        (["always everybody", "never here"], False, True, True),
    ],
    ids=str,
)
async def test_a_right_holds_for_its_chat_or_person_and_the_narrowest_counts(
    host, given, here, elsewhere, to_others
):
    for one in given:
        await host.channel.ask(f"/mcp allow files echo {one}")
    for chat, who, wanted in (
        ("1", {}, here),
        ("2", {}, elsewhere),
        ("3", {"sender": BOB, "role": "member"}, to_others),
    ):
        sent = await host.channel.send("hello", chat=chat, **who)
        await host.channel.wait_for_answer(sent)
        assert offered(host) == ["mcp_files_echo"] * wanted


async def test_only_an_owner_may_look_or_decide(tmp_path):
    async with session_host(tmp_path, ScriptedModel(obeying), mcp={}) as host:
        for command in ("/mcp", "/mcp allow files echo always everybody"):
            sent = await host.channel.send(command, chat="3", sender=BOB, role="member")
            assert "Only an owner" in await host.channel.wait_for_answer(sent)


@pytest.mark.slow
async def test_what_is_mistyped_is_answered_with_what_exists(host):
    assert "Did you mean `files`?" in await host.channel.ask("/mcp fils")
    assert "Did you mean `echo`?" in await host.channel.ask("/mcp allow files ecko always")
    assert "`me`, `everybody`, or a chat" in await host.channel.ask("/mcp allow files echo ask you")
    assert "For example" in await host.channel.ask("/mcp allow files echo sometimes")
    shown = await host.channel.ask("/mcp files echo")
    assert "in its own words:\n`Does it.`" in shown
    seen = host.mcp.definition("files", "echo").digest[:12]
    assert [b.command for b in host.channel.answers[-1].buttons] == [
        f"/mcp allow files echo ask ={seen}",
        f"/mcp allow files echo always ={seen}",
        f"/mcp allow files echo reads ={seen}",
        "/mcp allow files echo never",
    ]
