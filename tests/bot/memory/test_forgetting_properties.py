"""Whatever was said, learned, noted and listed: what is forgotten is nowhere, and all else is as it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.context import default_context
from bot.memory.erasure.entry_matcher import ErasureRights
from bot.memory.erasure.erasure_candidates import CandidateCollector
from bot.memory.erasure.erasure_items import items_to_keep, list_items
from bot.memory.erasure.erasure_messages import ErasureResult
from bot.memory.erasure.erasure_query import ErasureQuery, parse_query
from bot.memory.records.compartment_records import (
    Problem,
    SharedReference,
    SynthesizedPattern,
    WorkingSet,
)
from bot.memory.records.compartments import BUS_EVENT, Compartments
from bot.memory.records.conversation_entries import LOOP_STEP, TURN_END, TURN_START
from bot.memory.records.episodes import episode_entry, episode_id
from bot.memory.records.event_names import (
    COMMAND,
    HISTORY_EVENT,
    REPLY,
)
from bot.memory.records.evidence import cite
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import (
    CHAIN_EVENTS,
    FACTS_EVENT,
    FactFold,
    batch_entry,
    bus_entry,
    fold_entries,
)
from bot.memory.records.proposals import BatchOutcome, Proposal, ProposalDecision
from bot.memory.records.tombstones import ERASED_TEXT, is_erased
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
from bot.runtime.sessions.erasure import Eraser, erase_no_files
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
SETTINGS = settings(max_examples=examples(60))
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


words = st.sampled_from((*MARKERS, "nothing"))
flags = st.booleans()
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), words, flags, flags, st.sampled_from(("", *MARKERS))),
        st.tuples(st.just("learn"), words, st.integers(0, 30), flags),
        st.tuples(st.sampled_from(("keep", "work")), words, st.integers(0, 30), flags, flags),
        st.tuples(
            st.sampled_from(("daily", "zone", "history", "prompt", "command", "new", "event")),
            words,
        ),
    ),
    min_size=3,
    max_size=25,
)


async def lived(life: Life, told: list[Any]) -> None:
    await life.open()
    for kind, word, *more in told:
        if kind == "say":
            await life.say(word, echo=more[0], tools=more[1], quote=more[2])
        elif kind == "learn":
            if life.said:
                await life.learn(word, life.said[more[0] % len(life.said)], more[1])
        elif kind in ("keep", "work"):
            await (life.keep if kind == "keep" else life.work)(word, *more)
        else:
            await life.derive(kind, word)


def changes_alone(entries: Sequence[TapeEntry]) -> FactFold:
    """Return the fold of changes, without the whole states among them."""
    fold = FactFold()
    for entry in entries:
        if entry.name in CHAIN_EVENTS:
            data = {key: value for key, value in entry.data.items() if key != "state"}
            fold.apply(replace(entry, payload={"name": entry.name, "data": data}))
    return fold


def believed(fold: FactFold) -> tuple[Any, Any, Any]:
    """Return what must be the same, however a fold was made."""
    return fold.facts, replace(fold.compartments, last_used=None), (fold.decided_keys, fold.next_id)


def records(held: Compartments) -> Any:
    """Return what of compartments stays when words go: ids, versions, times, and who is active."""
    versions = sorted(at for found in held.versions.values() for at in found.values())
    working = {key: one.expires_at for key, one in held.working_sets.items()}
    return held.patterns.keys(), held.problems.keys(), working, versions, held.active_problem


def everything(entries: Texts) -> str:
    """Return all texts, as they stand and with JSON's escapes read."""
    plain = json.dumps([asdict(one) for one in entries.values()], ensure_ascii=False)
    return f"{plain}\n{json.dumps(plain)}\n{_unescaped(plain)}"


def _unescaped(text: str) -> str:
    found: list[str] = []

    def gather(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for key, one in value.items():
                found.append(key)
                gather(one)
        elif isinstance(value, list):
            for one in value:
                gather(one)
        if isinstance(value, str) and value.startswith("{"):
            try:
                gather(json.loads(value))
            except ValueError:
                return

    gather(json.loads(text))
    return "\n".join(found)


def own_words(entry: TapeEntry) -> str | None:
    said = entry.kind == "message" and entry.payload.get("role") == "user"
    return entry.payload["content"] if said and not is_erased(entry) else None


async def check(told: list[Any], choice: int, by_words: bool) -> None:
    life = Life()
    await lived(life, told)
    known = (await life.memory()).home.fold.facts
    numbers = sorted(known)
    if by_words or not numbers:
        what = parse_query(MARKERS[choice % len(MARKERS)])
        marked = {MARKERS[choice % len(MARKERS)]}
    else:
        number = numbers[choice % len(numbers)]
        what = ErasureQuery(frozenset({number}))
        marked = {one for one in MARKERS if one in known[number].text}
    assert what is not None
    before = await life.all()
    frozen = fold_entries(await life.store.read(HOME))
    tapes = (HOME, WORKSPACE_SCOPE, SESSION)
    held = {tape: fold_entries(await life.store.read(tape)).compartments for tape in tapes}
    await life.forget(what)
    after = await life.all()

    # What people said is to the letter what it was, or gone.
    for place, entry in before.items():
        now = after[place]
        assert (now.kind, now.meta.get("inbound"), now.meta.get("turn"), now.meta.get("ts")) == (
            entry.kind,
            entry.meta.get("inbound"),
            entry.meta.get("turn"),
            entry.meta.get("ts"),
        )
        if own_words(entry) is not None and not is_erased(now):
            assert now.payload == entry.payload
        if (
            by_words
            and own_words(entry) is not None
            and marked.isdisjoint([one for one in MARKERS if one in f"{entry.payload}{entry.meta}"])
        ):
            cited = {(e.tape, e.entry) for f in frozen.facts.values() for e in f.evidence}
            assert now.payload == entry.payload or place in cited
    # What is forgotten, and nobody says in what stays, is nowhere.
    kept = fold_entries(await life.store.read(HOME))
    stays = [text for one in after.values() if (text := own_words(one)) is not None]
    stays += [one.text for one in (*kept.active(), *kept.pending())]
    for marker in marked:
        if not any(marker in text for text in stays):
            assert marker not in everything(after), marker
    if by_words:
        assert not any(marker in text for marker in marked for text in stays)
    # Facts keep their numbers, and those that stay their words; links lead where they led.
    assert kept.facts.keys() == frozen.facts.keys()
    assert (kept.next_id, list(kept.decided_keys)) == (frozen.next_id, list(frozen.decided_keys))
    for number, fact in kept.facts.items():
        old = frozen.facts[number]
        assert [(e.tape, e.entry) for e in fact.evidence] == [
            (e.tape, e.entry) for e in old.evidence
        ]
        assert fact.text in (old.text, "")
        assert fact.text or fact.status not in ("active", "pending")
    # What the compartments hold keeps its ids and versions; changes, whole states and what runs agree.
    erased = {f"{tape}#{number}" for (tape, number), one in after.items() if is_erased(one)}
    memory = await life.memory()
    live = {
        HOME: memory.home.fold,
        WORKSPACE_SCOPE: memory.workspace.fold,
        SESSION: life.fold.facts,
    }
    for tape in tapes:
        entries = await life.store.read(tape)
        now = fold_entries(entries)
        assert believed(now) == believed(changes_alone(entries)) == believed(live[tape]), tape
        assert records(now.compartments) == records(held[tape])
        for number, belief in now.compartments.patterns.items():
            assert erased.isdisjoint(belief.evidence_ids)
            assert belief.text or belief.status == "retired"
            was = held[tape].patterns[number]
            marks = f"{was.content}{was.evidence_ids}"
            if by_words and belief.text != was.text:
                assert marked.isdisjoint(one for one in MARKERS if one in belief.text)
            if belief.evidence_ids == was.evidence_ids and not any(one in marks for one in MARKERS):
                assert belief.text == was.text
        for key, value in now.compartments.references.items():
            was_value = held[tape].references.get(key)
            if was_value is not None and not any(one in f"{was_value}" for one in MARKERS):
                assert value == replace(was_value, stale=value.stale)
            assert value.value is None or value.source not in erased or value.stale
    # The session opens, from its tail as from its beginning, and can be shown to a model.
    tail = await load_fold(life.tape, max_messages=50, max_tokens=20_000)
    whole = SessionFold(WindowFold(50, 20_000))
    for entry in await life.store.read(SESSION):
        whole.apply(entry)
    assert tail.window.entries == whole.window.entries
    assert tail.zone.snapshot == whole.zone.snapshot
    assert believed(tail.facts) == believed(whole.facts)
    assert tail.turns.undelivered == whole.turns.undelivered
    assert all(one["content"] != "" for one in default_context(tail.window))
    # Asked again, nothing is left to erase.
    assert (await life.forget(what)).entry_count == 0


@pytest.mark.slow
@SETTINGS
@given(told=steps, choice=st.integers(0, 40), by_words=flags)
def test_what_is_forgotten_is_nowhere_and_the_rest_is_as_it_was(
    told: list[Any], choice: int, by_words: bool
) -> None:
    anyio.run(check, told, choice, by_words)


async def check_some(told: list[Any], choice: int, by_words: bool, picks: set[int]) -> None:
    life = Life()
    await lived(life, told)
    memory = await life.memory()
    numbers = sorted(memory.home.fold.facts)
    what = parse_query(MARKERS[choice % len(MARKERS)])
    if not by_words and numbers:
        what = ErasureQuery(frozenset({numbers[choice % len(numbers)]}))
    assert what is not None
    survey = await CandidateCollector(memory, ErasureRights(everything=True), owner=True).collect(
        what
    )
    pieces = list_items(survey)
    picked = {1 + one % len(pieces) for one in picks} if pieces else set()
    if not picked:
        return
    kept = items_to_keep(pieces, picked)
    shown = frozenset(one.id for one in survey.facts) - kept.facts
    some = replace(
        what, confirmed_facts=shown - survey.ended, ended_facts=survey.ended - kept.facts, kept=kept
    )
    before, frozen = await life.all(), fold_entries(await life.store.read(HOME))
    await life.forget(some)
    after, now = await life.all(), fold_entries(await life.store.read(HOME))

    # What was kept is believed as before, and quotes words that its messages still say.
    for number in kept.facts:
        old, fact = frozen.facts[number], now.facts[number]
        assert (fact.text, fact.status) == (old.text, old.status)
        for one in fact.evidence:
            said = own_words(after[one.tape, one.entry])
            assert not one.quote or (said is not None and one.quote in said)
    # A message is to the letter what it was, or gone, or lost words and no message that was picked.
    for place, entry in before.items():
        assert (after[place].kind, after[place].meta.get("ts")) == (
            entry.kind,
            entry.meta.get("ts"),
        )
        old_words, words_now = own_words(entry), own_words(after[place])
        if place in kept.erased_messages:
            assert words_now is None
        if old_words is not None and words_now not in (None, old_words):
            assert place not in kept.erased_messages
            left = [part.strip(" .") for part in words_now.split(ERASED_TEXT)]
            assert all(part in old_words for part in left)
    # What was picked is nowhere, but in what somebody says that stays.
    stays = [text for one in after.values() if (text := own_words(one)) is not None]
    stays += [one.text for one in now.facts.values() if one.text]
    whole = everything(after)
    for number in shown:
        text = frozen.facts[number].text
        assert now.facts[number].text == ""
        if not any(text in one for one in stays):
            assert f"{text}" not in whole
        for marker in MARKERS:
            if (
                marker in text
                and not kept.keeps_records
                and not any(marker in one for one in stays)
            ):
                assert marker not in whole
    for tape in (HOME, WORKSPACE_SCOPE, SESSION):
        entries = await life.store.read(tape)
        assert believed(fold_entries(entries)) == believed(changes_alone(entries)), tape
    if kept.keeps_records:
        held = fold_entries(await life.store.read(HOME)).compartments.references
        for key, value in frozen.compartments.references.items():
            assert held[key] == replace(value, stale=held[key].stale)
    # Asked again, nothing is left to erase.
    assert (await life.forget(some)).entry_count == 0


@pytest.mark.slow
@SETTINGS
@given(
    told=steps,
    choice=st.integers(0, 40),
    by_words=flags,
    picks=st.sets(st.integers(0, 9), max_size=4),
)
def test_of_what_was_found_what_was_picked_goes_and_what_was_kept_stays(
    told: list[Any], choice: int, by_words: bool, picks: set[int]
) -> None:
    anyio.run(check_some, told, choice, by_words, picks)


def test_evidence_that_is_no_longer_kept_goes_as_well() -> None:
    async def run() -> None:
        life = Life()
        await life.open()
        await life.say("zqxalpha", echo=False, tools=False)
        await life.say("zqxalpha", echo=False, tools=False)
        await life.learn("zqxalpha", life.said[0], heir=False)
        first = life.facts.facts[1]
        second = Evidence(SESSION, life.said[1].id, "about zqxalpha", "Ada", sender="7")
        now = Fact(1, first.text, evidence=(second,))
        outcome = BatchOutcome(
            (ProposalDecision(Proposal("strengthen", fact=1), "approved", "ok", now),)
        )
        await life.home.append_composed(
            lambda _: [batch_entry(life.facts, outcome, key="k", author="person")]
        )
        await life.forget(ErasureQuery(frozenset({1})))
        assert "zqxalpha" not in everything(await life.all())
        assert [e for e in await life.store.read(HOME) if e.name == FACTS_EVENT]

    anyio.run(run)
