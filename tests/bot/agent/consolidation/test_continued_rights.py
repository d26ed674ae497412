"""A consolidation continues no prompt that its model, its instructions or its words are not meant for."""

from __future__ import annotations

import re

from continued_talk import cached_model, is_continued
from counting_talk import LEARNED, talk

from bot.bus import ClientRequest, Inbound
from bot.llm.presets import ModelPresets, Preset
from bot.tape.entries import MEMORY_CONSOLIDATED
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import consolidation_reply

CLIENT = ClientRequest(system="Answer as a pirate.", tools=({"name": "sail", "parameters": {}},))


async def ask_as_client(host: Host, text: str) -> None:
    """Say something by a client program with its own instructions and tools."""
    said = await host.channel.send("Hello.")
    await host.channel.wait_for_answer(said)
    inbound = Inbound(
        said.address, "client-1", said.sender, text, said.sent_at, role="owner", client=CLIENT
    )
    await host.bus.channel("fake").publish(inbound)
    await host.channel.wait_for_answer(inbound)


async def test_not_with_a_clients_instructions_and_tools(tmp_path):
    model = cached_model(LEARNED)
    async with session_host(tmp_path, model) as host:
        await talk(host, 3)
        await ask_as_client(host, "I count number 4.")
        assert "pirate" in str(model.requests_for("turn")[-1].messages)
        assert await host.channel.ask("/new") == "New session started."
    [request] = model.requests_for("consolidation")
    assert not is_continued(request)
    assert "sail" not in {tool.name for tool in request.tools}


async def test_what_a_private_problem_shows_is_in_no_summary_of_what_was_said_before_it(tmp_path):
    model = cached_model(LEARNED)
    presets = ModelPresets([Preset("home", model, private=True)])
    async with session_host(tmp_path, model, bounds=HostLimits(window=20), presets=presets) as host:
        await host.channel.ask("/problem new Health")
        await talk(host, 9)
        await host.channel.ask("/problem private on")
        await host.channel.ask("My knee hurts.")
        await host.wait_for_event(MEMORY_CONSOLIDATED)
    [request] = model.requests_for("consolidation")
    assert "number 1" in str(request.messages)
    assert "knee" not in str(request.messages)


async def test_not_with_a_prompt_in_which_words_were_erased_since_the_model_saw_it(tmp_path):
    model = cached_model(consolidation_reply("[2026-02-10 10:00] Ada counted."))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "USER.md").write_text("The user likes Rome.")
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I was in Rome.")
        [yes] = re.findall(
            "/memory forget yes [0-9]+", await host.channel.ask("/memory forget Rome")
        )
        await host.channel.ask(yes)
        await talk(host, 3)
        assert "likes Rome" in str(model.requests_for("turn")[-1].messages[0])
        assert await host.channel.ask("/new") == "New session started."
    [request] = model.requests_for("consolidation")
    assert not is_continued(request)
