"""Whatever is done to beliefs: reopened they are the same, none is ever lost, and each rests on evidence."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from semantic_rig import DAY, Rig, drawn

from bot.core.errors import MemoryRefused
from bot.memory.records.episodes import parse_episode_id

TEXTS = (
    "Ada plans her weeks.",
    "Ada plans her weeks",
    "Short walks help Ada.",
    "The user lives in Bonn.",
    "The user lives in Graz.",
    "",
    "Ada drinks tea at four.",
)
SAID = (
    "I plan my week on Sunday.",
    "A short walk did me good.",
    "I live in Bonn.",
    "Now I live in Graz.",
    "Tea at four, as always.",
    "Number five.",
)

BEGINNING = (
    *(("say", one) for one in SAID),
    ("fact", "Ada drinks tea at four.", 4),
    ("add", "Short walks help Ada.", "heuristic", [1, 0, 5]),
    ("add", "Ada rests when she is tired.", "conclusion", ["p1", "1"]),
)

texts = st.sampled_from(TEXTS)
places = st.integers(0, 9)
kinds = st.sampled_from(("conclusion", "heuristic", "policy", "summary"))
names = st.sampled_from(("p1", "p2", "p3", "p9", "1", "2", "h3"))
pieces = st.one_of(places, names, st.sampled_from(("", "#", "nowhere#1", "fake:1#0")))
operations = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(SAID)),
        st.tuples(st.just("fact"), texts, places),
        st.tuples(st.just("add"), texts, kinds, st.lists(pieces, max_size=4)),
        st.tuples(st.just("strengthen"), names, pieces),
        st.tuples(st.just("weaken"), names),
        st.tuples(st.just("revalidate"), names, st.booleans(), pieces),
        st.tuples(st.just("erase"), places),
        st.tuples(st.just("supersede"), places),
        st.tuples(st.just("wait"), st.integers(1, 90)),
        st.tuples(st.just("decay")),
        st.tuples(st.just("check")),
    ),
    max_size=25,
)


class _Played:
    def __init__(self) -> None:
        self.rig = Rig()
        self.said: list[str] = []

    def place(self, piece: int | str) -> str:
        if isinstance(piece, str):
            return piece
        return self.said[piece % len(self.said)] if self.said else "fake:1#1"

    async def play(self, what: str, *more) -> None:
        rig, semantic = self.rig, self.rig.semantic
        if what == "say":
            self.said.append(await rig.says(more[0]))
        elif what == "fact" and self.said and more[0]:
            with suppress(AssertionError):
                await rig.fact(more[0], self.place(more[1]))
        elif what == "add":
            evidence = [self.place(one) for one in more[2]]
            await semantic.add_pattern(drawn(more[0], *evidence, kind=more[1]))
        elif what == "strengthen":
            await semantic.strengthen(more[0], self.place(more[1]))
        elif what == "weaken":
            await semantic.weaken(more[0], "a doubt; and another")
        elif what == "revalidate":
            await semantic.revalidate(more[0], more[1], evidence_id=self.place(more[2]))
        elif what == "erase" and self.said:
            await rig.erases(self.place(more[0]))
        elif what == "supersede" and self.said:
            await rig.supersedes(self.place(more[0]))
        elif what == "wait":
            rig.clock.advance(more[0] * DAY)
        elif what == "decay":
            await semantic.decay_all()
        elif what == "check":
            await semantic.check_evidence()


@pytest.mark.slow
@given(operations)
@settings(max_examples=examples(60))
def test_all_beliefs_link_to_evidence_none_is_lost_and_the_tape_tells_the_same(steps):
    with pytest.MonkeyPatch.context() as patch:
        # Whole states are written every few changes, so that reopening reads some.
        patch.setattr("bot.memory.records.fact_fold._SNAPSHOT_EVERY", 4)
        anyio.run(_run, steps)


async def _run(steps) -> None:
    played = _Played()
    rig = played.rig
    known: set[str] = set()
    for step in (*BEGINNING, *steps):
        facts = len(rig.home.fold.facts)
        with suppress(MemoryRefused):
            await played.play(*step)
        held = rig.home.compartments
        assert known <= held.patterns.keys()
        assert facts <= len(rig.home.fold.facts)
        known |= held.patterns.keys()
        for one in held.patterns.values():
            assert one.evidence_ids
            assert 0.0 <= one.confidence <= 1.0
    await _links(rig)
    reopened = rig.fresh_home()
    await reopened.open()
    assert reopened.compartments == rig.home.compartments
    assert reopened.fold.facts == rig.home.fold.facts
    assert await rig.opened(reopened).search() == await rig.semantic.search()
    assert await rig.semantic.check_evidence() is not None
    assert await rig.semantic.check_evidence() == []  # nothing is held against a belief twice


async def _links(rig: Rig) -> None:
    """Each belief leads to entries that are, or were, on a tape."""
    last = await rig.session.version() if rig.home.compartments.patterns else 0
    for name in rig.home.compartments.patterns:
        chain = await rig.semantic.get_evidence_chain(name)
        assert chain
        for one in chain:
            place = parse_episode_id(one.id)
            assert place is not None
            assert 0 < place[1] <= last
            assert "missing" not in one.content
