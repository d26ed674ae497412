"""What a model is told of long-term memory since the block in its prompt was written."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from bot.llm.base import ModelRequest
from bot.memory.session.state.zone_snapshot import (
    REMOVED_PREFIX,
    MemorySnapshot,
    render_memory_block,
)
from bot.offline.request_parser import parse_request

TODAY = date(2026, 2, 10)
DAY = "2026-02-09"
TEXTS = st.lists(st.sampled_from("tea coffee cats dogs bread rain".split()), min_size=1, max_size=3)
FACTS = st.dictionaries(st.integers(1, 12), TEXTS.map(" and ".join), max_size=8)


def snapshot(facts: dict[int, str]) -> MemorySnapshot:
    lines = "\n".join(f"- Likes {text}" for text in facts.values())
    return replace(MemorySnapshot(1, lines), facts=tuple((number, DAY) for number in facts))


@given(FACTS, FACTS)
def test_the_block_and_the_changes_tell_all_that_is_believed_and_nothing_else(before, after):
    old, new = snapshot(before), snapshot(after)
    block = f"<memory>\n{render_memory_block(old, TODAY, hints=False)}\n</memory>"
    changes = new.changes_since(old)
    head, told = (
        ("Changes of long", changes) if changes else ("Long", new.numbered_facts() or "(empty)")
    )
    records = (
        f"\n\n<records>\n{head}-term memory, version 2, saved 2026-02-10 10:00:\n"
        f"{told}\n(end of long-term memory)\n</records>"
    )
    request = ModelRequest(
        [
            {"role": "system", "content": block},
            {"role": "user", "content": f"[2026-02-10 10:00, Ada] hello{records}"},
        ]
    )
    assert sorted(parse_request(request).memory.splitlines()) == sorted(new.long_term.splitlines())


def test_what_is_new_and_what_is_gone_is_told_and_not_what_stays():
    stays = dict.fromkeys(range(1, 9), "tea")
    old, new = snapshot({**stays, 9: "rain"}), snapshot({**stays, 10: "bread"})
    assert new.changes_since(old) == f"- [10] Likes bread ({DAY})\n{REMOVED_PREFIX}[9]"


def test_all_of_it_is_told_where_a_line_is_no_fact():
    old = snapshot({1: "tea"})
    assert not replace(old, facts=()).changes_since(old)
    assert not old.changes_since(replace(old, facts=()))
