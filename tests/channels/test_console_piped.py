"""The console through pipes: a real process, real pipes, a bus end that echoes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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


def test_any_bytes_are_lines_of_text():
    """Line endings, marks, empty lines, broken bytes and length never stop the program."""
    said = ["你好 Grüße".encode(), b"a\xffb", b"x" * 1_000_000, b"no newline at the end"]
    done = converse(b"\xef\xbb\xbfone\r\n\n  \n" + b"\n".join(said))
    lines = ["one", "你好 Grüße", "a\ufffdb", "x" * 1_000_000, "no newline at the end"]
    assert done.stdout.decode() == "\n".join(f"echo: {line}\n" for line in lines)
    assert (done.returncode, done.stderr) == (0, b"")
    assert converse(b"").stdout == b""


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
