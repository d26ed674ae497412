"""What the memory bus holds goes along: as files to be read, and as tapes on which work goes on."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import anyio
from exchange_files import UTC, export, settings, tapes

from bot.cli.imports import import_jsonl
from bot.cli.memory_audit import audit_memory
from bot.core.clock import SystemClock
from bot.memory.records.compartment_records import SharedReference, SynthesizedPattern
from bot.memory.records.compartments import Compartments
from bot.memory.records.fact_fold import FactFold, bus_entry, fold_entries
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.service import TapeService
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply
from bot.transfer.memory_archive import write_archive
from bot.transfer.memory_markdown import belief_md, problems_md, reference_md

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
        await scope.append_change(lambda _: ([bus_entry(scope.fold, {"patterns": [belief]})], None))


async def archived(folder: Path) -> dict[str, str]:
    path = folder / "a.zip"
    async with tapes(folder, read_only=True) as store:
        await write_archive(store, CHAT, path, UTC, NOW)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


async def test_problems_values_and_beliefs_are_files_that_can_be_read(tmp_path: Path) -> None:
    await live(tmp_path)
    found = await archived(tmp_path)
    problems = found["problems.md"]
    assert problems.startswith("# general\n\nactive, priority 5")
    assert "# Trip to Oslo (p1)\n\npaused, priority 5, made 2026-02-10 10:00" in problems
    for line in (
        "- must: arrive by noon",
        "- open: which ferry?",
        "- decided: take the ferry, because it is cheap",
        "- draft letter: Dear harbour",
    ):
        assert f"\n{line}\n" in problems
    values = found["references.md"]
    assert values.startswith("# deadline\n\nMonday\n\n[deadline v2, set 2026-02-10 by you, fake:1#")
    assert "\n- Friday [deadline v1, set 2026-02-10 by you, fake:1#" in values
    beliefs = found["beliefs.md"]
    assert beliefs.startswith(
        "# p1: heuristic, believed, confidence 0.80\n\nThe user travels by sea."
    )
    assert "\nif: it is cheap\n" in beliefs
    assert ": The ferry leaves at nine.\n- fact 1: I like tea\n- h3\n" in beliefs
    assert '"memory.bus"' in found["decisions.jsonl"]


async def test_what_expired_or_was_erased_is_in_no_file(tmp_path: Path) -> None:
    await live(tmp_path)
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
    assert found["references.md"].startswith("# deadline\n\nMonday\n\n[deadline v2, set")
    assert "v1" not in found["references.md"]
    assert found["beliefs.md"] == ""
    for word in ("Friday", "by sea", "Dear harbour"):
        assert not [name for name, text in found.items() if word in text]
    async with tapes(tmp_path, read_only=True) as store:
        held = fold_entries(await store.read(CHAT)).compartments
    assert "## Working set" in problems_md(held, NOW, UTC)
    assert "## Working set" not in problems_md(held, NOW.replace(year=2027), UTC)


async def test_work_on_a_problem_goes_on_where_its_tape_was_brought(tmp_path: Path) -> None:
    await live(tmp_path / "old")
    out = tmp_path / "out"
    out.mkdir()
    async with tapes(tmp_path / "old", read_only=True) as store:
        for name in (CHAT, HOME):
            path = out / f"{name.replace(':', '-')}.jsonl"
            path.write_bytes(await export(store, name, "jsonl"))
    new = tmp_path / "new"
    assert await anyio.to_thread.run_sync(import_jsonl, settings(new), out) == 0
    model = ScriptedModel(lambda _: text_reply("Noted."))
    async with session_host(new, model) as host:
        for number, text in enumerate(("/problem switch Trip", "Which one?")):
            sent = await host.channel.send(text, message_id=f"new-{number}")
            await host.channel.wait_for_answer(sent)
        shown = json.dumps(model.requests_for()[-1].messages)
        assert "The ferry leaves at nine." in shown
        assert "arrive by noon" in shown
        assert "Hello" not in shown
        sent = await host.channel.send("/reference rollback deadline 1", message_id="new-9")
        assert "Friday" in await host.channel.wait_for_answer(sent)

    def audited() -> int:
        return audit_memory(settings(new), None, as_json=False, clock=ManualClock(NOW))

    assert await anyio.to_thread.run_sync(audited) == 0


def test_sections_say_what_is_gone() -> None:
    old = SharedReference("k", "x", 1, "a person", NOW, NOW, "person")
    gone = SharedReference("k", None, 2, "", NOW, NOW, "person")
    told = reference_md([(gone, "[k v2]"), (old, "[k v1]")])
    assert told == "# k\n\n(removed)\n\n[k v2]\n\n- x [k v1]\n\n"
    belief = SynthesizedPattern("p1", "policy", {"text": "x"}, ["a:1#9", "4"], 0.5, NOW, NOW)
    assert "- a:1#9\n- fact 4: (gone)\n" in belief_md(belief, FactFold(), {"a:1#9": None}, NOW, UTC)
    assert problems_md(Compartments(), NOW, UTC) == "# general\n\nactive, priority 5\n"
