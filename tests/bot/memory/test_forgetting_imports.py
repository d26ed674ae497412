"""What is counted when an imported conversation is erased: its tape records no turns."""

from __future__ import annotations

from dataclasses import replace

from bot.memory.erasure.entry_matcher import ErasureMatcher, ErasureRights
from bot.memory.erasure.erasure_query import parse_query
from bot.tape.entries import message


def test_answers_go_with_an_imported_message_but_are_not_counted_as_messages() -> None:
    query = parse_query("zebra")
    assert query is not None
    found = ErasureMatcher(query, ErasureRights(everything=True), "import:1")
    said = [
        message("user", "I keep a zebra."),
        message("assistant", "How nice."),
        message("user", "And it rains."),
        message("assistant", "It does."),
    ]
    for number, one in enumerate(said, 1):
        found.match_entry("import:1", replace(one, id=number))
    assert found.messages == {("import:1", 1), ("import:1", 2)}
    assert found.message_count == 1
