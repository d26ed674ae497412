"""Whatever bytes a file holds, and wherever it is damaged, parity gives back no other bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.tape.stores.parity import CHUNK, Parity, ParityLayout, make_parity, protected_length

proved = settings(max_examples=examples(80), deadline=None)
sizes = st.integers(0, 2_000) | st.integers(90_000, 110_000) | st.sampled_from([511, 512, 98_304])
GAP = 40


def whole(size: int, seed: int) -> tuple[bytes, bytes]:
    data = (seed.to_bytes(8, "little") + bytes(range(256))) * (size // 264 + 1)
    data = bytes(byte ^ (at >> 8) & 0xFF for at, byte in enumerate(data[:size]))
    return data, data + b"-" * GAP + make_parity(lambda at, n: data[at : at + n], size)


def parity_of(file: bytes, size: int) -> Parity:
    return Parity(lambda at, n: file[at : at + n], size, size + GAP)


@proved
@given(sizes, st.integers(0, 1 << 60), st.data())
def test_damage_within_512_bytes_costs_nothing_wherever_it_lies(size, seed, draw):
    data, file = whole(size, seed)
    start = draw.draw(st.integers(0, len(file) - 1) | st.integers(max(0, size - 600), size))
    count = draw.draw(st.integers(1, CHUNK))
    damaged = bytearray(file)
    for at in range(start, min(start + count, len(file))):
        damaged[at] ^= draw.draw(st.sampled_from([0, 1, 0x80, 0xFF])) if at % 64 == 0 else 0x5A
    parity = parity_of(bytes(damaged), size)
    assert parity.mended(0, size) == data
    touched = {at // CHUNK for at in range(size) if damaged[at] != file[at]}
    assert set(parity.damaged()) == touched


@proved
@given(sizes, st.integers(0, 1 << 60), st.data())
def test_any_damage_is_mended_or_left_as_it_is_but_never_made_worse(size, seed, draw):
    data, file = whole(size, seed)
    damaged = bytearray(file)
    for at in draw.draw(st.lists(st.integers(0, len(file) - 1), max_size=12)):
        damaged[at] ^= 0x10
    cut = draw.draw(st.integers(0, len(file)) | st.just(len(file)))
    parity = parity_of(bytes(damaged[:cut]), size)
    mended = parity.mended(0, size)
    for at in range(0, min(size, cut), CHUNK):
        piece = slice(at, min(at + CHUNK, size))
        assert mended[piece] in (data[piece], bytes(damaged[:cut][piece]))


@proved
@given(st.integers(0, 3_000_000))
def test_the_length_of_a_file_says_how_much_of_it_is_protected(size):
    layout = ParityLayout(size)
    assert protected_length(size + layout.size) == size
    places = sorted(layout.record(group) for group in range(layout.groups))
    assert all(after - before >= CHUNK for before, after in pairwise(places))
    assert 0 < places[0] < places[-1] + CHUNK < layout.size
