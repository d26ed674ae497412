"""What the memory bus holds goes along: as files to be read, and as tapes on which work goes on."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from exchange_files import UTC, tapes

from bot.core.clock import SystemClock
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.fact_fold import bus_entry
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.service import TapeService
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply
from bot.transfer.memory_export import write_archive

CHAT, HOME = "fake:1", "person:fake:7"
NOW = ManualClock().now()


async def live(folder: Path) -> None:
    """Work on two problems, set a value, and let something be believed."""
    async with session_host(folder, ScriptedModel(lambda _: text_reply("Noted."))) as host:
        for text in (
            "Hello",
            "/memory add I like tea",
            "/reference set deadline Friday",
            "/reference set deadline Monday",
            "/problem new Trip to Oslo",
            "The ferry leaves at nine.",
            "/problem note must arrive by noon",
            "/problem note ask which ferry?",
            "/problem note decide take the ferry because it is cheap",
            "/problem note draft letter Dear harbour",
            "/problem switch general",
        ):
            await host.channel.ask(text)
    async with tapes(folder) as store:
        said = next(one.id for one in await store.read(CHAT) if "ferry leaves" in str(one.payload))
        scope = ScopeMemory(TapeService(store, HOME), "person", SystemClock())
        content = {"text": "The user travels by sea.", "if": "it is cheap"}
        rests = [f"{CHAT}#{said}", "1", "h3"]
        belief = SynthesizedPattern("p1", "heuristic", content, rests, 0.8, NOW, NOW).as_json()
        await scope.append_change(lambda _: ([bus_entry({"patterns": [belief]})], None))


async def archived(folder: Path) -> dict[str, str]:
    path = folder / "a.zip"
    async with tapes(folder, read_only=True) as store:
        await write_archive(store, CHAT, path, UTC, NOW)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.mark.slow
async def test_problems_values_and_beliefs_are_files_and_what_was_erased_is_in_none(
    tmp_path: Path,
) -> None:
    await live(tmp_path)
    found = await archived(tmp_path)
    for word in ("Friday", "by sea", "Dear harbour"):
        assert [name for name, text in found.items() if word in text]
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("Noted."))) as host:
        for number, what in enumerate(("Friday", "sea", "Dear harbour")):
            await host.channel.wait_for_answer(
                await host.channel.send(f"/memory forget {what}", message_id=f"forget-{number}")
            )
            button = host.channel.answers[-1].buttons[0].command
            await host.channel.wait_for_answer(
                await host.channel.send(button, message_id=f"press-{number}"), within=20
            )
    found = await archived(tmp_path)
    for line in ("- must: arrive by noon", "- ask: which ferry?", "- decide: take the ferry"):
        assert f"\n{line}" in found["problems.md"]
    assert found["references.md"].startswith("# deadline\n\nMonday\n\n[deadline v2, set")
    assert "v1" not in found["references.md"]
    assert found["beliefs.md"] == ""
    for word in ("Friday", "by sea", "Dear harbour"):
        assert not [name for name, text in found.items() if word in text]
