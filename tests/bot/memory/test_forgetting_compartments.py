"""What is left of the records of the memory bus when words go."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.core.clock import format_time
from bot.memory.erasure.affected_records import AffectedRecordCounts, find_affected_records
from bot.memory.erasure.bus_scrubber import BusScrubber, find_baseless_beliefs
from bot.memory.erasure.erasure_query import parse_query
from bot.memory.erasure.record_scrubber import RecordScrubber
from bot.memory.erasure.scrubber import Scrubber
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.compartments import BUS_EVENT, Compartments
from bot.memory.records.episodes import episode_entry
from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import PAUSED_EVENT, FactFold, bus_entry, fold_entries
from bot.memory.records.tombstones import is_erased, tombstone
from bot.tape.entries import TapeEntry, anchor, event, message

WORD = "zqxmiau"
SCRUBBER = Scrubber(TextMatcher({WORD}))
BUS_SCRUBBER = BusScrubber(SCRUBBER, {3}, {("fake:1", 7)}, {"p9"})
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def value(version: int, held: Any, key: str = "cat", **more: Any) -> dict[str, Any]:
    return {"key": key, "value": held, "version": version, "created": "t", "source": "", **more}


@pytest.mark.parametrize(
    ("field", "held", "left"),
    [
        (
            "constraints",
            {"must": ["stay", f"feed {WORD}"], WORD: ["x"]},
            {"must": ["stay"], WORD: ["x"]},
        ),
        ("assumptions", [{"a": f"{WORD} is ill", "confidence": 0.5}, {"a": "b"}], [{"a": "b"}]),
        ("open_questions", ["when?", f"where is {WORD}?"], ["when?"]),
        ("local_decisions", [{"d": "go", "why": f"{WORD} waits"}, {"d": "x"}], [{"d": "x"}]),
        ("partial_artifacts", {"letter": f"Dear {WORD}", WORD: 1, "b": 2}, {"letter": "", "b": 2}),
        ("partial_artifacts", {"plan": {"deep": [WORD]}}, {"plan": ""}),
    ],
)
def test_items_go_and_drafts_are_emptied(field: str, held: Any, left: Any) -> None:
    record = {"problem": "p1", "expires": "t", field: held}
    assert BUS_SCRUBBER.scrub_working_set(record) == {**record, field: left}


def test_a_problem_keeps_its_id_and_what_else_it_says() -> None:
    record = {"id": "p2", "name": f"Vet of {WORD}", "summary": f"must: rest\nopen: {WORD}?"}
    left = {"id": "p2", "name": "[erased] p2", "summary": "must: rest\nopen: [erased]"}
    assert BUS_SCRUBBER.scrub_problem(record) == {**record, "summary": "must: rest\n[erased]"} | {
        "name": left["name"]
    }
    assert BUS_SCRUBBER.scrub_problem(record | {"name": "Vet"})["name"] == "Vet"


def test_an_item_that_says_an_erased_fact_goes_though_its_words_are_said_elsewhere() -> None:
    scrubber = BusScrubber(Scrubber(TextMatcher()), texts={" the vet is nice "})
    record = {"problem": "p1", "assumptions": [{"a": "The vet is nice.", "fact": 3}, {"a": "vet"}]}
    assert scrubber.scrub_working_set(record)["assumptions"] == [{"a": "vet"}]


def test_each_version_that_holds_the_words_is_without_a_value_and_says_so() -> None:
    assert BUS_SCRUBBER.scrub_reference(value(1, f"It is {WORD}")) == value(1, None, erased=True)
    assert BUS_SCRUBBER.scrub_reference(value(2, {"a": [WORD]})) == value(2, None, erased=True)
    assert BUS_SCRUBBER.scrub_reference(value(3, "Tom")) == value(3, "Tom")
    goals = value(4, ["thesis", f"{WORD}'s health"])
    assert BUS_SCRUBBER.scrub_reference(goals) == value(4, ["thesis"])


def test_a_number_in_a_value_is_found() -> None:
    numbers = BusScrubber(Scrubber(TextMatcher({"5551234"})))
    assert numbers.scrub_reference(value(1, {"phone": 5551234}))["value"] is None


def test_a_key_that_holds_the_words_has_none_in_any_version() -> None:
    fresh = [BUS_SCRUBBER.scrub_reference(value(one, "Tom", f"{WORD}'s vet")) for one in (1, 2)]
    assert {one["key"] for one in fresh} == {"[erased] t"}
    assert [one["value"] for one in fresh] == [None, None]


def test_a_value_of_which_the_source_is_erased_is_stale() -> None:
    assert BUS_SCRUBBER.scrub_reference(value(1, "Tom", source="fake:1#7"))["stale"] is True
    assert "stale" not in BUS_SCRUBBER.scrub_reference(value(1, "Tom", source="fake:1#8"))


def believing(*, text: str = "It rains", rests: list[str], number: str = "p1") -> Any:
    made = SynthesizedPattern(number, "policy", {"text": text, "if": "x"}, rests, 0.8, NOW, NOW)
    return made.as_json()


def test_a_belief_loses_what_is_erased_of_its_evidence_and_goes_with_the_last_of_it() -> None:
    rests = ["fake:1#7", "fake:1#8", "3", "4", "p9", "p8", "h7"]
    fresh = BUS_SCRUBBER.scrub_belief(believing(rests=rests))
    assert fresh["evidence"] == ["fake:1#8", "4", "p8", "h7"]
    assert (fresh["content"]["text"], fresh["status"]) == ("It rains", "active")
    for gone in (["fake:1#7", "3"], ["p9"]):
        fresh = BUS_SCRUBBER.scrub_belief(believing(rests=gone))
        assert (fresh["id"], fresh["content"], fresh["status"]) == ("p1", {"text": ""}, "retired")
    fresh = BUS_SCRUBBER.scrub_belief(believing(text=f"It is {WORD}", rests=["fake:1#8"]))
    assert (fresh["content"], fresh["evidence"]) == ({"text": ""}, ["fake:1#8"])
    # The names that its form has are nobody's words.
    form = BusScrubber(Scrubber(TextMatcher({"text", "if"})))
    assert form.scrub_belief(believing(rests=["h1"]))["content"]["text"] == "It rains"


def test_beliefs_that_rest_on_beliefs_that_go_go_as_well() -> None:
    chain = [["fake:1#7"], ["p1"], ["p2", "3"], ["p3", "fake:1#9"], ["p5"]]
    held = Compartments.from_state(
        {"patterns": [believing(rests=one, number=f"p{n}") for n, one in enumerate(chain, 1)]}
    )
    assert find_baseless_beliefs(held, BUS_SCRUBBER) == {"p1", "p2", "p3"}


def test_what_is_wanted_by_words_is_looked_for_in_each_record_by_itself() -> None:
    asked = parse_query(f"{WORD} vet")
    assert asked is not None
    scrubber = BusScrubber(Scrubber(TextMatcher(), asked))
    data = {"references": [value(1, WORD, "a"), value(1, "vet", "b"), value(1, f"{WORD} vet", "c")]}
    assert [one["value"] for one in scrubber.scrub_change(data)["references"]] == [
        WORD,
        "vet",
        None,
    ]
    assert [record for record, _ in find_affected_records("t", data, scrubber)] == [
        ("t", "value", "c")
    ]


def test_changes_and_the_whole_states_after_them_agree() -> None:
    fold, entries = FactFold(), []

    def write(entry: TapeEntry) -> None:
        entries.append(TapeEntry(len(entries) + 1, entry.kind, entry.payload, entry.meta))
        fold.apply(entries[-1])

    for key, held in ((f"{WORD}'s vet", "Tom"), ("cat", WORD), ("cat", "Tom"), ("dog", "Rex")):
        known = fold.compartments.references.get(key)
        made = value(known.version + 1 if known else 1, held, key, created=format_time(NOW))
        write(bus_entry(fold, {"references": [made], "key": f"k{len(entries)}"}))
    reason = {"code": "name_missing", "name": WORD}
    decision = {"reason": reason}
    write(bus_entry(fold, {"problems": [{"id": "p1", "name": WORD}], "decision": decision}))
    write(
        event(
            PAUSED_EVENT, {"paused": False, "previous": fold.last_entry_id, "state": fold.state()}
        )
    )
    scrubber = RecordScrubber(SCRUBBER, {3}, set())
    fresh = [scrubber.scrub_entry(one) for one in entries]
    assert WORD not in json.dumps([one.payload for one in fresh])
    assert [is_erased(one) for one in fresh] == [True, True, False, False, False, False]
    assert fold_entries(fresh[:5]).compartments == fold_entries(fresh[5:]).compartments
    assert [one.data.get("key") for one in fresh[:4]] == ["k0", "k1", "k2", "k3"]
    assert [scrubber.scrub_entry(one) for one in fresh] == fresh


def test_a_subject_that_holds_the_words_goes_from_a_fact_that_stays() -> None:
    fact = Fact(1, "It is black.", subject=WORD).as_json()
    entry = event("memory.facts", {"ops": [{"op": "add", "text": "It is black.", "fact": fact}]})
    [operation] = RecordScrubber(SCRUBBER, (), ()).scrub_entry(entry).data["ops"]
    assert (operation["fact"]["text"], operation["fact"]["subject"]) == ("It is black.", "")


def test_an_episode_keeps_its_type_its_links_and_the_labels_without_the_words() -> None:
    content = {"text": f"{WORD} ran. It rains.", WORD: [WORD, 3]}
    made = episode_entry(
        "decision", content, problem="p1", layer=WORD, tags=["a", WORD], supersedes="fake:1#3"
    )
    fresh = SCRUBBER.scrub_entry(made)
    assert fresh.data["type"] == "decision"
    assert fresh.data["content"] == {"text": "[erased] It rains.", "[erased]": ["[erased]", 3]}
    assert fresh.meta == {"problem": "p1", "tags": ["a"], "supersedes": "fake:1#3"}
    gone = tombstone(message("user", WORD, problem="p1", layer=WORD, tags=[WORD]))
    assert gone.meta == {"problem": "p1", "erased": True}


def test_a_boundary_between_problems_keeps_its_name_and_what_returns() -> None:
    returns = {"ids": [1, 2], "messages": 2, "tokens": 9}
    state = {"problem": "p1", "name": f"Vet of {WORD}", "summary": f"must: rest\n{WORD}"}
    fresh = SCRUBBER.scrub_entry(anchor("problem/p1", {**state, "returns": returns}))
    assert fresh.name == "problem/p1"
    assert fresh.data["name"] == "[erased] p1"
    assert fresh.data["summary"] == "must: rest\n[erased]"
    assert (fresh.data["problem"], fresh.data["returns"]) == ("p1", returns)
    assert SCRUBBER.scrub_entry(anchor(f"problem/{WORD}", {})).name == "problem/[erased]"


def test_what_is_held_is_told_in_words() -> None:
    assert AffectedRecordCounts(1, 2, 1).descriptions() == [
        "a shared value",
        "2 beliefs",
        "a problem's notes",
    ]
    assert AffectedRecordCounts(2, 0, 3).descriptions() == [
        "2 shared values",
        "the notes of 3 problems",
    ]
    assert AffectedRecordCounts.from_json(
        AffectedRecordCounts(1, 2, 3).as_json()
    ) == AffectedRecordCounts(1, 2, 3)
    assert (
        AffectedRecordCounts.from_json("x")
        == AffectedRecordCounts.from_json([1])
        == AffectedRecordCounts()
    )
    change = {"patterns": [believing(rests=["fake:1#7", "fake:1#8"])]}
    assert not list(find_affected_records("t", change, BUS_SCRUBBER))
    assert BUS_EVENT == "memory.bus"
