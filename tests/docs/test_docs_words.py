"""What the docs name exists: commands, settings, targets; and each how-to is short and two clicks away."""

from __future__ import annotations

import argparse
import re

import pytest
from page_player import ROOT
from test_docs_pages import TESTED_ELSEWHERE, pages

from bot.agent.commands.builtin import builtin_commands
from bot.cli.commands import make_parser
from bot.runtime.settings import PREFIX, Settings

PAGES = [one for one in [*pages(), *TESTED_ELSEWHERE] if (ROOT / one).exists()]
NOT_OF_THE_PROGRAM = {"TAPEBOT_SCREENSHOTS", "TAPEBOT_TCP_LISTEN"}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def inline(page: str) -> list[str]:
    """Return what stands between backticks outside of blocks."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", prose)]


def leaf(parser: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser | None:
    """Return the parser of these words; None if one of them is no command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            if not words or not re.fullmatch(r"[a-z-]+", words[0]) or words[0][0] == "-":
                return parser
            child = action.choices.get(words[0])
            return None if child is None else leaf(child, words[1:])
    return parser


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_that_the_docs_name_exists(page):
    for said in inline(page):
        words = said.split()
        if words[0] != "tapebot" or len(words) == 1 or "/" in words[1]:
            continue
        found = leaf(make_parser(), words[1:])
        assert found is not None, f"{page}: {said}"
        options = {name for action in found._actions for name in action.option_strings}
        assert set(re.findall(r"(?<![\w-])--[a-z-]+", said)) <= options, f"{page}: {said}"


@pytest.mark.parametrize("page", PAGES)
def test_every_form_of_a_command_that_the_docs_name_exists(page):
    for said in inline(page):
        name, _, rest = said.removeprefix("/").partition(" ")
        command = builtin_commands().get(name) if said.startswith("/") else None
        first = rest.partition(" ")[0].rstrip(",")
        if command is None or not re.fullmatch(r"[a-z]+", first) or not command.forms:
            continue
        forms = " ".join(f"{form} {line}" for form, line in command.forms)
        takes_words = any(form[:1].isupper() or not form for form, _ in command.forms)
        assert takes_words or re.search(rf"\b{first}\b", forms), f"{page}: {said}"


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_and_target_that_the_docs_name_exists(page):
    text = text_of(page)
    settings = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | NOT_OF_THE_PROGRAM
    assert set(re.findall(rf"\b{PREFIX}[A-Z_]*[A-Z]\b(?!_?\*)", text)) <= settings
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(targets)


def test_every_how_to_is_one_screen_and_two_clicks_away():
    folder = ROOT / "docs" / "howto"
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert "(howto/index.md)" in text_of("docs/index.md")
    tasks = [one for one in folder.glob("*.md") if one.name != "index.md"]
    assert len(tasks) >= 30
    for one in tasks:
        assert f"({one.name})" in index, f"docs/howto/index.md does not lead to {one.name}"
        assert len(one.read_text(encoding="utf-8").splitlines()) <= 65, one.name
