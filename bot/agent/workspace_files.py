"""Read bootstrap files and skills from the workspace folder.

Files are checked for changes at most every ``_FRESH`` seconds, when a turn begins, and parsed again
only if they changed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiofiles
import anyio
import anyio.to_thread
from aiofiles.ospath import exists

from bot.core.clock import Clock

logger = logging.getLogger(__name__)

BOOTSTRAP = ("AGENTS.md", "SOUL.md", "USER.md")
MAX_BOOTSTRAP = 16_000
MAX_SKILLS = 64
MAX_DESCRIPTION = 1_024

_FRESH = 30.0


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill of the Agent Skills format: ``skills/NAME/SKILL.md`` with YAML front matter."""

    name: str
    description: str
    path: Path


@dataclass(frozen=True, slots=True)
class WorkspaceText:
    """Text that the workspace adds to the prompt.

    Attributes:
        files: Name and text of each bootstrap file, cut to ``MAX_BOOTSTRAP`` characters.
        skills: Available skills, in order of their paths.
    """

    files: tuple[tuple[str, str], ...] = ()
    skills: tuple[Skill, ...] = ()


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

    async def read_skill(self, name: str) -> str | None:
        """Return the text of a skill; None if there is none with this name."""
        for skill in (await self.read()).skills:
            if skill.name == name:
                return await _read_text(skill.path)
        return None

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
        texts = [(path, await _read_text(path) or "") for path in paths]
        skills = [skill for path, text in texts if (skill := _skill(path, text)) is not None]
        return WorkspaceText(tuple(files), tuple(skills))


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


def _skill(path: Path, text: str) -> Skill | None:
    """Parse a skill's front matter; log a warning and return None if it is malformed."""
    import yaml

    head, _, rest = text.lstrip("\ufeff").partition("\n")
    matter, closed, _ = rest.partition("\n---")
    try:
        fields: Any = yaml.safe_load(matter) if head.strip() == "---" and closed else None
    except (yaml.YAMLError, ValueError, RecursionError):
        fields = None
    name = fields.get("name") if isinstance(fields, dict) else None
    description = fields.get("description") if isinstance(fields, dict) else None
    if not isinstance(name, str) or not isinstance(description, str):
        logger.warning("%s has no front matter with name and description; skipped", path)
        return None
    return Skill(name.strip(), " ".join(description.split())[:MAX_DESCRIPTION], path)
