"""All files of a skill as one sequence of bytes, and the digest of it. Pure.

The bytes are a line of JSON, ``{"skill": 1, "files": [[path, size], ...]}`` with sorted paths, and then
the files' contents. Equal files give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.agent.foreign_text import one_line
from bot.agent.skills.skill_format import SKILL_FILE, SkillHeader, parse_header
from bot.bus.media.documents import decode_text
from bot.core.errors import SkillRefused
from bot.core.i18n import _, format_number

MAX_FILES = 200
MAX_FILE_BYTES = 1_000_000
MAX_BYTES = 4_000_000

_LONGEST_PATH = 200
_DEEPEST = 8
_VERSION = 1


@dataclass(frozen=True, slots=True)
class SkillPackage:
    """A skill's files.

    Attributes:
        header: What it says about itself.
        files: Its files by path, sorted.
    """

    header: SkillHeader
    files: Mapping[str, bytes]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))

    def encode(self) -> bytes:
        """Return the package as bytes."""
        listed = [[path, len(data)] for path, data in self.files.items()]
        head = json.dumps({"skill": _VERSION, "files": listed}, ensure_ascii=True)
        return b"".join([head.encode(), b"\n", *self.files.values()])


def package_digest(data: bytes) -> str:
    """Return the digest of a package's bytes."""
    return hashlib.sha256(data).hexdigest()


def make_package(files: Mapping[str, bytes]) -> SkillPackage:
    """Return the package of a skill's files.

    Raises:
        SkillRefused: They are no skill, or too many or too large.
    """
    check_size({path: len(data) for path, data in files.items()})
    if SKILL_FILE not in files:
        raise SkillRefused(_("it has no file SKILL.md"))
    text = decode_text(files[SKILL_FILE])
    if text is None:
        raise SkillRefused(_("SKILL.md is not a text"))
    return SkillPackage(parse_header(text), dict(sorted(files.items())))


def decode_package(data: bytes) -> SkillPackage:
    """Return the package that ``encode`` made these bytes of.

    Raises:
        SkillRefused: They are no package.
    """
    line, _sep, rest = data.partition(b"\n")
    try:
        head: Any = json.loads(line)
        listed = [(str(path), int(size)) for path, size in head["files"]]
        version = head["skill"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SkillRefused(_("this copy of a skill cannot be read")) from error
    if version != _VERSION or sum(size for _path, size in listed) != len(rest):
        raise SkillRefused(_("this copy of a skill cannot be read by this version of tapebot"))
    files, start = {}, 0
    for path, size in listed:
        files[path] = rest[start : start + size]
        start += size
    return make_package(files)


def check_size(sizes: Mapping[str, int]) -> None:
    """Check paths and sizes of a skill's files.

    Raises:
        SkillRefused: One is not allowed, or there are too many or too large ones.
    """
    if len(sizes) > MAX_FILES:
        raise SkillRefused(_("it has more than {most} files", most=MAX_FILES))
    for path, size in sizes.items():
        check_path(path)
        if size > MAX_FILE_BYTES:
            raise SkillRefused(
                _(
                    "its file {path} has {size} bytes; at most {most}",
                    path=shown_path(path),
                    size=format_number(size),
                    most=format_number(MAX_FILE_BYTES),
                )
            )
    if sum(sizes.values()) > MAX_BYTES:
        raise SkillRefused(
            _(
                "its files have more than {most} bytes together",
                most=format_number(MAX_BYTES),
            )
        )


def check_path(path: str) -> None:
    """Check a path inside a skill.

    Raises:
        SkillRefused: It leads outside, or is not printable, or too long or too deep.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in path:
        raise SkillRefused(_("{path} is not a path inside the skill", path=shown_path(path)))
    if not path.isprintable() or "`" in path:
        raise SkillRefused(
            _("the file name {path} has characters that are not allowed", path=shown_path(path))
        )
    if len(path) > _LONGEST_PATH or len(parts) > _DEEPEST:
        raise SkillRefused(_("the path {path} is too long", path=shown_path(path)))


def shown_path(path: str) -> str:
    """Return a path for people and models: on one line, cut."""
    return f"`{one_line(path, _LONGEST_PATH).replace('`', chr(39))}`"
