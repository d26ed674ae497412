"""Why a call waits is on the tape as codes, and is read in any language."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.agent.approvals import approval_question, explanation
from bot.agent.flow.policy import decide
from bot.core.i18n import use_language
from bot.core.reasons import Reason
from bot.memory.records.argument_labels import ArgumentLabel, Origin
from bot.memory.records.pending_calls import PendingCall, parse_pending, pending_entry
from tests.fullwidth_language import LANGUAGE, untranslated_words, write_catalogue

LABEL = ArgumentLabel("to", "recipient", Origin.OUTSIDE, entry=7)
CALL = PendingCall(
    3,
    "mail_send",
    '{"to": "x@example.org"}',
    "key",
    ("fake:ada",),
    (Reason("source_result", tool="web_fetch", entry="#7"), Reason("source_people")),
    datetime(2026, 2, 10, tzinfo=UTC),
    labels=(LABEL,),
    reasons=decide("acts", "always", [LABEL], outside=False).reasons,
)


def read_back(call):
    found = parse_pending(replace(pending_entry(call, call_id="c1", turn="t1"), id=12))
    assert found is not None
    return found


def test_a_waiting_call_is_recorded_without_a_word_of_any_language():
    data = pending_entry(CALL, call_id="c1", turn="t1").data
    assert data["foreign"][0] == {"code": "source_result", "tool": "web_fetch", "entry": "#7"}
    assert data["reasons"] == [
        {
            "code": "argument_unsaid",
            "name": "to",
            "origin": {"code": "origin_outside_at", "entry": "#7"},
        }
    ]


def test_its_reasons_are_read_in_english_by_default():
    told = explanation(read_back(CALL), "")
    assert "It waited because to is from outside, not from whoever asked (#7)." in told
    assert "In view from outside: the result of web_fetch (#7); the words of several people" in told


def test_its_reasons_are_read_in_the_readers_language(tmp_path, monkeypatch):
    write_catalogue(tmp_path, monkeypatch)
    call = read_back(CALL)
    with use_language(LANGUAGE):
        for text in (explanation(call, ""), approval_question(call)):
            assert not untranslated_words(text, ("to", "web_fetch"))


@pytest.mark.parametrize("text", ["an earlier version wrote this", "with {braces} in it"])
def test_reasons_that_were_recorded_as_texts_are_shown_as_they_are(text, tmp_path, monkeypatch):
    write_catalogue(tmp_path, monkeypatch)
    entry = pending_entry(replace(CALL, foreign=(text,), reasons=(text,)), call_id="c1", turn="t1")
    call = parse_pending(replace(entry, id=12))
    assert call is not None
    with use_language(LANGUAGE):
        told = explanation(call, "")
    assert told.count(text) == 2
