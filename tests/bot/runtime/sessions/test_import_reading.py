"""Imported conversations are read in portions; what they say waits, with its words, for the person."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from waiting import until

from bot.agent.consolidation.imported_tapes import read_imported_tape
from bot.bus import Sender
from bot.cli.import_assistants import import_assistant
from bot.llm.base import ModelReply, ModelRequest
from bot.memory.records.fact import Fact
from bot.memory.records.imports import assistant_of
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.runtime.settings import load_settings
from bot.tape.service import TapeService
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
    text_reply,
)
from tests.bot.transfer.assistant_exports import NOON, talk

BOB = Sender("8", "Bob")


async def brought(folder: Path, *conversations: dict[str, Any], person: str = "fake:7") -> None:
    """Import conversations with ChatGPT for a person, before the program runs."""
    file = folder / "conversations.json"
    file.write_text(json.dumps(conversations))
    settings = load_settings(home=folder, timezone="UTC")

    def bring() -> None:
        assert import_assistant(settings, "chatgpt", file, person=person) == 0

    await anyio.to_thread.run_sync(bring)


def bring_again(folder: Path) -> None:
    settings = load_settings(home=folder, timezone="UTC")
    assert import_assistant(settings, "chatgpt", folder / "again.json", person="fake:7") == 0


TOLD = {
    "My sister Paula works as a nurse.": "The user's sister Paula works as a nurse.",
    "My cat is called Miso.": "The user's cat is called Miso.",
    "I live in Lisbon.": "The user lives in Lisbon.",
}
"""What people said, and the facts that a model finds in it."""


def reading() -> ScriptedModel:
    """A model that finds ``TOLD`` in what it reads, and answers with its memory of cats."""

    def read(request: ModelRequest) -> ModelReply:
        shown = str(request.messages[-1]["content"])
        found = [
            fact_change(fact, said)
            for said, fact in TOLD.items()
            if re.search(rf"#\d+ [^\n]*{re.escape(said)}", shown)
        ]
        return consolidation_reply("[2023-11-14 22:00] They talked.", *found)

    def answer(request: ModelRequest) -> ModelReply:
        known = "Miso" in str(request.messages)
        return text_reply("Miso" if known else "I don't know.")

    return ScriptedModel(answer, consolidation=read)


async def facts(host: Host, scope: str = "person:fake:7") -> list[Fact]:
    memory = ScopeMemory(TapeService(host.store, scope), "person", host.clock)
    await memory.open()
    return list(memory.fold.facts.values())


async def all_read(host: Host) -> None:
    """Wait until nothing is left to read."""

    async def nothing_left() -> bool:
        names = [one for one in await host.store.list_tapes() if assistant_of(one)]
        found = [await read_imported_tape(host.store, one, ["fake:7"]) for one in names]
        return bool(found) and all(one is None or one.unread is None for one in found)

    await until(nothing_left)


async def test_what_is_found_waits_with_its_words_and_answers_once_it_is_accepted(tmp_path):
    await brought(
        tmp_path,
        talk("late", "My sister Paula works as a nurse.", "Nice.", start=NOON + 9_000_000),
        talk("early", "My cat is called Miso.", "A lovely name!", "I live in Lisbon.", "Sunny!"),
    )
    async with session_host(tmp_path, reading()) as host:
        shown = await host.channel.ask("/memory import")
        assert "**Imported conversations: 2** (2 of ChatGPT)" in shown
        assert "0 conversations were read for facts, 2 were not" in shown
        assert "I am reading them" in await host.channel.ask("/memory import start")
        await all_read(host)
        assert "2 conversations were read for facts, 0 were not" in await host.channel.ask(
            "/memory import"
        )
        assert {fact.status for fact in await facts(host)} == {"pending"}
        listed = await host.channel.ask("/memory pending")
        assert (
            "**1.** The user's cat is called Miso.\n“My cat is called Miso.” (you to ChatGPT, 2023-11-14)"
            in listed
        )
        assert "it is from a conversation with ChatGPT" in listed
        assert "don't know" in await host.channel.ask("What is my cat called?", chat="new")
        assert (await host.channel.ask("/memory accept 1-20")).count("Accepted: ") == 3
        assert "Miso" in await host.channel.ask("What is my cat called?", chat="another")
        why = await host.channel.ask("/memory why 1")
        assert "of `chatgpt:early`: “My cat is called Miso.”" in why
        assert "accepted by a person" in why


async def test_nothing_is_read_until_it_is_asked_for_and_a_pause_holds(tmp_path):
    await brought(tmp_path, talk("k", "My cat is called Miso.", "Hm."))
    async with session_host(tmp_path, reading()) as host:
        await host.channel.ask("hello")
        await host.channel.ask("/memory pause")
        told = await host.channel.ask("/memory import start")
        assert "Reading waits: memory is paused" in told
        await host.channel.ask("hello again")
        assert await facts(host) == []
        assert "I am not reading them" in (await host.channel.ask("/memory import pause")).replace(
            "Reading would wait: memory is paused (`/memory resume`).", "I am not reading them"
        )
        await host.channel.ask("/memory resume")
        await host.channel.ask("/memory import start")
        await all_read(host)
        assert len(await facts(host)) == 1


async def test_what_is_erased_goes_from_imported_tapes_too(tmp_path):
    await brought(
        tmp_path,
        talk("k", "My cat is called Miso.", "Miso it is.", "I live in Lisbon.", "Ah."),
        talk("unread", "Miso again.", "Yes."),
    )
    async with session_host(tmp_path, reading()) as host:
        await host.channel.ask("/memory import start")
        await all_read(host)
        await host.channel.ask("/memory accept all")
        asked = await host.channel.ask("/memory forget Miso")
        number = asked.partition("`/memory forget yes ")[2].partition("`")[0]
        await host.channel.ask(f"/memory forget yes {number}")
    # Imported again, it does not come back.
    (tmp_path / "conversations.json").rename(tmp_path / "again.json")
    await anyio.to_thread.run_sync(lambda: bring_again(tmp_path))
    for file in (tmp_path / "tapes").rglob("*"):
        if file.is_file():
            assert b"Miso" not in file.read_bytes(), file
    async with session_host(tmp_path, reading()) as host:
        said = [one.payload.get("content") for one in await host.tape("chatgpt:k")]
        assert "I live in Lisbon." in said


@pytest.mark.parametrize("private", [True, False])
async def test_others_and_groups_see_nothing_of_it(tmp_path, private):
    await brought(tmp_path, talk("k", "My cat is called Miso.", "Hm."))
    async with session_host(tmp_path, reading()) as host:
        sent = await host.channel.send(
            "/memory import start", sender=BOB, private=private, chat="9"
        )
        told = await host.channel.wait_for_answer(sent)
        assert "no imported conversations" in told or "ask in a private chat" in told
        assert await facts(host) == []


async def test_a_command_in_an_imported_conversation_learns_nothing_of_it(tmp_path):
    """The site lets an owner give commands in any conversation."""
    await brought(tmp_path, talk("k", "My cat is called Miso.", "Hm."))
    async with session_host(tmp_path, reading()) as host:
        channel = host.add_channel("chatgpt")
        await channel.ask("/memory", chat="k")
        await channel.ask("/new", chat="k")
        assert "Miso" not in await channel.ask("/memory", chat="k")
    async with session_host(tmp_path, reading()) as host:
        assert await facts(host) == []
        assert await host.events("memory/consolidated", "chatgpt:k") == []
