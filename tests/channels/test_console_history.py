"""The file of typed lines: what is taken out is gone, all else stays as it was."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.history import FileHistory

from channels.console.history import erase_history_entries, file_lock, remove_entries
from channels.console.prompt import ReloadingFileHistory, open_history

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


@given(st.binary(max_size=200))
def test_a_damaged_file_loses_nothing_that_holds_no_word(data):
    assert remove_entries(data, lambda _: False) == (data, 0)


def test_what_is_no_entry_goes_with_its_words(tmp_path):
    data = b"stray xyzzy\n# 2026-01-01\n+one\n\n# 2026-01-02\n+two\n+torn xyz"
    assert remove_entries(data, lambda text: MARK in text) == (
        b"\n# 2026-01-02\n+two\n+torn xyz",
        1,
    )


def test_a_time_is_no_word_of_a_person(tmp_path):
    file = tmp_path / "history"
    write(file, ["said in some year"])
    assert erase_history_entries(file, lambda text: "20" in text) == 0


def test_where_there_is_no_file_none_is_made(tmp_path):
    assert erase_history_entries(tmp_path / "none", lambda _: True) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_rewritten_file_is_its_owners_alone_and_nothing_is_left_beside_it(tmp_path):
    file = tmp_path / "console" / "history"
    history = open_history(file)
    for line in ("keep", MARK):
        history.append_string(line)
    assert erase_history_entries(file, lambda text: MARK in text) == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


async def test_a_prompt_that_is_open_brings_back_what_the_file_still_has(tmp_path):
    history = open_history(tmp_path / "history")
    assert isinstance(history, ReloadingFileHistory)
    for line in ("first", f"a {MARK}", "last"):
        history.append_string(line)
    assert [line async for line in history.load()] == ["last", f"a {MARK}", "first"]
    assert not history.is_outdated
    erase_history_entries(tmp_path / "history", lambda text: MARK in text)
    assert history.is_outdated
    history.append_string("later")
    assert [line async for line in history.load()] == ["later", "last", "first"]
    assert not history.is_outdated
    history.append_string("latest")
    assert not history.is_outdated


def test_lines_typed_while_words_are_taken_out_are_all_there(tmp_path):
    file = tmp_path / "history"
    history = open_history(file)
    begun = threading.Event()

    def type_all() -> None:
        for number in range(200):
            history.append_string(f"line {number}")
            history.append_string(f"{MARK} {number}")
            begun.set()

    typist = threading.Thread(target=type_all)
    typist.start()
    begun.wait()
    while typist.is_alive():
        erase_history_entries(file, lambda text: MARK in text)
    typist.join()
    erase_history_entries(file, lambda text: MARK in text)
    assert typed(file) == [f"line {number}" for number in range(200)]


def descriptors(file: Path) -> int:
    """Return how often this process has the file open."""
    found = 0
    for number in Path("/dev/fd").iterdir():
        with suppress(OSError):
            found += os.path.samestat(os.fstat(int(number.name)), file.stat())
    return found


def until_opened_twice(file: Path) -> None:
    end = time.monotonic() + 60
    while descriptors(file) < 2 and time.monotonic() < end:
        os.sched_yield()
    assert descriptors(file) == 2


def test_the_lock_is_that_of_the_file_which_has_the_name(tmp_path):
    """Whoever waited for a file that was replaced meanwhile must not write to the old one."""
    file = tmp_path / "history"
    file.write_bytes(b"old")

    def append() -> None:
        with file_lock(file), file.open("ab") as out:
            out.write(b" and more")

    with file_lock(file):
        writer = threading.Thread(target=append)
        writer.start()
        # It waits for this file's lock once it has opened it, too.
        until_opened_twice(file)
        fresh = tmp_path / "fresh"
        fresh.write_bytes(b"new")
        held = os.open(fresh, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        fresh.replace(file)
    # Then for that of the new file.
    until_opened_twice(file)
    assert file.read_bytes() == b"new"
    os.close(held)
    writer.join(60)
    assert file.read_bytes() == b"new and more"
