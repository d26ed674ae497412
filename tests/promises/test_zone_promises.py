"""The memory zone on a tape: which version counts, what is in it, what a prompt shows of it, how long and how much."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from bot.core.errors import MemoryRefused
from bot.memory.session.state.zone import MemoryZone
from bot.tape.entries import TapeEntry, anchor, event, message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

DAY = 86_400
_ids = itertools.count()


class Chat:
    """A chat whose model calls a tool that the test names, and answers "ok"."""

    def __init__(self, folder: Path, **bounds: object) -> None:
        self.folder, self.bounds = folder, HostLimits(**bounds)
        self.clock, self.steps = ManualClock(), list[object]()
        self.model = ScriptedModel(lambda _: self.steps.pop(0) if self.steps else text_reply("ok"))

    def open(self):
        return session_host(self.folder, self.model, clock=self.clock, bounds=self.bounds)

    async def say(self, host: Host, text: str) -> str:
        sent = await host.channel.send(text, message_id=f"p{next(_ids)}")
        return await host.channel.wait_for_answer(sent)

    async def tool(self, host: Host, said: str, *calls: tuple[str, dict[str, str]]) -> str:
        """Have the model call tools for what the person says; return the last result."""
        self.steps = [tool_call_reply(*calls)]
        await self.say(host, said)
        results = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        return results[-1].payload["content"]

    async def note(self, host: Host, text: str, **date: str) -> str:
        return await self.tool(host, text, ("memory_daily", {"content": text, **date}))

    async def show(self, host: Host) -> str:
        return await self.tool(host, "Show me all that you remember.", ("memory_show", {}))

    async def system(self, host: Host) -> str:
        """Return the system prompt of a phase that begins anew."""
        await self.say(host, "/new now")
        await self.say(host, "hello")
        return str(self.model.requests_for()[-1].messages[0]["content"])


def block(system: str) -> str:
    return system.partition("<memory>")[2].partition("</memory>")[0]


def zone(version: int, note: str, *, sealed: bool = True) -> list[TapeEntry]:
    """Return a zone as it stands on a tape."""
    stamp = "2026-02-10T10:00:00+00:00"
    noted = {"date": "2026-02-10", "content": note, "updated_at": stamp}
    begin, end = (anchor(name, {"version": version}) for name in ("memory/open", "memory/seal"))
    return [begin, event("memory.daily", noted), *([end] if sealed else [])]


async def append(folder: Path, *entries: TapeEntry) -> None:
    store = FileTapeStore(folder / "tapes", sync=False, clock=ManualClock())
    tape = TapeService(store, "fake:1")
    await tape.ensure_bootstrap_anchor()
    await tape.append_many(entries)
    await store.close()


@pytest.mark.parametrize(
    ("entries", "remembered"),
    [
        ([], "I met Eva."),
        (zone(99, "I met nobody.", sealed=False), "I met Eva."),
        (zone(1, "I met nobody."), "I met Eva."),
        (zone(99, "I met Ida.") + zone(98, "I met nobody."), "I met Ida."),
    ],
    ids=["as it was", "an unsealed one", "a lower one", "a higher one"],
)
async def test_the_sealed_zone_of_the_highest_version_counts(tmp_path, entries, remembered):
    chat = Chat(tmp_path)
    async with chat.open() as host:
        await chat.note(host, "I met Eva.")
    await append(tmp_path, event("unrelated"), *entries)
    async with chat.open() as host:
        shown = [await chat.show(host), block(await chat.system(host))]
    assert all(remembered in one and "nobody" not in one for one in shown)


async def test_a_tape_begins_with_its_header_its_start_and_an_empty_zone_once(tmp_path):
    chat = Chat(tmp_path)
    for _ in range(2):
        async with chat.open() as host:
            await chat.say(host, "hello")
            tape = await host.tape()
    named = [entry for entry in tape if entry.name is not None]
    names = [one.name for one in named]
    assert names[:4] == ["tape.header", "session/start", "memory/open", "memory/seal"]
    assert [one.data for one in named[1:4]] == [{"owner": "human"}, {"version": 1}, {"version": 1}]
    assert names.count("session/start") == 1


async def test_memory_stands_on_the_tape_as_dated_events_between_open_and_seal(tmp_path):
    chat = Chat(tmp_path)
    async with chat.open() as host:
        await chat.say(host, "/memory add I like tea")
        await chat.note(host, "I met Eva.", date="2026-02-09")
        tape = await host.tape()
    [first, *_, last] = [one.id for one in tape if one.name in ("memory/open", "memory/seal")][-2:]
    kept, noted = [one for one in tape if first < one.id < last]
    assert [one.kind for one in (kept, noted)] == ["event", "event"]
    assert [one.name for one in (kept, noted)] == ["memory.long_term", "memory.daily"]
    assert "I like tea" in kept.data["content"]
    now = noted.data["updated_at"]
    assert noted.data == {"date": "2026-02-09", "content": "I met Eva.", "updated_at": now}
    assert kept.data["updated_at"] == now
    assert now.startswith(chat.clock.now().isoformat()[:19])


async def test_a_tape_without_a_zone_gets_an_empty_one_and_loses_nothing(tmp_path):
    said = [message("user", "My cat is Miso.", sender={"id": "7", "name": "Ada"})]
    said.append(message("assistant", "A fine name."))
    await append(tmp_path, *said)
    chat = Chat(tmp_path)
    async with chat.open() as host:
        await chat.say(host, "hello")
        tape = await host.tape()
    [opened, sealed] = [one for one in tape if one.name in ("memory/open", "memory/seal")]
    assert sealed.id == opened.id + 1
    assert (opened.data, sealed.data) == ({"version": 1}, {"version": 1})
    assert [one.payload for one in tape[2:4]] == [one.payload for one in said]
    asked = chat.model.requests_for()[-1].messages
    assert [one["role"] for one in asked] == ["system", "user", "assistant", "user"]
    assert "My cat is Miso." in str(asked[1]["content"])
    assert asked[2]["content"] == "A fine name."


async def test_a_prompt_has_facts_todays_notes_and_a_week_apart_and_nothing_older(tmp_path):
    chat = Chat(tmp_path)
    async with chat.open() as host:
        await chat.say(host, "/memory add I like tea")
        for day in range(9):
            chat.clock.advance(DAY * bool(day))
            if day in (0, 1, 4, 8):
                await chat.note(host, f"I swam on day {day}.")
        shown = block(await chat.system(host))
    kept, _, notes = shown.partition("## Today's Notes\n")
    today, _, recent = notes.partition("## Recent Notes\n")
    assert "I like tea" in kept
    assert today.strip() == "I swam on day 8."
    assert recent.split("\n\n") == [
        "### 2026-02-14\nI swam on day 4.",
        "### 2026-02-11\nI swam on day 1.\n",
    ]
    assert "day 0" not in shown


@pytest.mark.parametrize(
    ("zone", "day"),
    [("UTC", "Tuesday, 2026-02-10"), ("Pacific/Kiritimati", "Wednesday, 2026-02-11")],
)
async def test_a_prompt_says_which_day_it_is_for_the_user_and_that_preferences_are_saved_unasked(
    tmp_path, zone, day
):
    chat = Chat(tmp_path, timezone=zone)
    async with chat.open() as host:
        system = await chat.system(host)
        chat.clock.advance(DAY)
        tomorrow = await chat.system(host)
    assert f"Today is {day} ({zone})." in system
    assert day not in tomorrow
    contract = system.partition("<contract>")[2].partition("</contract>")[0]
    [rule] = [line for line in contract.splitlines() if "preferences" in line]
    assert rule.startswith("- Save ")
    assert "unasked" in rule
    tools = {tool.name for tool in chat.model.requests_for()[-1].tools}
    assert {name for name in tools if f"`{name}`" in rule} == {"memory_save"}


@pytest.mark.parametrize("kept", [30, 3])
async def test_notes_past_the_retention_are_refused_and_dropped_when_memory_is_next_opened(
    tmp_path, kept
):
    """Where nothing is set, it is 30 days."""
    chat = Chat(tmp_path) if kept == 30 else Chat(tmp_path, retention_days=kept)
    oldest = chat.clock.now().date() - timedelta(days=kept)
    async with chat.open() as host:
        before = (oldest - timedelta(days=1)).isoformat()
        refused = await chat.note(host, "I met nobody.", date=before)
        await chat.note(host, "I met Eva.", date=oldest.isoformat())
        await chat.note(host, "I met Ida.")
        shown = await chat.show(host)
    assert refused.startswith("Not done")
    assert "nobody" not in shown
    assert "I met Eva." in shown
    chat.clock.advance(DAY)
    async with chat.open() as host:
        later = await chat.show(host)
    assert "Eva" not in later
    assert "I met Ida." in later


@pytest.mark.parametrize("archive", [True, False])
async def test_after_a_reset_memory_is_empty_and_only_what_is_archived_is_found(tmp_path, archive):
    chat = Chat(tmp_path)
    async with chat.open() as host:
        await chat.note(host, "I met Eva.")
    store = FileTapeStore(tmp_path / "tapes", sync=False, clock=chat.clock)
    await TapeService(store, "fake:1").reset(archive=archive)
    await store.close()
    async with chat.open() as host:
        shown = [await chat.show(host), await chat.system(host)]
        found = await chat.say(host, "/tape search Eva")
        kept = "met Eva" in str([entry.payload for entry in await host.tape()])
    assert not any("Eva" in one for one in shown)
    assert ("I met Eva." in found) is kept is archive


async def opened_zone(clock: ManualClock, folder: Path, days: int = 30) -> MemoryZone:
    tape = TapeService(FileTapeStore(folder, sync=False, clock=clock), "fake:1")
    await tape.ensure_bootstrap_anchor()
    zone = MemoryZone(tape, clock=clock, retention_days=days)
    await zone.load_or_create()
    return zone


async def test_pruning_returns_how_many_notes_it_dropped(tmp_path):
    clock = ManualClock()
    zone = await opened_zone(clock, tmp_path, days=3)
    for _ in range(4):
        await zone.append_daily("I swam.")
        clock.advance(DAY)
    clock.advance(DAY)
    assert [await zone.prune(), await zone.prune()] == [2, 0]
    assert [note.date for note in zone.read().dailies] == ["2026-02-12", "2026-02-13"]


async def test_long_term_memory_that_is_too_long_is_refused_whole_with_both_figures(tmp_path):
    zone = await opened_zone(ManualClock(), tmp_path)
    await zone.save_long_term("- first")
    with pytest.raises(MemoryRefused, match=r"at most 4,000 bytes, and this is 4,001"):
        await zone.save_long_term("x" * 4_001)
    assert zone.read().long_term == "- first"
    await zone.save_long_term("x" * 4_000)
    assert zone.read().long_term == "x" * 4_000


async def test_twenty_notes_at_once_are_all_there(tmp_path):
    notes = [f"I counted bird {number}." for number in range(20)]
    zone = await opened_zone(ManualClock(), tmp_path)
    async with anyio.create_task_group() as tasks:
        for one in notes:
            tasks.start_soon(zone.append_daily, one)
    [note] = zone.read().dailies
    assert sorted(note.content.splitlines()) == sorted(notes)
    assert zone.read().version == 21


async def test_of_many_chats_at_once_every_fact_is_saved(tmp_path):
    chat = Chat(tmp_path)
    async with chat.open() as host:
        said = [f"/memory add I own boat {number}." for number in range(20)]
        sent = [await host.channel.send(one, chat=str(at)) for at, one in enumerate(said)]
        for one in sent:
            await host.channel.wait_for_answer(one)
        shown = await chat.show(host)
    assert all(f"I own boat {number}." in shown for number in range(20))


def test_a_window_of_100_messages_and_30_days_of_notes_are_the_defaults():
    """The file of examples shows the defaults, which a test of the settings holds."""
    lines = (Path(__file__).parents[2] / ".env.example").read_text().splitlines()
    assert {"#TAPEBOT_MEMORY_WINDOW=100", "#TAPEBOT_RETENTION_DAYS=30"} <= set(lines)
