"""How two versions of a skill differ, for the owner who decides. Pure."""

from __future__ import annotations

from difflib import unified_diff

from bot.agent.foreign_text import printable
from bot.agent.skills.skill_package import SkillPackage, shown_path
from bot.bus.media.documents import decode_text
from bot.core.i18n import _, format_number, ngettext

_MOST_LINES = 400
_COMPARED_LINES = 200
"""Lines that are compared one by one; the comparison's time grows with their square."""

_LONGEST_LINE = 300


def skill_difference(before: SkillPackage, after: SkillPackage) -> str:
    """Return what a version adds to, removes from and changes in another.

    Lines that begin with ``-`` are gone, those with ``+`` are new. What is too long to be shown is
    named.
    """
    lines: list[str] = []
    for path in sorted({*before.files, *after.files}):
        old, new = before.files.get(path), after.files.get(path)
        if old == new:
            continue
        lines.append(_file_line(path, old, new))
        if len(lines) < _MOST_LINES:
            lines += _changed_lines(old or b"", new or b"")
    if len(lines) <= _MOST_LINES:
        return "\n".join(lines)
    files = [line for line in lines[_MOST_LINES:] if line.startswith("= ")]
    left = len(lines) - _MOST_LINES - len(files)
    more = ngettext("{n} more line is not shown", "{n} more lines are not shown", left)
    return "\n".join([*lines[:_MOST_LINES], f"... {more}", *files])


def _file_line(path: str, old: bytes | None, new: bytes | None) -> str:
    if old is None:
        size = format_number(len(new or b""))
        return "= " + _("new: {path}, {size} bytes", path=shown_path(path), size=size)
    if new is None:
        return "= " + _("gone: {path}", path=shown_path(path))
    return "= " + _(
        "changed: {path}, {before} to {after} bytes",
        path=shown_path(path),
        before=format_number(len(old)),
        after=format_number(len(new)),
    )


def _changed_lines(old: bytes, new: bytes) -> list[str]:
    before, after = decode_text(old), decode_text(new)
    if before is None or after is None:
        return [_("(not a text)")]
    ours, theirs = _trimmed(printable(before).split("\n"), printable(after).split("\n"))
    if len(ours) > _COMPARED_LINES or len(theirs) > _COMPARED_LINES:
        made = [*(f"-{line}" for line in ours), *(f"+{line}" for line in theirs)]
    else:
        # Its first two lines name the texts; a line of a text may look like those.
        compared = [*unified_diff(ours, theirs, lineterm="", n=0)][2:]
        made = [line for line in compared if line[0] in "+-"]
    # Invisible signs were taken out above; two texts may differ in them alone.
    return [_cut(line) for line in made] or [_("(only in signs that cannot be seen)")]


def _trimmed(ours: list[str], theirs: list[str]) -> tuple[list[str], list[str]]:
    """Return two lists without the lines that they share at the beginning and at the end."""
    shortest, start, end = min(len(ours), len(theirs)), 0, 0
    while start < shortest and ours[start] == theirs[start]:
        start += 1
    while end < shortest - start and ours[-1 - end] == theirs[-1 - end]:
        end += 1
    return ours[start : len(ours) - end], theirs[start : len(theirs) - end]


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"
