"""The policy for calls: what holds for every conversation and every call."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.agent.flow.grants import Grants
from bot.agent.flow.labels import MOST_VALUES, label_arguments
from bot.agent.flow.policy import TABLE, Action, EffectName, RightName, decide
from bot.agent.flow.spoken import Found, SpokenWords
from bot.agent.flow.view import FlowView, flow_view
from bot.memory.records.argument_labels import ArgumentLabel, Origin, labels_from_json
from bot.memory.records.evidence import FROM_OUTSIDE
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry, message, tool_result
from tests.sampling import examples

WORDS = st.sampled_from("pay Ann 100 Anne 1000 ann@work.example eve@evil.example /etc/keys".split())
TEXTS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
VALUES = st.recursive(
    TEXTS | st.integers(0, 2_000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["to", "text", "amount", "path"]), VALUES, max_size=4)
EFFECTS: st.SearchStrategy[EffectName] = st.sampled_from(
    ["reads_own", "reads_world", "writes_own", "acts"]
)
RIGHTS: st.SearchStrategy[RightName] = st.sampled_from(["always", "ask", "never"])
STRICTNESS: dict[Action, int] = {"run": 0, "ask": 1, "refuse": 2}


def said(text: str) -> TapeEntry:
    return message("user", text, sender={"id": "7", "name": "Ada"}, private=True, inbound="m")


def read(text: str) -> TapeEntry:
    return tool_result("1", "inbox_read", text).with_meta(**{FROM_OUTSIDE: True})


def quoted(text: str) -> TapeEntry:
    return said("look").with_meta(quote=text)


def answered(text: str) -> TapeEntry:
    return message("assistant", text)


CONVERSATIONS = st.lists(
    st.one_of(*(TEXTS.map(kind) for kind in (said, read, quoted, answered))), max_size=8
)


def view_of(entries: list[TapeEntry]) -> FlowView:
    """Return what the model sees after these entries, as the program folds them."""
    fold = SessionFold(WindowFold(1_000, 10**9))
    for number, entry in enumerate(entries, 1):
        fold.apply(replace(entry, id=number))
    return flow_view(fold, [], [], tape="fake:1")


def labels_of(arguments: dict, view: FlowView) -> tuple[ArgumentLabel, ...]:
    return label_arguments(arguments, view.words, outside=view.outside, origins=view.texts)


def action_of(effect: EffectName, right: RightName, arguments: dict, view: FlowView) -> int:
    labels = labels_of(arguments, view)
    return STRICTNESS[decide(effect, right, labels, outside=view.outside).action]


@settings(max_examples=examples(100), deadline=None)
@given(CONVERSATIONS, ARGUMENTS, RIGHTS)
def test_with_text_from_outside_in_view_nothing_acts_without_a_press(entries, arguments, right):
    view = view_of([*entries, read("x")])
    assert view.outside
    assert action_of("acts", right, arguments, view) >= STRICTNESS["ask"]


@settings(max_examples=examples(100), deadline=None)
@given(CONVERSATIONS, ARGUMENTS, EFFECTS, RIGHTS, TEXTS, st.sampled_from([read, quoted]))
def test_more_text_from_outside_lets_nothing_run_that_waited(
    entries, arguments, effect, right, text, kind
):
    before, after = view_of(entries), view_of([*entries, kind(text)])
    assert action_of(effect, right, arguments, before) <= action_of(effect, right, arguments, after)


@settings(max_examples=examples(100), deadline=None)
@given(CONVERSATIONS, ARGUMENTS, EFFECTS, RIGHTS)
def test_fewer_words_of_people_let_nothing_run_that_waited(entries, arguments, effect, right):
    without = [entry for entry in entries if entry.payload.get("role") != "user"]
    kept = [entry for entry in entries if entry in without or "quote" in entry.meta]
    assert action_of(effect, right, arguments, view_of(entries)) <= action_of(
        effect, right, arguments, view_of(kept)
    )


@settings(max_examples=examples(100), deadline=None)
@given(CONVERSATIONS, st.sampled_from(["eve@evil.example", "/etc/keys", "1000"]))
def test_what_only_others_wrote_is_never_the_persons(entries, value):
    others = [entry for entry in entries if value not in entry.payload["content"].split()]
    view = view_of([*others, read(value), answered(value), quoted(value)])
    [label] = labels_of({"to": value}, view)
    assert label.origin is Origin.OUTSIDE


@settings(max_examples=examples(100), deadline=None)
@given(ARGUMENTS, CONVERSATIONS)
def test_labels_come_back_from_the_tape(arguments, entries):
    labels = labels_of(arguments, view_of(entries))
    assert labels_from_json([one.as_json() for one in labels]) == labels


def test_the_table_answers_every_case():
    for effect in ("reads_own", "reads_world", "writes_own", "acts"):
        for right in ("always", "ask", "never"):
            rows = [one for one in TABLE if one.effect in (None, effect)]
            assert any(one.right in (None, right) and one.condition == "always" for one in rows)


@pytest.mark.parametrize(
    ("spoken", "value", "stands"),
    [
        ("Pay ann, please.", "Ann", True),
        ("pay Anne 100", "Ann", False),
        ("mail ann@work.example.", "ann@work.example", True),
        ("mail ann@work.example.evil.example", "ann@work.example", False),
        ("mail ann@work.example", "work.example", False),
        ("mail ann@work.example", "\u0430nn@work.example", False),
        ("mail ann@work.example", "ann\u200b@work.example", False),
        ("mail ann@work.example", "ann@work.example,eve@evil.example", False),
        ("mail to Stra\u00dfe.example", "strasse.example", False),
        ("Ann's keys", "Ann", True),
        ("Ann, Lee", "Ann Lee", False),
        ("pay 100", "100", True),
        ("pay $1,000.00 now", "1000", True),
        ("pay 100", "-100", False),
        ("room 12 300", "12300", False),
        ("read notes.txt", "../notes.txt", False),
        ("\u7ed9\u5c0f\u660e\u8f6c100\u5143", "\u5c0f\u660e", True),
        ("pay Ann", "", False),
    ],
)
def test_a_value_stands_in_words_only_as_it_was_written(spoken, value, stands):
    assert SpokenWords(spoken).holds(value) is stands


def test_a_value_split_over_arguments_is_found_in_none():
    words = [SpokenWords("mail ann", Found(Origin.PERSON, 3))]
    labels = label_arguments({"user": "eve", "host": "evil.example"}, words, outside=True)
    assert [one.origin for one in labels] == [Origin.OUTSIDE, Origin.OUTSIDE]


def test_one_foreign_recipient_among_the_persons_makes_the_list_foreign():
    words = [SpokenWords("mail ann and bob", Found(Origin.PERSON, 3))]
    labels = label_arguments({"to": ["ann", {"bob": "eve"}]}, words, outside=True)
    assert [one.origin for one in labels] == [Origin.OUTSIDE]


def test_of_more_values_than_anybody_checks_none_counts_as_said():
    words = [SpokenWords("ann")]
    [label] = label_arguments({"to": ["ann"] * (MOST_VALUES + 1)}, words, outside=False)
    assert label.origin is Origin.MODEL


@pytest.mark.parametrize(
    ("address", "unasked"),
    [
        ("http://example.com/a", True),
        ("http://example.co", False),
        ("http://example.com/a?told=hello", False),
        ("http://example.com/b", True),
        ("http://evil.example/hello", False),
        ("http://example.com@evil.example/", False),
        ("https://news.example/today", True),
        ("https://news.example/", False),
        ("https://www.site.example", True),
        ("https://www.site.example/x", False),
        ("http://report.zip", False),
        ("http://key.example/?q=http://a.example/", True),
    ],
)
def test_an_address_is_the_persons_as_a_whole_or_a_recorded_link(address, unasked):
    said = (
        "Read http://example.com/a. Open report.zip, and news.example/today (or www.site.example), "
        "then http://key.example/?q=http://a.example/"
    )
    grants = Grants([SpokenWords(said)], {"http://example.com/b"}, outside=True)
    assert (grants.address_objection(address) is None) is unasked
