"""An entry is told in one line of the timeline, whatever it holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.inspector.reading.categories import CATEGORIES
from bot.inspector.reading.entries import summarize_entry
from bot.inspector.reading.entry_text import LONGEST, decisions, evidence, full_text
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
    "ops usage spent status ms error text content name arguments model date state calls".split()
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
