"""The README shows what the program prints now, and names what exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from dotenv import dotenv_values

from bot.agent.commands.builtin import builtin_commands
from docs.pictures.make import CHAT, conversation

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d")


def shown_lines(svg):
    """Return the lines of text that a picture of a terminal shows, without empty ones."""
    rows = {}
    for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        if "clip-path" in text.attrib:  # the title has none
            rows.setdefault(float(text.attrib["y"]), []).append(text.text or "")
    lines = ["".join(rows[row]).replace("\xa0", " ").rstrip() for row in sorted(rows)]
    return [DATE.sub("DATE", line) for line in lines if line]


@pytest.mark.slow
def test_the_picture_of_the_chat_is_what_the_program_prints(tmp_path):
    """Where the program is meant to print something else, ``make pictures`` makes the pictures again."""
    printed = [DATE.sub("DATE", line.rstrip()) for line in conversation(tmp_path)]
    assert shown_lines(CHAT.read_text(encoding="utf-8")) == [line for line in printed if line]


def test_the_readme_lists_every_command():
    listed = re.findall(r"^\| `/(\w+)", README, re.MULTILINE)
    assert {one.name for one in builtin_commands().visible_commands()} <= set(listed)


BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:touch|install|cp|mv|echo|printf|cat|tee|test|rm) [^`\n]*\.env[^`\n]*)`")
RECIPE = re.compile(rf"{BLOCK.pattern}|{INLINE.pattern}", re.MULTILINE | re.DOTALL)


def env_recipes(text):
    """Yield what a page says of ``.env``, in order: a command, or lines for the file."""
    for kind, block, inline in RECIPE.findall(text):
        if kind == "ini":
            yield "lines", block
        for line in [inline] if inline else block.splitlines():
            command = line.strip().removeprefix("$ ").partition(" # ")[0]
            if kind not in ("ini", "toml") and re.search(r"(?<![\w/.])\.env(?![\w.])", command):
                yield "command", command


@pytest.mark.parametrize("page", ["README.md", "docs/howto/telegram.md"])
def test_who_follows_a_page_in_order_keeps_every_line_of_env(tmp_path, page):
    """Each page is followed on a machine where the README was followed before."""
    wanted: dict[str, str] = {}
    for text in (README, (ROOT / page).read_text(encoding="utf-8")):
        for kind, recipe in env_recipes(text):
            if kind == "command":
                subprocess.run(recipe, shell=True, cwd=tmp_path, check=True)
            else:
                names = re.findall(r"^ *(\w+)=", recipe, re.MULTILINE)
                wanted |= dict.fromkeys(names, "")
                with (tmp_path / ".env").open("a") as file:
                    file.write(recipe)
            assert set(dotenv_values(tmp_path / ".env")) == set(wanted), recipe
    assert {"TAPEBOT_MODEL", "TAPEBOT_TELEGRAM_TOKEN"} <= set(wanted)
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
