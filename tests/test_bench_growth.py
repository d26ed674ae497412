"""What the benchmark says of growth."""

from __future__ import annotations

from bench.growth import Sample, growth_table


def samples(*, resident=50.0, disk=10.0, log=1.0, cpu=5.0):
    """Return samples that grow as reckoned, but for what the newest holds."""
    made = [Sample(100 * n, 50.0, 30, float(n), 1.0, 5.0) for n in range(1, 10)]
    return [*made, Sample(1_000, resident, 30, disk, log, cpu)]


def verdicts(*args, **more):
    return [row[-1] for row in growth_table(samples(*args, **more), 10).rows]


def test_what_grows_by_the_reckoning_passes_and_what_grows_more_fails():
    assert verdicts() == ["PASS"] * 5
    assert verdicts(resident=60.0) == ["FAIL", "PASS", "PASS", "PASS", "PASS"]
    assert verdicts(disk=12.0) == ["PASS", "PASS", "FAIL", "PASS", "PASS"]
    assert verdicts(log=80.0) == ["PASS", "PASS", "PASS", "FAIL", "PASS"]
    assert verdicts(cpu=9.0) == ["PASS", "PASS", "PASS", "PASS", "FAIL"]
