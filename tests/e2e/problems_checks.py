"""What must hold of chats whose people worked on several problems, whatever was killed when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kill_checks import check_lines, check_tape, read_tape
from problems_talk import ASKED_FOR, GENERAL, MOTTO, Talk, chat_of, markers, problem_in

from bot.core.clock import SystemClock
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.conversation_entries import PROBLEM_ANCHOR_PREFIX, TURN_END
from bot.memory.records.episodes import EPISODE_EVENT, entry_of
from bot.memory.records.event_names import (
    HISTORY_EVENT,
    REPLY,
)
from bot.memory.records.fact_fold import FactFold, fold_entries
from bot.memory.records.problem_notes import NOTE_KINDS, note_lines
from bot.memory.records.turn_marks import turn_end, unfold
from bot.memory.session.scope.scope_memory import load_fact_entries
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_fold, load_resumed_entries
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import MEMORY_CONSOLIDATED, TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService
from bot.tape.store import REPAIR_EVENT
from bot.tape.stores.file import FileTapeStore

_OF_ANOTHER = frozenset({BUS_EVENT, EPISODE_EVENT, HISTORY_EVENT, REPAIR_EVENT})
"""Events that name the problem that they tell of, and the store's own, which tell of none."""


@dataclass
class Chat:
    """A chat as it is in the end.

    Attributes:
        talk: What was said there.
        entries: Of its tape.
        state: What the running program believed.
        full: The fold of its tape from the first entry.
        home: The same of its person's tape.
    """

    talk: Talk
    entries: list[TapeEntry]
    state: dict[str, Any]
    full: SessionFold
    home: FactFold
    by_id: dict[int, TapeEntry] = field(init=False)
    names: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.by_id = {entry.id: entry for entry in self.entries}
        made = self.full.compartments.problems.values()
        self.names = {one.problem_id: one.name for one in made} | {GENERAL: GENERAL}


async def check_home(home: Path, talks: Iterable[Talk]) -> Counter[str]:
    """Look at all that is on the disk; return what was met."""
    check_lines(home)
    found: Counter[str] = Counter()
    store = FileTapeStore(home / "tapes", read_only=True, clock=SystemClock())
    try:
        everybody = await store.read("workspace:shared")
        for talk in talks:
            try:
                chat = await _read(home, store, talk)
                await check_folds(store, chat, everybody)
                _check_chat(chat)
                await _check_evidence(store, chat)
            except AssertionError as error:
                error.add_note(f"in {talk.session}")
                raise
            found += _counted(chat)
    finally:
        await store.close()
    _check_motto(fold_entries(everybody), sum(talk.shared for talk in talks))
    return found


async def _read(home: Path, store: FileTapeStore, talk: Talk) -> Chat:
    entries = await read_tape(home, talk.session)
    state = json.loads((home.parent / f"state-{talk.chat}.json").read_text())
    full = SessionFold(WindowFold(*state["bounds"]))
    for entry in entries:
        full.apply(entry)
    await load_resumed_entries(TapeService(store, talk.session), full.window)
    return Chat(talk, entries, state, full, fold_entries(await store.read(state["home"][0])))


def _check_chat(chat: Chat) -> None:
    check_tape(chat.entries)
    check_messages(chat)
    check_registry(chat)
    check_phases(chat)
    check_belonging(chat)
    check_notes(chat)
    check_shared(chat)


async def check_folds(store: FileTapeStore, chat: Chat, everybody: list[TapeEntry]) -> None:
    """The running program, the fold from the tail, and the fold from the first entry are one."""
    name, running = chat.state["home"]
    tape = TapeService(store, chat.talk.session)
    most, tokens = chat.state["bounds"]
    tail = await load_fold(tape, max_messages=most, max_tokens=tokens)
    assert tail.pointers() == chat.full.pointers(), "the tail tells another state than the tape"
    for fold in (tail, chat.full):
        assert _json(fold.facts.state()) == chat.state["own"], "the program believes otherwise"
        spoken = [entry.id for entry in fold.window.conversation()]
        assert [fold.window.problem, spoken] == chat.state["window"], "another view"
        assert fold.window.problem == fold.problem
    assert _json(chat.home.state()) == running
    assert (
        fold_entries(await load_fact_entries(TapeService(store, name))).state() == chat.home.state()
    )
    assert _json(fold_entries(everybody).state()) == chat.state["workspace"]


def check_messages(chat: Chat) -> None:
    """Each message is on the tape once, in its place and its problem, and answered in one turn."""
    ends = list(filter(None, map(turn_end, chat.entries)))
    settled = Counter(inbound for end in ends for inbound in end.data["inbound"])
    wanted = [one.id for one in chat.talk.messages()]
    assert settled == Counter([*wanted, f"{chat.talk.chat}.state"])
    assert all(end.data["status"] in ("ok", "command") for end in ends), "a turn failed"
    heard = {str(e.meta["inbound"]): e for e in chat.entries if "inbound" in e.meta}
    said = [one.id for one in chat.talk.messages() if not one.is_command]
    assert [one for one in heard if heard[one].kind == "message"] == said, "out of order"
    for message in chat.talk.messages():
        entry = heard[message.id]
        assert chat.names[problem_of(entry)] == message.problem, f"elsewhere: {message}"
    failed = [e for e in chat.entries if e.kind == "tool_result" and e.payload["status"] != "ok"]
    assert not failed, failed
    replies = [str(e.data["text"]) for e in chat.entries if e.name == REPLY]
    assert not [one for one in replies if one.startswith(("That did not work", "Not "))]


def check_registry(chat: Chat) -> None:
    """Each problem was made once, its number is its own, and one is active."""
    shown = {name: state for _, name, state in chat.state["problems"]}
    assert len(shown) == len(chat.state["problems"]), "a problem was made twice"
    active = chat.talk.active
    assert [name for name, state in shown.items() if state == "active"] == [active]
    assert shown == {GENERAL: "paused", **chat.talk.states, active: "active"}
    ids = {name for name, _, _ in chat.state["problems"]} - {GENERAL}
    assert ids == {f"p{number}" for number in range(1, len(chat.talk.states) + 1)}
    assert chat.full.compartments.next_problem == len(ids) + 1
    assert not chat.full.compartments.requested_problem
    switches = [
        e
        for e in chat.entries
        if e.kind == "anchor" and str(e.name).startswith(PROBLEM_ANCHOR_PREFIX)
    ]
    assert len(switches) == chat.talk.counts["switches"], "a switch was done twice, or never"


def check_phases(chat: Chat) -> None:
    """Each entry is marked with the problem that was worked on when it was written."""
    phase = GENERAL
    for entry in chat.entries:
        if entry.kind == "anchor" and str(entry.name).startswith(PROBLEM_ANCHOR_PREFIX):
            phase = str(entry.name).removeprefix(PROBLEM_ANCHOR_PREFIX)
            assert entry.data["problem"] == phase
            returns = entry.data["returns"]["ids"]
            assert {problem_of(chat.by_id[one]) for one in returns} <= {phase}, "another's return"
            assert len(set(returns)) == len(returns)
        elif entry.name not in _OF_ANOTHER:
            assert problem_of(entry) == phase, f"{entry} is in the phase of {phase}"
    assert phase == chat.full.problem
    for problem in chat.full.compartments.problems.values():
        belong = {problem_of(chat.by_id[one]) for one in problem.resumable_entry_ids}
        assert belong <= {problem.problem_id}, f"{problem} has messages of {belong}"


def check_belonging(chat: Chat) -> None:
    """No entry of a problem holds a marker of another, but what tells a person of a switch."""
    for entry in chat.entries:
        for problem, text in _texts(entry):
            for marker in markers(text):
                assert chat_of(marker) == chat.talk.number, f"{marker} in {entry}"
                said_in = problem_in(marker)
                assert said_in in (None, chat.names[problem]), f"{marker} of {said_in} in {entry}"


def _texts(entry: TapeEntry) -> Iterator[tuple[str, str]]:
    """Yield what an entry tells, with the problem that it tells it of."""
    if entry.name == REPLY or MOTTO in str(entry.payload):
        return
    if entry.name != BUS_EVENT:
        yield problem_of(entry), ASKED_FOR.sub(r"\1", str(entry.payload))
        return
    state = entry.data.get("state", {}).get("compartments", {})
    for told in (entry.data, state):
        for one in told.get("problems", ()):
            yield one["id"], json.dumps(one)
        for one in told.get("working", ()):
            yield one["problem"], json.dumps(one)


def check_notes(chat: Chat) -> None:
    """Working sets hold what was noted, in order, each note once, and nothing else."""
    held = chat.full.compartments
    found = {}
    for problem, working in held.working_sets.items():
        assert working.problem_id == problem
        if not working.empty:
            found[chat.names[problem]] = {
                kind: noted for kind in NOTE_KINDS if (noted := note_lines(working, kind))
            }
    wanted = {
        name: {kind: [_line(kind, one) for one in noted] for kind, noted in notes.items() if noted}
        for name, notes in chat.talk.notes.items()
    }
    assert found == {name: notes for name, notes in wanted.items() if notes}


def _line(kind: str, note: Any) -> str:
    if kind == "draft":
        return f"{note[0]}: {note[1]}"
    return str(note)


def check_shared(chat: Chat) -> None:
    """Versions count up by one from one, with the values in the order in which they were set."""
    held = chat.home.compartments
    assert set(held.versions) == set(chat.talk.values)
    for key, values in chat.talk.values.items():
        versions = held.versions[key]
        assert chat.state["versions"][key] == list(range(1, len(values) + 1)) == sorted(versions)
        assert len(set(versions.values())) == len(values)
        assert held.references[key].version == len(values)
        assert held.references[key].value == values[-1]
    beliefs = [one.text for one in held.patterns.values()]
    assert beliefs == chat.talk.beliefs
    assert list(held.patterns) == [f"p{at}" for at in range(1, len(beliefs) + 1)]
    assert [one.text for one in chat.home.active()] == chat.talk.facts


def _check_motto(everybody: FactFold, times: int) -> None:
    """What all chats set is in versions without a gap."""
    versions = everybody.compartments.versions.get(MOTTO, {})
    assert sorted(versions) == list(range(1, times + 1))
    assert len(set(versions.values())) == times


async def _check_evidence(store: FileTapeStore, chat: Chat) -> None:
    """What beliefs rest on is there, and says what they say."""
    for name, pattern in chat.home.compartments.patterns.items():
        assert pattern.evidence_ids
        assert chat.state["chains"][name] == pattern.evidence_ids, "a chain is not whole"
        texts = [await entry_of(store, one) for one in pattern.evidence_ids]
        assert all(read is not None and pattern.text in str(read[1].payload) for read in texts)
    for reference in chat.home.compartments.references.values():
        if reference.value is not None:
            read = await entry_of(store, reference.source)
            assert read is not None
            assert str(reference.value) in str(read[1].payload)


def check_prompts(path: Path, talks: list[Talk]) -> Counter[str]:
    """No prompt holds a word of another problem than the one it was made for; return what was met."""
    said_in = [talk.said_in for talk in talks]
    found: Counter[str] = Counter()
    for line in path.read_bytes().splitlines():
        told = json.loads(line)
        shown = markers(told["shown"])
        found[f"{told['purpose']} prompts"] += 1
        found["markers shown"] += len(shown)
        chats = {chat_of(one) for one in shown}
        assert len(chats) <= 1, f"a prompt tells of several chats: {told}"
        problems = {problem_in(one) for one in shown} - {None}
        asked = markers(told["asked"])
        if told["purpose"] == "turn":
            assert asked, f"nobody asked: {told}"
            assert problems <= {said_in[chat_of(one)][one] for one in asked[-1:]}, told["shown"]
        assert len(problems) <= 1, f"a prompt tells of several problems: {told['shown']}"
    return found


def _counted(chat: Chat) -> Counter[str]:
    """Count what kills and recovery left on a tape."""
    named = {REPAIR_EVENT: "repairs", "turn.resume": "resumed turns", TURN_END: "turns"}
    named |= {MEMORY_CONSOLIDATED: "consolidations"}
    events = [one for entry in chat.entries for one in unfold(entry)]
    found = Counter(named[str(e.name)] for e in events if e.name in named)
    anchors = [e for e in chat.entries if str(e.name).startswith(PROBLEM_ANCHOR_PREFIX)]
    found["switches"] = len(anchors)
    found["messages that came back"] = sum(e.data["returns"]["messages"] for e in anchors)
    found["whole states"] = sum("state" in e.data for e in chat.entries if e.name == BUS_EVENT)
    found["calls of tools"] = sum(e.kind == "tool_result" for e in chat.entries)
    found["problems"] = len(chat.talk.states)
    found["beliefs"] = len(chat.home.compartments.patterns)
    found["versions"] = sum(map(len, chat.home.compartments.versions.values()))
    found["notes that are left"] = sum(
        len(kind) for notes in chat.talk.notes.values() for kind in notes.values()
    )
    return found


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value))
