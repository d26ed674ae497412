"""A huge array is read object by object; what is damaged, too long or a bomb costs only itself."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.transfer.foreign import ForeignFile, read_objects

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), max_size=6)


def objects(
    data: bytes, *, longest: int = 1 << 20, block: int = 3, head: int = 8
) -> tuple[list[Any], list[str]]:
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_bytes(data)
        file = ForeignFile(path, "a", problems.append)
        found = [value for _, value in read_objects(file, longest=longest, block=block, head=head)]
    return found, [problem.removeprefix("a: ") for problem in problems]


@settings(max_examples=examples(40))
@given(OBJECTS, st.integers(1, 9), st.booleans(), st.booleans(), st.sampled_from(["", "\ufeff"]))
def test_every_object_is_found_wherever_a_block_ends(wanted, block, ascii_only, wrapped, mark):
    value = {"conversations": wanted} if wrapped else wanted
    text = mark + json.dumps(value, ensure_ascii=ascii_only)
    found, problems = objects(text.encode(), block=block, head=80 if wrapped else 8)
    assert found == wanted
    assert problems == []


@settings(max_examples=examples(40))
@given(st.binary(max_size=200))
def test_any_bytes_end(data):
    objects(b"[" + data)
    objects(data)


def test_what_is_damaged_or_too_long_costs_only_itself():
    data = b'[{"a":1},{bad},{"b":"' + b"x" * 500 + b'"},7,"{",[{"c":2}],{"d":"\\"}"},{"e":'
    found, problems = objects(data, longest=100)
    assert found == [{"a": 1}, {"d": '"}'}]
    assert problems == [
        "object 2: cannot be read; skipped",
        "object 3: is longer than 0 MiB; skipped",
        "ends too early, after 4 complete objects",
    ]
