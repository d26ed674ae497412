"""The console through pipes: a real process, real pipes, a bus end that echoes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOST = [sys.executable, str(Path(__file__).with_name("console_host.py"))]
SECONDS = 60


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def converse(given: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*HOST, *options],
        input=given,
        capture_output=True,
        env=environment(),
        timeout=SECONDS,
        check=False,
    )


def events(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_each_line_is_answered_in_order_and_the_program_ends():
    """Only answers reach the output, a blank line between them."""
    done = converse(b"one\ntwo\nthree\n")
    assert done.stdout == b"echo: one\n\necho: two\n\necho: three\n"
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(b"one\nlast", "echo: one\n\necho: last\n", id="no newline at the end"),
        pytest.param(b"one\r\ntwo\r\n", "echo: one\n\necho: two\n", id="carriage returns"),
        pytest.param(b"\xef\xbb\xbfone\n", "echo: one\n", id="byte order mark"),
        pytest.param(b"\n\none\n  \n\n", "echo: one\n", id="empty lines"),
        pytest.param("你好 Grüße\n".encode(), "echo: 你好 Grüße\n", id="any script"),
        pytest.param(b"a\xffb\n", "echo: a\ufffdb\n", id="not UTF-8"),
        pytest.param(b"", "", id="nothing"),
        pytest.param(b"x" * 1_000_000, f"echo: {'x' * 1_000_000}\n", id="a very long line"),
    ],
)
def test_any_bytes_are_lines_of_text(given: bytes, expected: str):
    """Line endings, marks and broken bytes never reach the bot and never stop the program."""
    done = converse(given)
    assert done.stdout.decode() == expected
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_answer_of_a_former_run_is_printed_and_reported_first(tmp_path: Path):
    """What a killed run left undelivered is delivered by the next, once."""
    log = tmp_path / "log"
    done = converse(b"new\n", "--leftover", "from before", "--log", str(log))
    assert done.stdout == b"from before\n\necho: new\n"
    assert next(event["report"] for event in events(log) if "report" in event) == "left"


def test_a_broken_pipe_ends_quietly(tmp_path: Path):
    """As with ``| head -1``: no traceback, and the bus learns what was not delivered."""
    log = tmp_path / "log"
    with subprocess.Popen(
        [*HOST, "--log", str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"two\nthree\n")
        process.stdin.flush()
        assert process.wait(SECONDS) == 0
        assert process.stderr.read() == b""
    assert [e["delivered"] for e in events(log) if "report" in e] == [True, False]


def test_no_escape_sequence_of_an_answer_reaches_the_output():
    """Answers hold no control character but newline and tab."""
    done = converse(rb"say:a\x1b[31mb\x9b2J\x07\tc\r\nd\x7f" + b"\n")
    assert done.stdout == b"a[31mb2J\tc\nd\n"
