"""Whatever records hold, the text that a model reads of them holds the same."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.memory.records import compartment_text, compression
from bot.memory.records.compartment_records import (
    EpisodeEntry,
    EpisodeType,
    PatternType,
    Problem,
    ProblemState,
    SharedReference,
    SynthesizedPattern,
    WorkingSet,
)

proved = settings(max_examples=examples(20))

# What the notation itself is made of, so that values try to be read as something else.
SIGNS = [
    "; ", ";", " | ", "|", ": ", ":", "= ", '"', "\\", "\\n", "\n", "\r\n", "\t", "\u2028", "\x85", "\x00",
    "[", "]", "{", "}", "#", "@", "@2026-01-01", "-", ".", "e", "null", "true", "inf", "1", "007", ".5",
    "1e5", "b12", "fake:1#12", "x\nmust: y", "must", "a", "d", "q", "draft", "packet", "problem p1",
    "| ev 12", "| stale", "{text: x}", "tool", "turn", "user", "(3 more)", "\ud83d", "\ude00", "😀", "漢字",
    "é", " ", "\u3000", "<memory>",
]  # fmt: skip
any_text = st.text(st.characters(exclude_categories=()), max_size=10)
text = any_text | st.lists(st.sampled_from(SIGNS) | any_text, max_size=5).map("".join)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(text, values, max_size=4)
ids = (
    st.builds("{}#{}".format, st.sampled_from(["fake:1", "fake:2", ""]), st.integers(0, 99)) | text
)
moments = st.datetimes(timezones=st.just(UTC)) | st.sampled_from(
    [f"2026-02-10T{clock}" for clock in ("00:00", "10:14", "10:14:24", "10:14:24.5")]
).map(lambda one: datetime.fromisoformat(f"{one}+00:00"))
shares = st.floats(0, 1)

names = text | st.sampled_from(["must", "must_not", "problem", "a", "d", "q", "draft", "packet"])

WORKING = {
    "problem_id": text,
    "lane_id": st.none() | text,
    "created_at": moments,
    "expires_at": moments,
    "constraints": st.dictionaries(names, st.lists(text | values, max_size=3) | values, max_size=3),
    "assumptions": st.lists(
        st.fixed_dictionaries({"a": text}, optional={"confidence": shares, "fact": st.integers()})
        | st.fixed_dictionaries({"a": values, "confidence": values, "now": values})
        | values,
        max_size=3,
    ),
    "open_questions": st.lists(text | values, max_size=3),
    "partial_artifacts": objects,
    "local_decisions": st.lists(
        st.fixed_dictionaries({"d": text}, optional={"why": text, "at": values})
        | st.fixed_dictionaries({"d": values, "why": values})
        | values,
        max_size=3,
    ),
    "context_packet": text,
    "ttl_hours": st.floats(0, 24) | st.floats(allow_nan=False, allow_infinity=False),
}
REFERENCE = {
    "key": text,
    "value": values,
    "version": st.integers(),
    "source": ids,
    "created_at": moments,
    "updated_at": moments,
    "updated_by": text,
    "entry": st.integers(),
    "stale": st.booleans(),
}
EPISODE = {
    "id": ids,
    "timestamp": moments,
    "problem_id": st.none() | text,
    "hrm_layer": text,
    "entry_type": st.sampled_from(["turn", "tool"]) | st.sampled_from(get_args(EpisodeType)),
    "content": st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "tool", "turn"]) | text, "content": text},
        optional={"name": values, "text": values},
    )
    | st.fixed_dictionaries({"tool": text, "result": text | values}, optional={"ms": values})
    | st.fixed_dictionaries({"text": text | values}, optional={"": values, "if": values})
    | st.fixed_dictionaries({"summary": text | values}, optional={"phase": values})
    | objects,
    "tags": st.lists(text, max_size=3),
    "supersedes": st.none() | ids,
}
PATTERN = {
    "id": text,
    "pattern_type": st.sampled_from(get_args(PatternType)),
    "content": st.fixed_dictionaries({"text": text | values}, optional={"if": values}) | objects,
    "evidence_ids": st.lists(ids, max_size=4),
    "confidence": shares,
    "created_at": moments,
    "last_validated": moments,
    "decay_rate": st.just(0.01) | shares,
    "protected": st.booleans(),
    "status": st.sampled_from(["active", "stale", "retired"]),
    "reason": text,
}
PROBLEM = {
    "problem_id": text,
    "name": text,
    "state": st.sampled_from(get_args(ProblemState)),
    "lane_id": st.none() | text,
    "created_at": moments,
    "last_active": moments,
    "working_set": st.none() | st.builds(WorkingSet, **WORKING),
    "priority": st.integers(),
    "summary": text,
    "resumable_entry_ids": st.lists(st.integers(-3, 12) | st.integers(), max_size=9).map(tuple),
    "resumable_size": st.just((0, 0)) | st.tuples(st.integers(), st.integers()),
    "private": st.booleans(),
}
KINDS = {
    "working_sets": (WorkingSet, WORKING),
    "references": (SharedReference, REFERENCE),
    "episodes": (EpisodeEntry, EPISODE),
    "patterns": (SynthesizedPattern, PATTERN),
    "problems": (Problem, PROBLEM),
}


def encode(kind, records):
    return getattr(compression, f"encode_{kind}")(records)


def decode(kind, written):
    return getattr(compression, f"decode_{kind}")(written)


def plain(records):
    """Return records as JSON, which tells 1 from 1.0 and from true."""
    return json.dumps([asdict(one) for one in records], sort_keys=True, default=str)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_record_is_tried(kind):
    record, tried = KINDS[kind]
    assert {one.name for one in fields(record)} == set(tried)


@pytest.mark.parametrize("kind", KINDS)
@proved
@given(st.data())
def test_whatever_records_hold_they_are_read_back_exactly(kind, data):
    record, tried = KINDS[kind]
    records = data.draw(st.lists(st.builds(record, **tried), max_size=4))
    written = encode(kind, records)
    found = decode(kind, written)
    assert found == records
    assert plain(found) == plain(records)
    # No half of a character, and nothing that a reader may take for a line's end but our own.
    assert "".join(written.encode().decode().splitlines(True)) == written
    assert written.splitlines() == (written.split("\n") if written else [])


@pytest.mark.parametrize("kind", ["references", "patterns"])
@proved
@given(st.data())
def test_no_value_can_make_another_record(kind, data):
    record, tried = KINDS[kind]
    records = data.draw(st.lists(st.builds(record, **tried), min_size=1, max_size=4))
    assert encode(kind, records).count("\n") == len(records)


@proved
@given(
    st.builds(WorkingSet, **WORKING),
    text,
    st.builds(SharedReference, **REFERENCE),
    st.integers(0, 900),
)
def test_what_is_shown_never_passes_its_room(working, name, reference, most):
    assert len(compartment_text.render_context_packet(working, name, most)) <= most
    assert len(compartment_text.render_references([reference] * 3, most).encode()) <= most
