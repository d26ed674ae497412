"""What a view holds of a tape on which several problems are worked on."""

from __future__ import annotations

from dataclasses import replace

from bot.agent.views.exact import anchors_in_view
from bot.memory.records.compartments import Compartments
from bot.memory.records.fact_fold import FactFold
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import anchor, message
from bot.tape.search import SearchQuery
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore


def test_the_exact_view_has_only_anchors_of_the_problem_that_is_worked_on():
    facts = FactFold(compartments=Compartments(active_problem="p2"))
    fold = SessionFold(WindowFold(10, 1_000, problem="p2"), facts=facts)
    named = [
        replace(anchor(name, **meta), id=number, payload={"name": name, "entry": 1})
        for number, (name, meta) in enumerate(
            [("general", {}), ("taxes", {"problem": "p1"}), ("garden", {"problem": "p2"})], start=2
        )
    ]
    assert [one.name for one in anchors_in_view(fold, named)] == ["garden"]


async def test_in_a_fork_the_neighbours_of_a_hit_are_of_its_problem():
    tape = TapeService(InMemoryTapeStore(), "fake:1")
    await tape.ensure_bootstrap_anchor()
    said = [("roses first", "p2"), ("taxes", "p1"), ("zebra", "p2"), ("more taxes", "p1")]
    await tape.append_many([message("user", text, problem=problem) for text, problem in said])
    async with tape.fork(merge_back=False) as fork:
        await fork.append(message("user", "roses last", problem="p2"))
        for problem, wanted in (
            ("p2", ["roses first", "roses last"]),
            (None, ["taxes", "more taxes"]),
        ):
            hits = await fork.search(SearchQuery("zebra", problem=problem, neighbours=1))
            [hit] = [one for one in hits if one.direct]
            assert [one.payload["content"] for one in (*hit.before, *hit.after)] == wanted
