"""The write gate: the seed's rules, and the values that it leaves open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.memory.gate.write_gate import WriteGate, WriteRequest, WriteSignals

NOW = datetime(2026, 3, 6, 10, tzinfo=UTC)


def decide(confidence: float = 0.8, target: str = "semantic", **signals: object):
    request = WriteRequest(
        "test", None, target, {"confidence": confidence}, WriteSignals(**signals)
    )
    return WriteGate().evaluate(request, NOW)


@pytest.mark.parametrize(
    ("radius", "needed"), [("minimal", 0.5), ("moderate", 0.7), ("severe", 0.9)]
)
def test_a_larger_blast_radius_needs_more_confidence(radius, needed):
    assert decide(needed, blast_radius=radius).target_compartment == "semantic"
    below = decide(needed - 0.01, blast_radius=radius)
    assert (below.approved, below.target_compartment) == (True, "episodic")
    assert below.confidence_threshold == needed


@pytest.mark.parametrize(
    ("level", "target"),
    [("none", "semantic"), ("low", "semantic"), ("medium", "working"), ("high", "working")],
)
def test_what_is_contested_stays_with_the_problem_and_expires(level, target):
    decision = decide(conflict_level=level)
    assert decision.target_compartment == target
    assert (decision.expiry is not None) == (target == "working")


@pytest.mark.parametrize("target", ["working", "shared", "episodic", "semantic"])
def test_what_is_written_to_a_working_set_has_an_expiry_and_nothing_else_has(target):
    expiry = decide(target=target).expiry
    assert expiry == (NOW + timedelta(hours=2) if target == "working" else None)


def test_what_serves_no_priority_is_not_synthesised_but_may_be_shared():
    assert not decide(alignment_score=0.49).approved
    assert decide(alignment_score=0.49, target="shared").target_compartment == "shared"


def test_what_is_not_grounded_is_logged_and_not_believed():
    assert decide(source_quality=0.59).target_compartment == "episodic"
    assert decide(source_quality=0.6).target_compartment == "semantic"
