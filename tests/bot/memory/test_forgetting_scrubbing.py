"""What is left of entries that repeat what is forgotten."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.record_scrubber import RecordScrubber
from bot.memory.erasure.scrubber import Scrubber
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.conversation_entries import TURN_END
from bot.memory.records.event_names import (
    COMMAND,
    HISTORY_EVENT,
    REPLY,
)
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FACTS_EVENT, fold_entries
from bot.memory.records.tombstones import tombstone
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
)
from bot.tape.entries import TapeEntry, anchor, event, message, system, tool_call, tool_result
from bot.tape.store import header_entry

WORD = "zqxmiau"
SCRUBBER = Scrubber(TextMatcher({WORD}), kept=("The cat food is on the shelf.",))


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        (message("assistant", f"Yes.\nIt is {WORD}.\nBye."), {"content": "Yes.\n[erased]\nBye."}),
        (
            message("assistant", f"It is {WORD}! Bye. Well."),
            {"content": "[erased] Bye. Well."},
        ),
        (system(f"a\n- {WORD.upper()}"), {"content": "a\n[erased]"}),
        (
            tool_call("", [{"id": "c", "name": "x", "arguments": f'{{"a": 1, "q": "{WORD}"}}'}]),
            {"calls": [{"id": "c", "name": "x", "arguments": '{"a": 1, "q": "[erased]"}'}]},
        ),
        (
            tool_call("", [{"id": "c", "name": "x", "arguments": f"{{broken {WORD}"}]),
            {"calls": [{"id": "c", "name": "x", "arguments": "{}"}]},
        ),
        (
            tool_call("", [], reasoning={"thinking_blocks": [{"thinking": f"So {WORD}."}]}),
            {"content": "", "calls": []},
        ),
        (tool_result("c", "x", f"[{WORD}]", status="error"), {"content": "[erased]"}),
        (event(LONG_TERM_EVENT, {"content": f"- a\n- {WORD}\n- b"}), {"content": "- a\n- b"}),
        (event(LONG_TERM_EVENT, {"content": f"- {WORD}"}), {"content": ""}),
        (
            event(
                LONG_TERM_EVENT,
                {"content": f"- a\n- {WORD}\n- b", "facts": [[1, ""], [2, ""], [3, ""]]},
            ),
            {"content": "- a\n- b", "facts": [[1, ""], [3, ""]]},
        ),
        (event(DAILY_EVENT, {"date": "2026-01-01", "content": WORD}), {"content": "[erased]"}),
        (
            event(HISTORY_EVENT, {"entry": f"[2026-01-01] Rain. {WORD} came.", "range": [1, 2]}),
            {"entry": "[2026-01-01] Rain. [erased]", "range": [1, 2]},
        ),
        (
            event(REPLY, {"text": f"1. {WORD}", "buttons": [["Go", f"/memory search {WORD}"]]}),
            {"text": "1. [erased]", "buttons": None},
        ),
        (event(COMMAND, {"name": "memory", "arguments": f"search {WORD}"}), {"name": "memory"}),
        (anchor("session/new", {"summary": f"On {WORD}.", "owner": "human"}), {"owner": "human"}),
        (
            event(TURN_END, {"turn": WORD, "inbound": [WORD], "error": f"no {WORD}"}),
            {"turn": WORD, "inbound": [WORD], "error": "[erased]"},
        ),
        (event("foreign", {WORD: {"deep": [WORD]}}), {"[erased]": {"deep": ["[erased]"]}}),
        (header_entry("a:1", f"About {WORD}"), {"session": "a:1", "title": "[erased]"}),
    ],
)
def test_lines_and_sentences_go_and_structure_stays(entry: TapeEntry, left: dict[str, Any]) -> None:
    scrubbed = SCRUBBER.scrub_entry(entry)
    where = scrubbed.data or scrubbed.payload
    for key, value in left.items():
        assert where.get(key) == value
    if scrubbed.name != TURN_END:
        assert WORD not in json.dumps(scrubbed.payload).lower()
    assert (scrubbed.id, scrubbed.kind, scrubbed.name) == (entry.id, entry.kind, entry.name)
    assert SCRUBBER.scrub_entry(scrubbed) == scrubbed


def test_a_persons_own_message_stays_but_not_what_it_quotes() -> None:
    entry = message("user", f"my {WORD}", quote=f"a\n{WORD}", inbound="m1")
    scrubbed = SCRUBBER.scrub_entry(entry)
    assert scrubbed.payload == entry.payload
    assert scrubbed.meta == {"quote": "a\n[erased]", "inbound": "m1"}


def test_an_entry_that_repeats_nothing_is_the_same_object() -> None:
    entry = message("assistant", "nothing of it")
    assert SCRUBBER.scrub_entry(entry) is entry


def test_a_line_that_is_a_fact_that_stays_is_left() -> None:
    scrubber = Scrubber(TextMatcher({"shelf", WORD}), kept=("The cat food is on the shelf.",))
    content = f"- The cat food is on the shelf.\n- the shelf of {WORD}"
    scrubbed = scrubber.scrub_entry(event(LONG_TERM_EVENT, {"content": content}))
    assert scrubbed.data["content"] == "- The cat food is on the shelf."


def test_an_entry_that_holds_all_the_words_loses_each_and_others_none() -> None:
    scrubber = Scrubber(TextMatcher(), ErasureQuery(words=("rome", "trip")))
    both = message("assistant", "Our trip.\nTo Rome.\nFine.")
    assert scrubber.scrub_entry(both).payload["content"] == "[erased]\n[erased]\nFine."
    one = message("assistant", "Our trip to Oslo.")
    assert scrubber.scrub_entry(one) is one


def test_an_erased_fact_keeps_its_number_and_links_and_is_never_believed() -> None:
    evidence = (Evidence("a:1", 5, f"my cat is {WORD}", "Ada", sender="7"),)
    other = Fact(2, "The user has a dog.", evidence=evidence)
    operations = [
        {"op": "add", "text": f"cat {WORD}", "verdict": "approved", "fact": fact.as_json()}
        for fact in (Fact(1, f"cat {WORD}", subject=WORD, evidence=evidence), other)
    ]
    operations[1]["text"] = other.text
    operations.append({"op": "add", "text": f"no {WORD}", "verdict": "refused", "reason": WORD})
    named, ruling = {"code": "name_missing", "name": WORD}, {"code": "judge_overstated"}
    judged = {"code": "judged_because", "ruling": ruling, "explanation": f"not {WORD}"}
    operations.append(
        {"op": "add", "verdict": "refused", "reason": named, "signals": {"judge": judged}}
    )
    data = {"key": "k", "author": "person", "previous": 0, "ops": operations}
    data["state"] = {"facts": [operations[0]["fact"]], "next": 9, "keys": [["j", 1]]}
    record = TapeEntry(3, "event", {"name": FACTS_EVENT, "data": data})
    scrubbed = RecordScrubber(SCRUBBER, {1}, {("a:1", 5)}).scrub_entry(record)
    assert WORD not in json.dumps(scrubbed.payload)
    coded = scrubbed.data["ops"][-1]
    assert coded["reason"]["code"] == "name_missing"
    assert coded["signals"]["judge"]["ruling"] == ruling
    before, after = fold_entries([record]), fold_entries([scrubbed])
    assert (after.next_id, after.decided_keys) == (before.next_id, before.decided_keys)
    assert after.get(1) is None
    assert after.facts[1].status == "retired"
    assert [(e.tape, e.entry) for e in after.facts[1].evidence] == [("a:1", 5)]
    assert [one.text for one in after.active()] == ["The user has a dog."]


def test_a_tombstone_keeps_what_folds_go_by() -> None:
    meta: dict[str, Any] = {
        "ts": "t",
        "sender": {"id": "7", "name": "Ada"},
        "inbound": "m1",
        "queued": True,
        "replaces": 3,
        "private": False,
    }
    entry = message("user", WORD, quote=WORD, attachments=[{"name": WORD}], note=WORD, **meta)
    gone = tombstone(entry)
    assert gone.payload == {"role": "user", "content": ""}
    assert gone.meta == {**meta, "erased": True}
    call = tool_call(WORD, [{"id": "c", "name": "x", "arguments": WORD}], turn="t")
    assert tombstone(call).payload == {
        "content": "",
        "calls": [{"id": "c", "name": "x", "arguments": "{}"}],
    }


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        (
            message(
                "assistant",
                "Tom is at the city library. Tom likes sheds. The city is old.\nRosa swims.",
            ),
            "[erased] Tom likes sheds. The city is old.\nRosa swims.",
        ),
        (
            event(
                LONG_TERM_EVENT,
                {
                    "content": "- Tom is at the city library.\n- Tom likes sheds.\n- The city is old."
                },
            ),
            "- Tom likes sheds.\n- The city is old.",
        ),
    ],
)
def test_two_words_of_the_request_in_two_sentences_are_not_what_is_forgotten(entry, left):
    wording = TextMatcher({"tom", "city", "library"})
    wording.remove_text("Tom is my cousin. I love this city.")
    scrubber = Scrubber(wording, ErasureQuery(words=("tom", "city", "library")))
    scrubbed = scrubber.scrub_entry(entry)
    assert (scrubbed.payload.get("content") or scrubbed.data["content"]) == left
