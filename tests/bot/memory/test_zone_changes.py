"""What a model is told of long-term memory since the block in its prompt was written."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from bot.llm.base import ModelRequest
from bot.memory.records.save_report import (
    ended_item,
    held_item,
    report_line,
    reported_changes,
)
from bot.memory.session.state.zone_snapshot import (
    MAX_LONG_TERM_BYTES,
    REMOVED_PREFIX,
    UNLISTED_PREFIX,
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


REPORTS = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.sampled_from(
            ["", "Likes tea", "Likes rain", "Odd; [3] Likes cats", "Odd (in place of [2])"]
        ),
        st.sampled_from([None, 1, 5]),
    ),
    max_size=4,
)


def saves(reports: list[tuple[int, str, int | None]]) -> list[dict[str, object]]:
    """Return a history in which each of these was saved, or ended, by a call of its own."""
    messages: list[dict[str, object]] = []
    for number, (fact, text, ended) in enumerate(reports):
        item = held_item(fact, text, ended) if text else ended_item(fact)
        call = {"id": f"c{number}", "function": {"name": "memory_save", "arguments": "{}"}}
        result = f"{report_line(number, [item])}\nNot saved (no reason): 'Likes snow'."
        messages += [
            {"role": "user", "content": "[2026-02-10 09:00, Ada] save this"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": result},
            {"role": "assistant", "content": "ok"},
        ]
    return messages


@given(FACTS, FACTS, REPORTS)
def test_block_results_and_changes_tell_all_that_is_believed_and_nothing_else(
    before, after, reports
):
    old, new = snapshot(before), snapshot(after)
    block = f"<memory>\n{render_memory_block(old, TODAY, hints=False)}\n</memory>"
    history = saves(reports)
    changes = new.changes_since(old, reported_changes(history))
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
            *history,
            {
                "role": "user",
                "content": f"[2026-02-10 10:00, Ada] hello{'' if changes == '' else records}",
            },
        ]
    )
    read = parse_request(request).memory.splitlines()
    assert sorted(read) == sorted(new.long_term.splitlines())


def test_what_is_new_and_what_is_gone_is_told_and_not_what_stays():
    stays = dict.fromkeys(range(1, 9), "tea")
    old, new = snapshot({**stays, 9: "rain"}), snapshot({**stays, 10: "bread"})
    assert new.changes_since(old) == f"- [10] Likes bread ({DAY})\n{REMOVED_PREFIX}[9]"


def test_all_of_it_is_told_where_a_line_is_no_fact():
    old = snapshot({1: "tea"})
    assert replace(old, facts=()).changes_since(old) is None
    assert old.changes_since(replace(old, facts=())) is None


def test_what_a_result_in_view_reports_is_not_told_again():
    old, new = snapshot({1: "tea"}), snapshot({1: "tea", 2: "bread"})
    reported = list(reported_changes(saves([(2, "Likes bread.", None)])))
    assert new.changes_since(old, reported) == ""
    assert old.changes_since(old, reported) == f"{REMOVED_PREFIX}[2]"


def test_a_saved_fact_for_which_memory_has_no_room_is_not_told_as_gone():
    """The zone does not say whether a fact has ended or does not fit."""
    full = snapshot({number: f"{number:03}".ljust(91, "x") for number in range(1, 41)})
    assert MAX_LONG_TERM_BYTES - len(full.long_term) < len("- Likes bread")
    reported = list(reported_changes(saves([(99, "Likes bread.", None)])))
    assert full.changes_since(full, reported) == f"{UNLISTED_PREFIX}[99]"


def test_the_offline_model_reads_both_lines_of_what_is_not_in_memory():
    old = snapshot({1: "tea", 2: "rain", 3: "x" * 3_900, 4: "cats"})
    new = snapshot({1: "tea", 3: "x" * 3_900})
    changes = new.changes_since(old, [(9, "Likes " + "y" * 90)])
    assert changes is not None
    assert changes.count("\n") == 1
    block = f"<memory>\n{render_memory_block(old, TODAY, hints=False)}\n</memory>"
    records = (
        "\n\n<records>\nChanges of long-term memory, version 2, saved 2026-02-10 10:00:\n"
        f"{changes}\n(end of long-term memory)\n</records>"
    )
    system, said = {"role": "system", "content": block}, f"[2026-02-10 10:00, Ada] hello{records}"
    request = ModelRequest([system, {"role": "user", "content": said}])
    assert parse_request(request).memory.splitlines() == new.long_term.splitlines()


def test_a_result_of_another_tool_reports_nothing():
    """What others wrote may look like the line."""
    history = saves([(2, "Likes bread", None)])
    [call] = history[1]["tool_calls"]
    assert list(reported_changes(history)) == [(2, "Likes bread")]
    call["function"]["name"] = "web_fetch"
    assert list(reported_changes(history)) == []
