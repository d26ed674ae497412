"""The console at a terminal: a real process in a real pty, a bus end that echoes."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest
from terminals import end

from channels.console.history import erase_history_entries

ROOT = Path(__file__).parents[2]
HOST = Path(__file__).with_name("console_host.py")
SECONDS = 30

CTRL_C, CTRL_D, UP, ALT_ENTER, TAB = "\x03", "\x04", "\x1b[A", "\x1b\r", "\t"
HINT = "Press Ctrl-C again or Ctrl-D to leave"
BYE = "Bye. The conversation is on the tape."

Start = Callable[..., pexpect.spawn]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def start(log: Path) -> Iterator[Start]:
    """Start the console in a pty, seen to the first prompt; end it with the test."""
    started: list[pexpect.spawn] = []

    def run(*options: str, term: str = "xterm-256color") -> pexpect.spawn:
        console = pexpect.spawn(
            sys.executable,
            [str(HOST), "--log", str(log), *options],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": term},
            timeout=SECONDS,
            dimensions=(24, 80),
            encoding="utf-8",
        )
        started.append(console)
        console.expect_exact("you>")
        return console

    yield run
    for console in started:
        end(console)


def leave(console: pexpect.spawn) -> str:
    """Press Ctrl-D; return what was written until the end."""
    console.send(CTRL_D)
    console.expect_exact(BYE)
    before = console.before
    console.expect(pexpect.EOF)
    console.wait()
    assert console.exitstatus == 0
    return before


def streamed(console: pexpect.spawn) -> None:
    """See the text of a slow turn: in one piece, or, where a part was drawn before, what is new of it."""
    console.expect_exact("first words")
    console.expect_exact("and more")


def said(log: Path) -> list[str]:
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return [event["inbound"] for event in events if "inbound" in event]


def test_text_is_seen_as_it_streams_and_its_final_form_replaces_it(start: Start):
    """The raw text above the prompt is erased before the rendered Markdown is written."""
    console = start()
    seen = console.logfile_read = io.StringIO()
    console.send("slow\r")
    streamed(console)
    console.send(CTRL_C)
    console.expect_exact("\x1b[1mfirst words\x1b[0m and no more\r\n")
    assert "\x1b[J" in console.before
    assert "thinking" in seen.getvalue()
    console.expect_exact("Stopped.")
    rest = leave(console)
    assert "first words" not in rest


def test_ctrl_c_clears_what_is_typed_then_ends_the_turn_then_the_program(start: Start, log: Path):
    """The nearest thing is ended first, and leaving takes two presses."""
    console = start()
    console.send("slow\r")
    console.expect_exact("thinking")
    console.send("half a thought")
    console.expect_exact("thought")
    console.send(CTRL_C)
    console.send(CTRL_C)
    console.expect_exact("Stopped.")
    assert said(log) == ["slow", "/stop"]
    # The next prompt is drawn without a spinner once the bot is idle.
    console.send("hello\r")
    console.expect_exact("echo: hello")
    console.send(CTRL_C)
    console.expect_exact(HINT)
    console.send(CTRL_C)
    console.expect_exact(BYE)
    console.expect(pexpect.EOF)


def test_a_paste_of_two_lines_is_one_message(start: Start, log: Path):
    """Bracketed paste keeps its newlines until Enter is pressed."""
    console = start()
    console.send("\x1b[200~line one\rline two\x1b[201~")
    console.send("\r")
    console.expect_exact("echo: line one\r\nline two\r\n")
    leave(console)
    assert said(log) == ["line one\nline two"]


@pytest.mark.slow
def test_history_outlives_the_run_and_is_its_owners_alone(start: Start, log: Path, tmp_path: Path):
    """The arrow key brings back a line of an earlier run, from a private file."""
    file = tmp_path / "home" / "history"
    first = start("--history", str(file))
    first.send("remember me\r")
    first.expect_exact("echo: remember me")
    leave(first)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    second = start("--history", str(file))
    second.send(UP)
    second.expect_exact("remember me")
    second.send("\r")
    second.expect_exact("echo: remember me")
    leave(second)
    assert said(log) == ["remember me", "remember me"]


def test_no_escape_sequence_of_an_answer_reaches_the_terminal(start: Start):
    """A model cannot set the window's title, move the cursor or clear the screen."""
    console = start()
    console.send(r"say:a\x1b]0;title\x07b\x9b2Jc" + "\r")
    console.expect_exact("a]0;titleb2Jc\r\n")
    leave(console)


def test_what_was_taken_out_of_the_history_is_not_brought_back_by_an_open_prompt(
    start: Start, tmp_path: Path
):
    """An answer comes after what it tells of, and there is no new prompt before it."""
    file = tmp_path / "typed"
    console = start("--history", str(file))
    for text in ("keepme", "my secret", "slow"):
        console.send(f"{text}\r")
        if text != "slow":
            console.expect_exact(f"echo: {text}\r\n")
    streamed(console)
    console.send(UP)
    console.expect_exact("slow")
    console.send("\x1b[B")
    assert erase_history_entries(file, lambda text: "secret" in text) == 1
    assert file.stat().st_mode & 0o777 == 0o600
    console.send(CTRL_C)
    console.expect_exact("and no more")
    console.expect_exact("you>")
    console.send(UP)
    console.expect_exact("slow")
    console.send(UP)
    console.expect_exact("keepme")
    console.send("\r")
    console.expect_exact("echo: keepme\r\n")
    leave(console)
    assert "secret" not in file.read_text()
