"""Whatever an entry holds, it is read back; no part of a line is taken for a whole one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.tape.codec import (
    CANCEL,
    TapeLine,
    decode_line,
    encode_entries,
)
from bot.tape.entries import ENTRY_KINDS, TapeEntry

proved = settings(max_examples=examples(100))

# Lone surrogates and unpaired halves too: such text reaches us from platforms and models.
text = st.text(st.characters(exclude_categories=()), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(text, json_values, max_size=4)
entries = st.builds(
    TapeEntry, st.integers(1, 10**12), st.sampled_from(sorted(ENTRY_KINDS)), objects, objects
)


@proved
@given(st.lists(entries, min_size=1, max_size=4))
def test_any_entries_read_back_exactly_as_they_were_written(batch):
    raw = encode_entries(batch)
    assert raw.endswith(b"\n")
    found = [decode_line(line) for line in raw[:-1].split(b"\n")]
    assert found == [
        TapeLine(entry, more)
        for entry, more in zip(batch, range(len(batch) - 1, -1, -1), strict=True)
    ]
    assert [repr(line.entry) for line in found if line] == [repr(entry) for entry in batch]


@proved
@given(
    st.binary(max_size=60) | json_values.map(lambda value: repr(value).encode("utf-8", "replace"))
)
def test_no_line_can_make_reading_fail(raw):
    line = decode_line(raw)
    assert line is None or (line.entry.id > 0 and line.more >= 0)


@proved
@given(entries, st.data())
def test_no_part_of_a_line_is_taken_for_a_whole_one(entry, data):
    raw = encode_entries([entry])[:-1]
    cut = data.draw(st.integers(0, len(raw) - 1))
    assert decode_line(raw[:cut]) is None
    assert decode_line(raw[:cut] + CANCEL) is None
    assert decode_line(raw + CANCEL) is None
