"""Whatever a skill's files say, they are read or refused, and a copy gives back what it was made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.agent.skills.skill_difference import skill_difference
from bot.agent.skills.skill_format import parse_header
from bot.agent.skills.skill_package import (
    SkillPackage,
    decode_package,
    make_package,
    package_digest,
)
from bot.core.errors import SkillRefused

HEADER = b"---\nname: brew\ndescription: x\n---\n"
LINES = st.lists(
    st.sampled_from(
        [
            "---",
            "name: brew",
            "description: x",
            "- a",
            "a: [",
            "? b",
            "&a *a",
            "!!python/name:os",
            '"',
            "{",
        ]
    )
    | st.text(max_size=12),
    max_size=8,
)
PATHS = st.lists(st.text("abc. \x1b/\\\u202e`", min_size=1, max_size=6), max_size=4).map("/".join)


def package(text: bytes = b"", **files: bytes) -> SkillPackage:
    return make_package({"SKILL.md": HEADER + text} | files)


@given(LINES)
def test_any_header_is_parsed_or_refused(lines):
    try:
        header = parse_header("---\n" + "\n".join(lines))
    except SkillRefused:
        return
    assert header.name
    assert header.description.isprintable()


@given(st.dictionaries(PATHS, st.binary(max_size=20), max_size=5))
def test_a_copy_gives_back_its_files_and_stays_inside(files):
    try:
        made = make_package(files | {"SKILL.md": HEADER})
    except SkillRefused:
        return
    data = made.encode()
    assert decode_package(data) == made
    assert package_digest(decode_package(data).encode()) == package_digest(data)
    for path in made.files:
        assert path.isprintable()
        assert ".." not in path.split("/")


def test_a_difference_hides_no_line():
    """Lines that look like the heads of a difference are told too."""
    before, after = package(b"-- a\nsame\n@@ b\n"), package(b"++ c\nsame\n@@ d\n")
    told = skill_difference(before, after).splitlines()
    assert told[1:] == ["--- a", "+++ c", "-@@ b", "+@@ d"]
