"""Read bootstrap files and skills from the workspace folder.

Files are checked for changes at most every ``_FRESH`` seconds, when a turn begins, and parsed again
only if they changed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import aiofiles
import anyio
import anyio.to_thread
from aiofiles.ospath import exists

from bot.agent.skills.skill_folder import read_file
from bot.agent.skills.skill_format import SKILL_FILE, parse_header
from bot.core.clock import Clock
from bot.core.errors import SkillRefused

logger = logging.getLogger(__name__)

BOOTSTRAP = ("AGENTS.md", "SOUL.md", "USER.md")
MAX_BOOTSTRAP = 16_000
MAX_SKILLS = 64

_FRESH = 30.0


@dataclass(frozen=True, slots=True)
class OwnSkill:
    """A skill of the owner: ``skills/NAME/SKILL.md`` in the workspace folder."""

    name: str
    description: str
    folder: Path


@dataclass(frozen=True, slots=True)
class WorkspaceText:
    """Text that the workspace adds to the prompt.

    Attributes:
        files: Name and text of each bootstrap file, cut to ``MAX_BOOTSTRAP`` characters.
        skills: Available skills, in order of their paths.
        broken: Folders of ``skills/`` that are no skills, each with the reason.
    """

    files: tuple[tuple[str, str], ...] = ()
    skills: tuple[OwnSkill, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()


class WorkspaceFiles:
    """Reads a workspace folder; a missing folder counts as empty."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._looked: float | None = None
        self._stamp: object = None
        self._text = WorkspaceText()

    async def read(self) -> WorkspaceText:
        """Return the current text; check the files at most every 30 seconds."""
        now = self._clock.monotonic()
        if self._looked is None or now - self._looked > _FRESH:
            self._looked = now
            stamp = await anyio.to_thread.run_sync(self._stat)
            if stamp != self._stamp:
                self._stamp = stamp
                self._text = await self._read()
        return self._text

    def _stat(self) -> list[tuple[str, int, int]]:
        found = []
        for path in [*(self._root / name for name in BOOTSTRAP), *self._skill_files()]:
            try:
                status = path.stat()
            except OSError:
                continue
            found.append((str(path), status.st_mtime_ns, status.st_size))
        return found

    def _skill_files(self) -> list[Path]:
        return sorted(self._root.glob("skills/*/SKILL.md"))[:MAX_SKILLS]

    async def _read(self) -> WorkspaceText:
        files = []
        for name in BOOTSTRAP:
            path = self._root / name
            if await exists(path) and (text := (await _read_text(path) or "").strip()):
                files.append((name, _cut(text, name)))
        paths = await anyio.to_thread.run_sync(self._skill_files)
        skills, broken = await anyio.to_thread.run_sync(_read_skills, paths)
        return WorkspaceText(tuple(files), tuple(skills), tuple(broken))


async def _read_text(path: Path) -> str | None:
    """Return a file's text; None, with a log warning, if it cannot be read."""
    try:
        async with aiofiles.open(path, encoding="utf-8", errors="replace") as file:
            return await file.read()
    except OSError as error:
        logger.warning("%s cannot be read and is skipped: %s", path, error.strerror)
        return None


def _cut(text: str, name: str) -> str:
    if len(text) <= MAX_BOOTSTRAP:
        return text
    logger.warning("%s is cut to its first %d characters", name, MAX_BOOTSTRAP)
    return f"{text[:MAX_BOOTSTRAP]}\n… (cut at {MAX_BOOTSTRAP} characters)"


def _read_skills(paths: list[Path]) -> tuple[list[OwnSkill], list[tuple[str, str]]]:
    """Return the skills with these files SKILL.md, and the folders of those that are broken."""
    skills, broken = [], []
    for path in paths:
        folder = path.parent
        try:
            text = read_file(folder, SKILL_FILE).decode("utf-8", "replace")
            header = parse_header(text, folder.name)
        except (SkillRefused, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            logger.warning("the skill in %s is skipped: %s", folder, why)
            broken.append((folder.name, str(why)))
        else:
            skills.append(OwnSkill(header.name, header.description, folder))
    return skills, broken
