"""The README shows what the program prints now, and names what exists."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from bot.agent.commands.builtin import builtin_commands
from docs.pictures.make import CHAT, INSPECTOR, conversation

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


def test_the_picture_of_the_chat_is_what_the_program_prints(tmp_path):
    """Where the program is meant to print something else, ``make pictures`` makes the pictures again."""
    printed = [DATE.sub("DATE", line.rstrip()) for line in conversation(tmp_path)]
    assert shown_lines(CHAT.read_text(encoding="utf-8")) == [line for line in printed if line]


def test_the_pictures_are_shown_and_small():
    for picture in (CHAT, INSPECTOR):
        assert str(picture.relative_to(ROOT)) in README
        assert picture.stat().st_size < 200_000


def test_the_readme_lists_every_command():
    listed = re.findall(r"^\| `/(\w+)", README, re.MULTILINE)
    assert {one.name for one in builtin_commands().visible_commands()} <= set(listed)
