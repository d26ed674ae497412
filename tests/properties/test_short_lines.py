"""A short line of a file says exactly what the full one says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.core.clock import format_time, from_milliseconds
from bot.tape.chain import CHAIN_START
from bot.tape.codec import (
    TapeLine,
    decode_ids,
    decode_line,
    digest_content,
    encode_chained,
    encode_entries,
    encode_line,
)
from bot.tape.entries import TapeEntry, event, message
from bot.tape.short_lines import expand_line, shorten

proved = settings(max_examples=examples(100))

NOW = "2026-11-26T16:06:52.122+00:00"
# Words of the format itself, as hostile texts and names have them.
WORDS = st.sampled_from(
    [
        '","ts":1',
        '"},"meta":{"ts":"',
        ',"sent":5',
        ',"more":2',
        '"user":',
        "\\",
        '\\","ts":3',
        "é\ud800",
    ]
)
TEXTS = WORDS | st.text(st.characters(exclude_categories=()), max_size=12)
TIMES = (
    st.datetimes().map(lambda at: format_time(at.astimezone()) if 1000 < at.year < 9000 else "")
    | st.sampled_from(
        [NOW, "2026-11-26T16:06:52.122Z", "2026-11-26", "0001-01-01T00:00:00.000+00:00"]
    )
    | TEXTS
)
FORMAT_KEYS = "ts sent more id kind meta payload chain user assistant delivery".split()
KEYS = st.sampled_from([*FORMAT_KEYS, "turn"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**16) | TIMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | KEYS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def entries(draw: st.DrawFn) -> TapeEntry:
    """An entry with a short form, and such that only look like it."""
    meta: dict[str, Any] = {"ts": draw(TIMES), "sent": draw(TIMES)}
    meta |= draw(st.dictionaries(KEYS | TEXTS, VALUES, max_size=3))
    if draw(st.booleans()):
        meta = dict(sorted(meta.items()))
    kind = draw(st.sampled_from(["user", "assistant", "automation", "delivery", "spent"]))
    if kind in ("delivery", "spent"):
        said = event(kind, draw(st.dictionaries(KEYS | TEXTS, VALUES, max_size=3)))
    else:
        said = message(kind, draw(TEXTS))
    more = draw(st.sampled_from([{}, {}, {"buttons": [["a", "/b"]]}, {"meta": {"ts": NOW}}]))
    number = draw(st.integers(1, 10**12))
    return replace(said, id=number, payload={**said.payload, **more}, meta=meta)


@proved
@given(st.lists(entries(), min_size=1, max_size=3))
def test_what_is_appended_to_a_file_reads_back_with_the_digests_of_full_lines(batch):
    data, value = encode_chained(batch, CHAIN_START)
    lines = [decode_line(raw) for raw in data[:-1].split(b"\n")]
    assert [repr(line.entry) for line in lines if line] == [repr(entry) for entry in batch]
    assert [line.more for line in lines if line] == list(range(len(batch)))[::-1]
    for line in lines:
        assert line is not None
        assert line.link is not None
        assert line.link.covers(digest_content(line.entry))
        assert decode_line(encode_line(line)) == line
    assert lines[-1] is not None
    assert lines[-1].link is not None
    assert lines[-1].link.value == value


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key twice: {pairs}"
    return found


def as_the_docs_say(raw: bytes) -> TapeEntry:
    """Read a line with nothing but a JSON parser and docs/tape.md."""
    line = json.loads(raw, object_pairs_hook=unique)
    number, _chain, _more = line.pop("id"), line.pop("chain"), line.pop("more", 0)
    if "kind" in line:
        assert line.keys() == {"kind", "payload", "meta"}
        return TapeEntry(number, line["kind"], line["payload"], line["meta"])
    [name] = line.keys() & {"user", "assistant", "delivery"}
    said = line.pop(name)
    entry = event(name, said) if name == "delivery" else message(name, said)
    if type(line.get("sent")) is int:
        line["sent"] = format_time(from_milliseconds(line["ts"] + line["sent"]))
    line["ts"] = format_time(from_milliseconds(line["ts"]))
    return replace(entry, id=number, meta=line)


@proved
@given(entries())
def test_any_reader_of_json_reads_what_a_line_says(entry):
    assert repr(as_the_docs_say(encode_chained([entry], CHAIN_START)[0])) == repr(entry)


@proved
@given(entries(), st.data())
def test_a_changed_byte_never_changes_what_a_line_says(entry, data):
    raw = bytearray(encode_chained([entry], CHAIN_START)[0][:-1])
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    line = decode_line(bytes(raw))
    # Without its link it is a line from before the digests, which says so.
    assert line is None or line.link is None or line.entry == entry


@proved
@given(st.binary(max_size=40) | TEXTS.map(lambda text: text.encode("utf-8", "replace")))
def test_no_bytes_break_the_reader(rest):
    for name in (b'"user":', b'"delivery":', b'"ts":', b"{"):
        for middle in (b"", b'"x","ts":12', b'{},"ts":999999999999999,"sent":-1'):
            expand_line(b'{"id":7,' + name + middle + rest)
            for more in (b"", b',"more":' + b"9" * 5_000):
                line = b'{"id":7,' + name + middle + rest + more + b',"chain":"%b"}' % (b"A" * 48)
                assert decode_ids(line) is None
    said = message("user", "x", ts=NOW)
    shorten(said, b'"kind":"message","payload":{"role":"user","content":' + rest)


def test_a_line_that_is_edited_by_hand_is_written_in_full_and_needs_no_digest():
    entry = replace(message("user", "I live in Rome.", ts=NOW), id=3)
    read = decode_line(encode_entries([entry]).replace(b"Rome", b"Oslo"))
    assert read == TapeLine(replace(message("user", "I live in Oslo.", ts=NOW), id=3), 0)
    lines, _ = encode_chained([entry], CHAIN_START)
    assert decode_line(lines.partition(b',"chain"')[0] + b"}\n") is None
