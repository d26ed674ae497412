"""Commands bear streams that are closed, that end, and that cannot show every script."""

from __future__ import annotations

import io
import os
import sys

import pytest

from bot.cli.main import main
from bot.cli.terminal import complete_streams, confirm

pytestmark = pytest.mark.usefixtures("bare")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "code"), [(["tape", "reset", "console:local"], 2), (["setup", "timezone"], 0)]
)
def test_a_closed_standard_input_has_no_answers(arguments, code, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    try:
        assert main(arguments) == code
    finally:
        sys.stdin.close()


def test_with_closed_output_a_command_does_its_work(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Europe/Rome\n"))
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    try:
        assert main(["setup", "timezone"]) == 0
    finally:
        sys.stdout.close()
        sys.stderr.close()
    assert "Europe/Rome" in (tmp_path / ".tapebot" / ".env").read_text()


def test_a_terminal_of_another_encoding_gets_every_language(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii", write_through=True))
    complete_streams()
    sys.stdout.write("verfügbar\n")
    assert written.getvalue() == b"verf\\xfcgbar\n"


def test_an_end_of_input_is_no_yes(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert not confirm("Erase?", yes=False, without="")


def test_input_that_ends_amid_a_step_is_told_and_writes_nothing_of_it(
    tmp_path, monkeypatch, capsys
):
    given = f"Europe/Rome\n{tmp_path / 'backups'}\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    assert main(["setup", "timezone", "backup"]) == 1
    assert "Nothing of this step was saved." in capsys.readouterr().out
    text = (tmp_path / ".tapebot" / ".env").read_text()
    assert "Europe/Rome" in text
    assert "BACKUP" not in text


def test_a_reader_that_is_gone_is_no_error(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        assert main(["pair"]) == 0
