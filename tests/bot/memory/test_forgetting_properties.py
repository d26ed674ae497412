"""Whatever was said, learned, noted and listed: what is forgotten is nowhere, and all else is as it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import anyio
import pytest
from forgetting_rig import HOME, MARKERS, SESSION, Life, Texts
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.context import default_context
from bot.memory.erasure.entry_matcher import ErasureRights
from bot.memory.erasure.erasure_candidates import CandidateCollector
from bot.memory.erasure.erasure_items import items_to_keep, list_items, picked_facts
from bot.memory.erasure.erasure_query import ONLY_SENTENCES, ErasureQuery, parse_query
from bot.memory.records.compartments import Compartments
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import (
    CHAIN_EVENTS,
    FACTS_EVENT,
    FactFold,
    batch_entry,
    fold_entries,
)
from bot.memory.records.proposals import BatchOutcome, Proposal, ProposalDecision
from bot.memory.records.tombstones import ERASED_TEXT, is_erased
from bot.memory.session.linking.scope_registry import (
    WORKSPACE_SCOPE,
)
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import (
    TapeEntry,
)

SETTINGS = settings(max_examples=examples(60))


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


async def check(told: list[Any], choice: int, by_words: bool, whole: bool) -> None:
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
    what = what if whole else replace(what, kept=ONLY_SENTENCES)
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
        old_words = own_words(entry)
        if old_words is not None and not is_erased(now) and whole:
            assert now.payload == entry.payload
        elif old_words is not None and not is_erased(now):
            left = now.payload["content"].split(ERASED_TEXT)
            assert all(part in old_words for part in left)
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
@given(told=steps, choice=st.integers(0, 40), by_words=flags, whole=flags)
def test_what_is_forgotten_is_nowhere_and_the_rest_is_as_it_was(
    told: list[Any], choice: int, by_words: bool, whole: bool
) -> None:
    anyio.run(check, told, choice, by_words, whole)


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
    shown |= picked_facts(pieces, picked)
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
