"""What a chat shows is what its tape says, however much there is and whatever became of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.bus import TranscriptMessage
from bot.inspector.transcript import TapeTranscript
from bot.memory.records.tombstones import ERASED_TEXT, tombstone
from bot.tape.entries import event, message
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

SESSION = "fake:1"


@pytest.fixture
async def host(tmp_path) -> AsyncIterator[Host]:
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("a **reply**"))) as host:
        yield host


def transcript(host: Host) -> TapeTranscript:
    return TapeTranscript(host.store, host.services.exports)


async def test_a_portion_and_what_follows_it_are_all_there_is_and_nothing_twice(host):
    for number in range(12):
        await host.channel.ask("/status" if number % 3 == 0 else f"message {number}")
    said = transcript(host)
    everything = await said.newest(SESSION, 1_000)
    assert len(everything) == 24
    found: list[TranscriptMessage] = []
    while portion := await said.newest(SESSION, 5, found[0].position if found else None):
        found = [*portion, *found]
    assert found == everything
    for cut, line in enumerate(everything):
        assert await said.since(SESSION, line.position) == everything[cut + 1 :]
        assert await said.message(SESSION, line.position) == line


async def test_what_is_erased_is_shown_as_erased_and_damage_is_passed_over(host):
    await host.channel.ask("my secret")
    await host.channel.ask("/memory add my secret")
    lines = await transcript(host).newest(SESSION, 10)
    for line in lines:
        (entry,) = await host.store.read(SESSION, line.position, line.position)
        await host.store.erase(SESSION, [tombstone(entry)])
    after = await transcript(host).newest(SESSION, 10)
    assert [line.text for line in after] == [ERASED_TEXT] * 4
    assert [(line.position, line.id, line.author) for line in after] == [
        (line.position, line.id, line.author) for line in lines
    ]
    damage = [
        event("turn.end", {"turn": 5, "answered": True, "inbound": "no list"}),
        event("command", {"name": None}),
        message("user", None),
        event("reply", {"text": ["no text"], "buttons": "x", "files": {"a": 1}}),
        event("turn.end", {"turn": None, "answered": True}),
    ]
    await host.store.append_many(SESSION, damage)
    later = await transcript(host).newest(SESSION, 10)
    assert later[: len(after)] == after
