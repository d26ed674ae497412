"""What the benchmark says of a turn's parts and of growth."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from bench.flame_picture import LOOP, Call, by_part, picture, shown
from bench.growth import Sample, growth_table

TURN = Call("bot.agent.turn", "Turn.run")
CLIENT = Call("bot.llm.http.model", "HTTPModel.complete")
LIBRARY = Call("aiohttp.client", "ClientSession._request")
RUNNER = Call("asyncio.events", "Handle._run")


def test_a_library_works_for_the_part_that_calls_it():
    samples = Counter({(RUNNER, TURN, CLIENT, LIBRARY): 3, (RUNNER, TURN): 1, (RUNNER,): 2})
    assert by_part(samples) == {"model client": 3, "turn": 1, LOOP: 2}
    assert [box.name for box in shown((RUNNER, TURN, CLIENT, LIBRARY))] == [
        "agent.turn.Turn.run",
        "llm.http.model.HTTPModel.complete",
        "aiohttp",
    ]


def test_the_picture_shows_each_call_as_wide_as_its_share():
    drawn = ET.fromstring(picture({(TURN, CLIENT): 3, (TURN,): 1}, "a < b"))
    space = "{http://www.w3.org/2000/svg}"
    widths = {
        box.findtext(f"{space}title"): float(box.find(f"{space}rect").attrib["width"])
        for box in drawn.iter(f"{space}g")
    }
    assert widths == {
        "a turn: 100.0 %": 1200,
        "agent.turn.Turn.run: 100.0 %": 1200,
        "llm.http.model.HTTPModel.complete: 75.0 %": 900,
    }


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
