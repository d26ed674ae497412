"""The first interactive run, in a real terminal."""

from __future__ import annotations

import os
import sys

import pexpect
import pytest
from terminals import end


@pytest.fixture
def terminal(tmp_path):
    started = []

    def start(**environment):
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        child = pexpect.spawn(
            sys.executable,
            ["-m", "bot"],
            cwd=tmp_path,
            env={
                **kept,
                "TERM": "xterm",
                "HOME": str(tmp_path),
                "TAPEBOT_HOME": str(tmp_path / "home"),
                "TAPEBOT_WEB_LISTEN": "off",
                **environment,
            },
            encoding="utf-8",
            timeout=30,
            dimensions=(30, 120),
        )
        started.append(child)
        return child

    yield start
    for child in started:
        end(child)


def _leave(child):
    child.expect("you>")
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.wait()


@pytest.mark.slow
def test_a_model_at_hand_is_offered_once_and_a_no_is_kept(tmp_path, terminal):
    first = terminal(OPENAI_API_KEY="sk-for-tests-only")
    first.expect("OPENAI_API_KEY is set.*your messages would be sent there")
    first.sendline("n")
    first.expect("offline responder")
    _leave(first)
    second = terminal(OPENAI_API_KEY="sk-for-tests-only")
    second.expect("tapebot, offline responder")
    assert "Use it?" not in second.before
    _leave(second)
    written = b"".join(
        path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()
    )
    assert b"sk-for-tests-only" not in written


@pytest.mark.slow
def test_a_yes_is_kept_for_the_next_start(tmp_path, terminal):
    first = terminal(MISTRAL_API_KEY="for-tests-only")
    first.expect("Use it?")
    first.sendline("y")
    first.expect("Saved in")
    _leave(first)
    assert 'model = "mistral/' in (tmp_path / "home" / "tapebot.toml").read_text(encoding="utf-8")
    second = terminal(MISTRAL_API_KEY="for-tests-only")
    second.expect("tapebot, mistral/")
    _leave(second)


@pytest.mark.slow
def test_the_end_of_input_at_the_question_is_a_no(terminal):
    child = terminal(OPENAI_API_KEY="sk-for-tests-only")
    child.expect("Use it?")
    child.send("\x04")
    child.expect("The offline responder answers")
    _leave(child)
