"""The file of typed lines: what is taken out is gone, all else stays as it was."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.history import FileHistory

from channels.console.history import erase_history_entries
from channels.console.prompt import open_history

# Lone surrogates are written as question marks, and so are not what was typed.
TYPED = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=12)
MARK = "xyzzy"


def write(file: Path, lines: list[str]) -> list[bytes]:
    """Type the lines; return the bytes that each became."""
    history, parts = FileHistory(file), []
    for line in lines:
        before = file.stat().st_size if file.exists() else 0
        history.store_string(line)
        parts.append(file.read_bytes()[before:])
    return parts


def typed(file: Path) -> list[str]:
    return list(FileHistory(file).load_history_strings())[::-1]


@given(TYPED, st.lists(st.booleans(), min_size=12, max_size=12), st.data())
def test_entries_that_hold_a_word_go_and_others_stay_byte_for_byte(
    tmp_path_factory, lines, marked, data
):
    file = tmp_path_factory.mktemp("typed") / "history"
    for number, line in enumerate(lines):
        if marked[number]:
            at = data.draw(st.integers(0, len(line)))
            lines[number] = line[:at] + MARK + line[at:]
    parts = write(file, lines)
    gone = erase_history_entries(file, lambda text: MARK in text)
    kept = [index for index, line in enumerate(lines) if MARK not in line]
    assert gone == len(lines) - len(kept)
    if lines:
        assert file.read_bytes() == b"".join(parts[index] for index in kept)
        assert typed(file) == [lines[index] for index in kept]


def test_the_rewritten_file_is_its_owners_alone_and_nothing_is_left_beside_it(tmp_path):
    file = tmp_path / "console" / "history"
    history = open_history(file)
    for line in ("keep", MARK):
        history.append_string(line)
    assert erase_history_entries(file, lambda text: MARK in text) == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]
