"""An entry is told in one line of the timeline, whatever it holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.bus import DeliveryReport
from bot.core.i18n import use_language
from bot.core.reasons import Reason
from bot.inspector.reading.categories import CATEGORIES
from bot.inspector.reading.entries import summarize_entry
from bot.inspector.reading.entry_text import LONGEST, decisions, entry_line, evidence, full_text
from bot.runtime.sessions.entries import delivery_entry
from bot.tape.entries import ENTRY_KINDS, TapeEntry

_plain = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
_json = (
    _plain
    | st.lists(_plain, max_size=2)
    | st.just({"op": 1, "text": None})
    | st.just([{"cites": [1]}])
)
_names = st.sampled_from(
    "command reply delivery turn.start turn.end loop.step memory.facts memory.bus memory.daily "
    "memory.history memory/open memory/consolidated session/new person.link".split()
)
_keys = st.sampled_from(
    "ops usage spent status ms error text content name arguments model date state calls cites".split()
)
_entries = st.builds(
    TapeEntry,
    st.integers(1, 9),
    st.sampled_from(sorted(ENTRY_KINDS)),
    st.fixed_dictionaries(
        {},
        optional={
            "name": _names | _json,
            "data": st.dictionaries(_keys, _json, max_size=2) | _plain,
            "state": st.dictionaries(_keys, _json, max_size=2) | _plain,
            "content": _json,
            "calls": _json,
            "role": _json,
        },
    ),
    st.fixed_dictionaries(
        {}, optional={"ts": _json, "sender": _json, "turn": _json, "sent": _json}
    ),
)


@given(_entries)
def test_no_damage_keeps_an_entry_from_being_told(entry):
    told = summarize_entry(entry)
    assert len(told.text) <= LONGEST
    assert told.category in CATEGORIES
    f"{told} {full_text(entry)}".encode()
    decisions(entry)
    evidence(entry)


def test_an_answer_that_was_not_delivered_is_told_in_the_readers_language():
    why = Reason("delivery_not_awaited")
    report = DeliveryReport("fake:1", "turn", delivered=False, error=why)
    entry = delivery_entry(report)
    assert entry.data["error"] == {"code": "delivery_not_awaited"}
    assert entry_line(entry) == "The answer was not delivered: no request waited for it"
    with use_language("de"):
        assert entry_line(entry).endswith("keine Anfrage hat darauf gewartet")
