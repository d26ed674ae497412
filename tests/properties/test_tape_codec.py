"""Whatever an entry holds, and whatever bytes a file holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.tape.codec import (
    CANCEL,
    TapeLine,
    committed_lines,
    decode_line,
    encode_entries,
)
from bot.tape.entries import ENTRY_KINDS, TapeEntry
from bot.tape.stores import line_scan as scan

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

# Lines as an honest or a broken writer might leave them.
lines = st.builds(
    lambda number, more: TapeLine(TapeEntry(number, "message", {}), more),
    st.integers(1, 12),
    st.integers(0, 4),
)
raw_lines = (
    lines.map(lambda line: encode_line(line)[:-1])
    | st.binary(max_size=12).filter(lambda raw: b"\n" not in raw)
    | st.just(b'{"id":3,"kind":"mess' + CANCEL)
)


def encode_line(line: TapeLine) -> bytes:
    return encode_entries([line.entry, *[TapeEntry(1, "event", {})] * line.more]).splitlines(True)[
        0
    ]


@contextmanager
def file_of(data: bytes) -> Iterator[int]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.fileno()


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
    """Cut anywhere, with or without the mark of a cut, it says nothing."""
    raw = encode_entries([entry])[:-1]
    cut = data.draw(st.integers(0, len(raw) - 1))
    assert decode_line(raw[:cut]) is None
    assert decode_line(raw[:cut] + CANCEL) is None
    assert decode_line(raw + CANCEL) is None


@proved
@given(st.lists(st.none() | lines, max_size=12), st.integers(1, 4))
def test_what_is_written_after_a_repair_is_never_lost(found, size):
    """Whatever lines came before, a batch with the ids after them is read whole."""
    data = b"".join((b"\xff\n" if line is None else encode_line(line)) for line in found)
    with file_of(data) as fd:
        last_id = scan.read_tail(scan.FileSource(fd, len(data))).last_id
    batch = [
        TapeLine(TapeEntry(last_id + place, "event", {"new": True}), size - place)
        for place in range(1, size + 1)
    ]
    assert committed_lines([*found, *batch])[-size:] == batch


@proved
@given(st.lists(raw_lines, max_size=10), st.binary(max_size=8))
def test_reading_backwards_finds_the_lines_that_reading_forwards_finds(found, rest):
    data = b"".join(raw + b"\n" for raw in found) + rest
    with file_of(data) as fd:
        backwards = list(scan.lines_back(scan.FileSource(fd, len(data))))[::-1]
    for offset, raw in backwards:
        assert data[offset : offset + len(raw)] == raw
    assert [raw for _, raw in backwards] == data.removesuffix(b"\n").split(b"\n") * bool(data)


@proved
@given(st.lists(raw_lines, max_size=10), st.binary(max_size=8))
def test_the_end_of_any_file_can_be_told_and_agrees_with_what_is_read(found, rest):
    data = b"".join(raw + b"\n" for raw in found) + rest
    with file_of(data) as fd:
        ending = scan.read_tail(scan.FileSource(fd, len(data)))
        read, damaged = scan.entries_between(scan.FileSource(fd, len(data)), 1, None)
        assert os.fstat(fd).st_size == len(data)
    assert ending.last_id >= 0
    assert ending.unterminated == (not data.endswith(b"\n") and bool(data))
    assert not read or read[-1].id <= ending.last_id
    assert set(ending.damaged) <= set(damaged)
