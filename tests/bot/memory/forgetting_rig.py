"""A person's session and scope, in which words are said, learned, noted and listed, and then forgotten."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bot.memory.erasure.entry_matcher import ErasureRights
from bot.memory.erasure.erasure_candidates import CandidateCollector
from bot.memory.erasure.erasure_messages import ErasureResult
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.records.compartment_records import (
    Problem,
    SharedReference,
    SynthesizedPattern,
    WorkingSet,
)
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.conversation_entries import LOOP_STEP, TURN_END, TURN_START
from bot.memory.records.episodes import episode_entry, episode_id
from bot.memory.records.event_names import (
    COMMAND,
    HISTORY_EVENT,
    REPLY,
)
from bot.memory.records.evidence import cite
from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import (
    FactFold,
    batch_entry,
    bus_entry,
)
from bot.memory.records.proposals import BatchOutcome, Proposal, ProposalDecision
from bot.memory.session.linking.scope_registry import (
    WORKSPACE_SCOPE,
    ScopeRegistry,
    person_scope,
    scope_entry,
)
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.runtime.sessions.derived_files import erase_no_files
from bot.runtime.sessions.erasure import Eraser
from bot.runtime.sessions.session import replace_state
from bot.tape.entries import (
    MEMORY_CONSOLIDATED,
    SESSION_NEW,
    TapeEntry,
    anchor,
    event,
    message,
    system,
    tool_call,
    tool_result,
)
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

MARKERS = ("zqxalpha", "Qvöbéta", "ЖщгаммаЫ", "wvu77delta", "鰐鱶", "ﬁxkappaﬁ")
SESSION, HOME = "fake:1", person_scope("fake", "7")
SENDER = {"id": "7", "name": "Ada", "role": "owner"}
Texts = dict[tuple[str, int], TapeEntry]


class Alive:
    """A session whose state is in memory."""

    is_busy = False

    def __init__(self, tape: TapeService, fold: SessionFold) -> None:
        self.key = tape.name
        self._read = tape
        self._fold = fold

    def cancel_background_work(self) -> None:
        """Nothing runs."""

    async def update_home(self) -> None:
        """Nobody is joined to anybody."""

    async def reload(self) -> None:
        fresh = await load_fold(self._read, max_messages=50, max_tokens=20_000)
        replace_state(self._fold, fresh)


class Life:
    """A person's session and scope, written as the program writes them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = InMemoryTapeStore(clock=self.clock)
        self.tape = TapeService(self.store, SESSION)
        self.fold = SessionFold(WindowFold(50, 20_000))
        self.tape.observe(self.fold.apply)
        self.zone = MemoryZone(self.tape, fold=self.fold.zone, clock=self.clock)
        self.scopes = ScopeRegistry(self.store, self.clock)
        self.scopes.active_sessions[SESSION] = Alive(self.tape, self.fold)
        self.facts = FactFold()
        self.home = TapeService(self.store, HOME)
        self.home.observe(self.facts.apply)
        self.commons = FactFold()
        self.common = TapeService(self.store, WORKSPACE_SCOPE)
        self.common.observe(self.commons.apply)
        self.said: list[TapeEntry] = []
        self.number = 0

    async def open(self) -> None:
        await self.tape.ensure_bootstrap_anchor()
        await self.home.ensure_bootstrap_anchor()
        await self.common.ensure_bootstrap_anchor()
        await self.tape.append(scope_entry(HOME))
        await self.zone.load_or_create()

    async def say(self, word: str, *, echo: bool, tools: bool, quote: str = "") -> None:
        self.number += 1
        turn, inbound = f"turn-{self.number}", f"m{self.number}"
        meta: dict[str, Any] = {"quote": f"> {quote} wrote so"} if quote else {}
        said = message(
            "user",
            f"number{self.number} about {word}. Otherwise nothing.",
            sender=SENDER,
            inbound=inbound,
            private=True,
            **meta,
        )
        answer = f"I see: {word}!\nSecond line stays." if echo else "I see."
        begin = {"turn": turn, "inbound": [inbound], "joined": []}
        written = await self.tape.append_many([said, event(TURN_START, begin)])
        self.said.append(written[0])
        if tools:
            call = {"id": f"c{self.number}", "name": "x", "arguments": json.dumps({"q": word})}
            step = {"turn": turn, "step": 1, "status": "tool_calls", "extra": [f"seen {word}"]}
            await self.tape.append_many(
                [
                    tool_call(f"looking for {word}", [call], turn=turn),
                    event(LOOP_STEP, step),
                    tool_result(f"c{self.number}", "x", f'{{"found": "{word}"}}', turn=turn),
                ]
            )
        end = {"turn": turn, "status": "ok", "answered": True, "inbound": [inbound]}
        await self.tape.append_composed(
            lambda _: [
                message("assistant", answer, turn=turn),
                event(TURN_END, {**end, "pointers": self.fold.pointers()}),
            ]
        )

    async def learn(self, word: str, of: TapeEntry, heir: bool) -> None:
        evidence = (cite(SESSION, of),)
        old = next(iter(reversed(self.facts.active())), None) if heir else None
        made = Fact(self.facts.next_id, f"Fact{self.facts.next_id} says {word}", evidence=evidence)
        closed = None
        if old is not None:
            made = Fact(made.id, made.text, evidence=evidence, supersedes=old.id)
            closed = Fact(old.id, old.text, evidence=old.evidence, status="superseded")
        proposal = Proposal("add", made.text, evidence=evidence)
        outcome = BatchOutcome((ProposalDecision(proposal, "approved", "ok", made, closed),))
        key = f"key:{made.id}"
        await self.home.append_composed(
            lambda _: [batch_entry(self.facts, outcome, key=key, author="person")]
        )

    async def keep(self, word: str, place: int, whole: bool, everybodys: bool) -> None:
        """Change a shared value, and believe something of what was said, of a fact and of a belief."""
        tape, fold = (self.common, self.commons) if everybodys else (self.home, self.facts)
        held, now = fold.compartments, self.clock.now()
        key = f"key{place % 3}" if place % 2 else f"key {word}"
        value = ({"deep": [word, place]}, f"it is {word}", [f"about {word}", "rain"])[place % 3]
        known = held.references.get(key)
        version = known.version + 1 if known is not None else 1
        since = (
            known.created_at if known is not None else now + timedelta(seconds=len(held.versions))
        )
        said = [episode_id(SESSION, one.id) for one in self.said]
        source = said[place % len(said)] if said else "a person"
        made = SharedReference(key, value, version, source, since, now, "person")
        rests = [*said[place % 4 :][:2], *(str(one) for one in fold.facts if one % 3 == place % 3)]
        rests += [one for one in held.patterns if int(one[1:]) % 2 == place % 2]
        content = {"text": f"Always {word if place % 5 < 2 else 'so'}", "if": "it rains"}
        number = f"p{held.next_pattern}"
        belief = SynthesizedPattern(number, "heuristic", content, rests or ["h1"], 0.8, now, now)
        older = [replace(one, reason=f"{word} again") for one in held.patterns.values()][:1]
        data = {"references": [made.as_json()], "patterns": [belief.as_json()]}
        data["patterns"] += [one.as_json() for one in older]
        data |= {
            "key": f"c{fold.last_entry_id}",
            "decision": {"approved": True, "reason": f"as {word}"},
        }
        await self.change(tape, fold, data, whole)

    async def work(self, word: str, place: int, whole: bool, switch: bool) -> None:
        """Work on a problem: change it and its working set, and perhaps switch to it."""
        fold = self.fold.facts
        held, now = fold.compartments, self.clock.now()
        number = f"p{1 + place % 2}"
        known = held.working_sets.get(number) or WorkingSet(number, SESSION, now, now)
        items = list(known.assumptions)[-3:]
        working = replace(
            known,
            constraints={"must": ["stay", f"see {word}"], "must_not": [word]},
            assumptions=[*items, {"a": f"{word} is there", "confidence": 0.5}],
            open_questions=[f"where is {word}?", "when?"],
            partial_artifacts={"letter": f"Dear {word}", word: "x", "list": ["a"]},
            local_decisions=[{"d": "go", "why": word}, {"d": "stay", "why": "rain"}],
        )
        name = f"Trip to {word}" if place % 3 else "Taxes"
        summary = f"must: see {word}\nopen: when?"
        problem = Problem(number, name, "active", SESSION, now, now, summary=summary)
        ids = [one.id for one in self.said][-3:]
        problem = replace(problem, resumable_entry_ids=tuple(ids), resumable_size=(len(ids), 30))
        data = {"problems": [problem.as_json()], "working": [working.as_json()]}
        data |= {"key": f"w{fold.last_entry_id}"}
        if not switch:
            await self.change(self.tape, fold, data, whole)
            return
        await self.change(self.tape, fold, data | {"active": number}, whole)
        content = {"text": f"{summary}", word: [word], "n": 3}
        told = episode_entry("summary", content, problem=number, layer=word, tags=["a", word])
        returns = {"ids": ids, "messages": len(ids), "tokens": 30}
        state = {"problem": number, "name": name, "summary": summary, "returns": returns}
        boundary = anchor(f"problem/{number}", {**state, "owner": "human"}, problem=number)
        await self.tape.append_many([told, boundary])

    async def change(self, tape: TapeService, fold: FactFold, data: Any, whole: bool) -> None:
        def composed(_: int) -> list[TapeEntry]:
            made = bus_entry(fold, data)
            return [event(BUS_EVENT, made.data | {"state": fold.state()}) if whole else made]

        await tape.append_composed(composed)

    async def derive(self, kind: str, word: str) -> None:
        line = f"the {word} is noted"
        if kind == "daily":
            await self.zone.append_daily(f"{line}\nand rain")
        elif kind == "zone":
            shown = "\n".join(f"- {one.text}" for one in self.facts.active())
            await self.zone.edit(lambda now: now.with_long_term(f"{shown}\n- {line}"))
        elif kind == "history":
            await self.tape.append_composed(
                lambda at: [
                    event(
                        HISTORY_EVENT, {"entry": f"[2026-02-10] {line}. Other.", "range": [1, 2]}
                    ),
                    anchor(MEMORY_CONSOLIDATED, {"through": at // 2, "history": at + 1}),
                ]
            )
        elif kind == "prompt":
            await self.tape.append(system(f"Contract.\n<memory>\n{line}\n</memory>", hash="h"))
        elif kind == "command":
            self.number += 1
            sent = {"inbound": f"m{self.number}", "sender": SENDER, "private": True}
            reply = {"text": f"found:\n{line}", "buttons": [["More", f"/memory {word}"]]}
            end = {"turn": "c", "status": "command", "answered": True, "inbound": [sent["inbound"]]}
            asked = {"name": "memory", "arguments": f"search {word}"}
            await self.tape.append_many(
                [event(COMMAND, asked, **sent), event(REPLY, reply), event(TURN_END, end)]
            )
        elif kind == "new":
            state = {"summary": f"we spoke of {word}. And more.", "owner": "human"}
            await self.tape.archive_composed(lambda _: [anchor(SESSION_NEW, state)])
        else:
            await self.tape.append(event("foreign", {word: [line, {"deep": word}], "n": 3}))

    async def all(self) -> Texts:
        return {
            (tape, entry.id): entry
            for tape in await self.store.list_tapes()
            for entry in await self.store.read(tape)
        }

    async def memory(self) -> LongTermMemory:
        """Return the memory of the session; what was noted before there were facts becomes such."""
        memory = LongTermMemory(self.tape, self.fold, self.zone, self.scopes)
        await memory.open()
        return memory

    async def forget(self, what: ErasureQuery) -> ErasureResult:
        memory = await self.memory()
        asked = event(COMMAND, {"name": "memory", "arguments": "forget x"}, inbound="ask")
        request = await self.tape.append(asked)
        collector = CandidateCollector(memory, ErasureRights(everything=True), owner=True)
        eraser = Eraser(collector, self.scopes, lambda _: nullcontext(), erase_no_files)
        done = await eraser.erase(what, request, (frozenset(memory.home.fold.facts), 10_000))
        assert isinstance(done, ErasureResult)
        return done
