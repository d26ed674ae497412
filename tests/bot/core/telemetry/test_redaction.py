"""Secrets reach no log line, whichever way they come."""

from __future__ import annotations

import contextlib
import json
import logging
import stat
from urllib.parse import quote

import pytest

from bot.core.telemetry.logging import configure_logging
from bot.core.telemetry.redaction import MARK, Redactor, redact

TELEGRAM = "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"
JWT = "eyJhbGciOiJIUzI1NiJ9abc.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-123", "abc.def-123"),
        ("sent bearer abcdefgh12345 to it", "abcdefgh12345"),
        ("{'authorization': 'Bearer xyz'}", "xyz"),
        ("[(b'authorization', b'x'), b'authorization: Basic dXNlcjpwYXNz']", "dXNlcjpwYXNz"),
        ("Incorrect key sk-proj-abc_DEF-123 given", "sk-proj-abc_DEF-123"),
        ("key gsk_0123456789abcdefXY", "gsk_0123456789abcdefXY"),
        ("AIzaSyA-0123456789_abcdefghijklmnopqrs", "AIzaSyA-0123456789"),
        (f"POST https://api.telegram.org/bot{TELEGRAM}/getMe 200", TELEGRAM),
        (f"token {TELEGRAM}", TELEGRAM),
        ("call(api_key='two words', x=1)", "two words"),
        (json.dumps(json.dumps({"password": "pa ss"})), "pa ss"),
        ("OPENAI_API_KEY=qwerty", "qwerty"),
        ("AWS_SECRET_ACCESS_KEY=a/b+c", "a/b+c"),
        ("x-api-key: qwerty", "qwerty"),
        ("GET /v1?model=a&key=qwerty&n=1", "qwerty"),
        ("bot_token=qwerty", "qwerty"),
        ("postgres://ada:p@ss@host/db", "p@ss"),
        ("https://ada@host/", "ada"),
        (f"cookie {JWT}", JWT),
    ],
)
def test_what_looks_like_a_credential_is_taken_out(text, secret):
    assert secret not in redact(text)
    assert MARK in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "turn 12 took 132 ms, prompt_tokens=1200, completion_tokens: 30",
        "https://example.org/a?b=c@d#e",
        "a task-list on disk-0123456789 at 2026-11-21T22:41:07.123Z",
        "The password is kept elsewhere; a bearer of news came.",
        "console:local wrote to /home/ada/.tapebot/tapes/0a1b.jsonl",
        "12345678:short",
    ],
)
def test_plain_text_is_left_as_it_is(text):
    assert redact(text) == text


@pytest.mark.parametrize("form", [str, quote, json.dumps, repr, lambda value: f"x{value}y"])
def test_a_known_value_is_taken_out_however_it_was_written(form):
    secret = 'pä "ss"\\ wörd/1'
    written = form(secret)
    cleaned = Redactor([secret])(f"said {written}.")
    assert MARK in cleaned
    assert written.strip("\"'") not in cleaned


@contextlib.contextmanager
def logging_to(home, level="info", secrets=()):
    stop = configure_logging(home, level, secrets)
    try:
        yield
    finally:
        stop()


def log_text(home):
    return (home / "logs" / "tapebot.log").read_text(encoding="utf-8")


def test_no_log_line_holds_a_secret_whichever_way_it_came(tmp_path, capsys):
    secret, guess = "hunter2-and-more", "sk-abcdefghijklmnop"
    library = logging.getLogger("LiteLLM")
    own = logging.StreamHandler()
    library.addHandler(own)
    try:
        with logging_to(tmp_path, secrets=[secret]):
            logging.getLogger("bot.llm").warning("key %s, and %s", secret, {"api_key": guess})
            logging.getLogger(f"bot.{secret}").info("named")
            try:
                int(secret)
            except ValueError:
                logging.getLogger("bot.x").exception("failed with %s", guess)
                library.exception("library %s", secret)
            logging.getLogger("httpx").warning("GET https://api.telegram.org/bot%s/x", TELEGRAM)
    finally:
        library.removeHandler(own)
    text = log_text(tmp_path) + capsys.readouterr().err
    for hidden in (secret, guess, TELEGRAM):
        assert hidden not in text
    for kept in (
        "key [redacted]",
        "ValueError: invalid literal for int() with base 10: '[redacted]'",
        "bot[redacted]/x",
        "named",
    ):
        assert kept in text


def test_a_message_cannot_pass_for_another_record_or_move_the_cursor(tmp_path, capsys):
    with logging_to(tmp_path):
        logging.getLogger("bot").warning("one\n2026-11-21T00:00:00Z ERROR bot: forged\x1b[2J\r")
    lines = log_text(tmp_path).splitlines()
    assert lines[1].startswith("    2026-")
    assert "\x1b" not in log_text(tmp_path) + capsys.readouterr().err


def test_only_the_owner_can_read_the_log(tmp_path):
    home = tmp_path / "home"
    with logging_to(home):
        logging.getLogger("bot").info("x")
    modes = [home, home / "logs", home / "logs" / "tapebot.log"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in modes] == [0o700, 0o700, 0o600]
