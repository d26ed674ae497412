"""``tapebot tape reset``: the program itself, stopped and running."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pexpect
import pytest
from preloaded import environment, run_program
from terminals import at_terminal, end

pytestmark = pytest.mark.slow

SESSION = "console:local"


def program(
    home: Path, *arguments: str, said: str = "", fails: bool = False
) -> subprocess.CompletedProcess[str]:
    command = ["-m", "bot", *arguments]
    done = run_program(
        command, environment=environment(home, TERM="dumb"), cwd=home, given=said, timeout=90
    )
    assert (done.returncode != 0) is fails, done.stderr
    return done


@contextmanager
def talking(home: Path) -> Iterator[pexpect.spawn]:
    child = at_terminal(home, environment(home, TERM="dumb", TAPEBOT_MODEL="offline"))
    try:
        child.expect_exact("you>")
        yield child
    finally:
        end(child)


@pytest.mark.parametrize("archive", [False, True], ids=["dropped", "archived"])
def test_a_reset_exports_says_what_stays_and_forgets(tmp_path, archive):
    program(
        tmp_path, said="My word is zirkon.\n/memory add I like jasmine tea\n/new\nIt was opal.\n"
    )
    how = ["--archive"] if archive else []
    told = program(tmp_path, "tape", "reset", SESSION, "--yes", *how).stdout
    assert "The person's facts stay" in told
    assert "Files that people sent stay" in told
    [path] = re.findall(r"Exported: (.+\.zip)", told)
    with zipfile.ZipFile(path) as made:
        assert b"zirkon" in made.read("conversation.jsonl")
        assert b"opal" in made.read("conversation.md")
    shown = program(tmp_path, "tape", "show", SESSION, "--all").stdout
    assert ("zirkon" in shown, "opal" in shown) == (archive, archive)
    found = program(tmp_path, "tape", "search", "opal", fails=not archive).stdout
    assert ("opal" in found) is archive
    assert "no problems" in program(tmp_path, "tape", "verify").stdout
    assert "jasmine tea" in program(tmp_path, said="/memory\n").stdout  # the person's


def test_nothing_is_reset_unasked(tmp_path):
    program(tmp_path, said="My word is zirkon.\n")
    assert "--yes" in program(tmp_path, "tape", "reset", SESSION, fails=True).stderr
    child = at_terminal(tmp_path, environment(tmp_path), "tape", "reset", SESSION)
    child.expect_exact("[y/N]")
    child.sendline("")
    child.expect_exact("Nothing was reset.")
    child.expect(pexpect.EOF)
    assert "zirkon" in program(tmp_path, "tape", "show", SESSION).stdout


def test_a_running_bot_forgets_too_and_goes_on(tmp_path):
    with talking(tmp_path) as console:
        console.sendline("My word is zirkon.")
        console.expect_exact("Kept.")
        console.sendline("/status")
        console.expect_exact("Memory:")
        # What was said last may still be written down: then it says so, and can be asked again.
        command = ["-m", "bot", "tape", "reset", SESSION, "--yes"]
        ask = partial(
            run_program, command, environment=environment(tmp_path, TERM="dumb"), cwd=tmp_path
        )
        while (refused := ask()).returncode:
            assert "try again" in refused.stderr
        for _ in range(2):
            console.sendline("/tape search zirkon")
            console.expect_exact("No matching records.")
    shown = program(tmp_path, "tape", "show", SESSION).stdout
    assert "My word is" not in shown
