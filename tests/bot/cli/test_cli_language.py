import argparse
import contextlib
import re
from collections.abc import Iterator

import pytest

from bot.cli.main import main
from bot.cli.parser import make_parser
from tests.bracketed_language import bracketed, unmarked

_EXAMPLE = re.compile(r"^  (?:TAPEBOT_|printf ).*$", re.MULTILINE)
"""Variables and commands in a help text."""
_NAME = re.compile(r"\[?--?[\w-]+|[A-Z]+|tapebot|tape_\w+|\W+|\d+")


@pytest.fixture
def pseudo(tmp_path, monkeypatch):
    for name in ("LC_MESSAGES", "LANG", "LANGUAGE", "TAPEBOT_LANGUAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("TAPEBOT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalogue").mkdir()
    with bracketed(tmp_path / "catalogue"):
        yield


def _parsers(
    parser: argparse.ArgumentParser, names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    yield names, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _parsers(inner, (*names, name))


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with contextlib.suppress(SystemExit):
        main(arguments)
    printed = capsys.readouterr()
    return printed.out + printed.err


def _words(text: str, *known: str) -> list[str]:
    """Return the words outside of all messages that are not names of the command line."""
    return [
        word
        for word in unmarked(text).split()
        if word.strip("[](),.:{}") not in known and _NAME.sub("", word)
    ]


def test_every_word_of_the_help_is_in_the_readers_language(pseudo, capsys):
    names = {name for path, _parser in _parsers(make_parser()) for name in path}
    for path, parser in _parsers(make_parser()):
        own = {str(action.dest) for action in parser._actions}
        choices = {str(choice) for action in parser._actions for choice in action.choices or ()}
        choices |= {",".join(action.choices) for action in parser._actions if action.choices}
        printed = _EXAMPLE.sub("", _printed(capsys, *path, "--help"))
        assert "⟦usage: ⟧" in printed
        lines = (one for one in (parser.epilog or "").splitlines() if one.startswith("  "))
        code = {word.strip(",.") for line in lines for word in line.split()}
        assert _words(printed, *names, *own, *choices, *code) == [], path


@pytest.mark.parametrize(
    "arguments",
    [
        ("tape", "show", "console:local"),
        ("tape", "export"),
        ("tape", "export", "--output", "files"),
        ("tape", "search", "cat"),
        ("tape", "verify"),
        ("tape", "repair"),
        ("tape", "show", "console:local", "--last", "none"),
        ("memory", "audit"),
        ("memory", "export", "console:local"),
        ("import", "chatgpt", "missing"),
        ("import", "nanobot", "missing"),
        ("import", "jsonl", "missing"),
        ("backup",),
        ("restore", "missing"),
        ("tape-server", "token", "remove", "anna"),
        ("db", "status"),
        ("migrate", "files", "postgres"),
        ("models", "unknown"),
        ("doctor",),
        ("doctor", "--unknown"),
    ],
    ids=" ".join,
)
def test_what_a_command_says_is_in_the_readers_language(arguments, pseudo, capsys):
    printed = _printed(capsys, *arguments)
    assert "⟦" in printed
    assert _words(printed, *arguments, "offline", "N", "ID", "session") == []


def test_english_needs_no_catalogue_and_no_rules_of_languages(tmp_path):
    import subprocess
    import sys

    loaded = "import sys; from bot.cli.main import main; main(['tape', 'list']); print('babel' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", loaded],
        env={"TAPEBOT_HOME": str(tmp_path), "PATH": "", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"
