"""Get a skill from a git repository or a folder of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from bot.agent.foreign_text import one_line
from bot.agent.skills.git_repository import FETCH_SECONDS, GitRepository, is_git_address
from bot.agent.skills.skill_folder import read_folder
from bot.agent.skills.skill_format import SKILL_FILE
from bot.agent.skills.skill_package import (
    MAX_BYTES,
    SkillPackage,
    check_path,
    check_size,
    make_package,
    shown_path,
)
from bot.agent.texts import joined
from bot.core.errors import SkillRefused
from bot.core.files import disk_error_text, private_directory
from bot.core.foreign_files import IS_LINK, NO_FILE
from bot.core.i18n import N_, _
from bot.core.ids import new_id

_MOST_NAMED = 20
_PLACES = (f"*/{SKILL_FILE}", f"skills/*/{SKILL_FILE}")
"""Where folders and repositories with several skills have them."""


@dataclass(frozen=True, slots=True)
class SkillSource:
    """Where a skill is from.

    Attributes:
        address: Address of a git repository, or absolute path of a folder.
        path: The skill's folder in it; empty for the whole.
    """

    address: str
    path: str = ""

    def __str__(self) -> str:
        """Return both as one text for people."""
        return f"{self.address} {self.path}".strip()


@dataclass(frozen=True, slots=True)
class FetchedSkill:
    """A skill as its source has it now.

    Attributes:
        package: Its files.
        source: Where it is from, with the path where it was found.
        commit: Name of the git commit; empty for a folder.
    """

    package: SkillPackage
    source: SkillSource
    commit: str = ""


def parse_source(address: str, path: str = "") -> SkillSource:
    """Return the source that an owner names.

    Raises:
        SkillRefused: It is neither an address that git may fetch nor a folder.
    """
    path = path.strip("/")
    if path:
        check_path(path)
    if address.startswith(("/", "~/")):
        return SkillSource(str(Path(address).expanduser()), path)
    host = address.partition("://")[2].partition("/")[0]
    if address.startswith("https:") and "@" in host:
        raise SkillRefused(_("an address with a name or password in it is not fetched"))
    if not is_git_address(address):
        raise SkillRefused(
            _(
                "give the address of a git repository (https://..., ssh://..., file://... or "
                "git@host:path) or the absolute path of a folder"
            )
        )
    return SkillSource(address, path)


_KINDS = {"120000": IS_LINK, "160000": N_("{path} is a submodule")}


class SkillFetcher:
    """Gets skills, one at a time.

    Args:
        folder: Where repositories are while they are read; nobody else uses it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_at_a_time = anyio.Lock()

    async def fetch(self, source: SkillSource) -> FetchedSkill:
        """Return a skill as its source has it now.

        Raises:
            SkillRefused: It cannot be had, or is no skill; the text says why.
        """
        try:
            if source.address.startswith("/"):
                return await anyio.to_thread.run_sync(_from_folder, source)
            async with self._one_at_a_time:
                with anyio.move_on_after(FETCH_SECONDS):
                    return await self._from_repository(source)
            raise SkillRefused(
                _("git did not finish within {seconds} seconds", seconds=FETCH_SECONDS)
            )
        except OSError as error:
            raise SkillRefused(
                _("it cannot be read ({reason})", reason=disk_error_text(error))
            ) from error

    async def _from_repository(self, source: SkillSource) -> FetchedSkill:
        # What a kill left behind goes first.
        await anyio.to_thread.run_sync(_remove, self._folder)
        folder = self._folder / new_id("git")
        await anyio.to_thread.run_sync(private_directory, folder)
        try:
            repository = GitRepository(folder)
            commit = await repository.fetch(source.address)
            if not source.path:
                listed = [entry.path for entry in await repository.list_files()]
                source = SkillSource(source.address, _only_skill(listed))
            package = await _package(repository, source.path)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_remove, self._folder)
        return FetchedSkill(package, source, commit)


async def _package(repository: GitRepository, path: str) -> SkillPackage:
    entries = await repository.list_files(path)
    for entry in entries:
        if entry.mode not in ("100644", "100755"):
            raise SkillRefused(_(_KINDS.get(entry.mode, NO_FILE), path=shown_path(entry.path)))
    # Before anything is read.
    check_size({entry.path: entry.size for entry in entries})
    contents = await repository.read_files([entry.name for entry in entries], MAX_BYTES)
    paths = (entry.path for entry in entries)
    return await anyio.to_thread.run_sync(make_package, dict(zip(paths, contents, strict=True)))


def _from_folder(source: SkillSource) -> FetchedSkill:
    root = Path(source.address)
    if not (root / source.path).is_dir():
        raise SkillRefused(_("there is no such folder on the machine where tapebot runs"))
    if not source.path and not (root / SKILL_FILE).exists():
        listed = [str(path.relative_to(root)) for place in _PLACES for path in root.glob(place)]
        source = SkillSource(source.address, _only_skill(listed))
    return FetchedSkill(make_package(read_folder(root / source.path)), source)


def _only_skill(files: Iterable[str]) -> str:
    """Return the folder of the one skill among files.

    Raises:
        SkillRefused: There is none, or there are several.
    """
    found = {path for path in files if path.rpartition("/")[2] == SKILL_FILE}
    if SKILL_FILE in found:
        return ""
    folders = sorted(path.rpartition("/")[0] for path in found)
    if len(folders) == 1:
        check_path(folders[0])
        return folders[0]
    if not folders:
        raise SkillRefused(_("it has no file SKILL.md"))
    named = [f"`{one_line(one, 80)}`" for one in folders[:_MOST_NAMED]]
    if len(folders) > _MOST_NAMED:
        named.append(_("{n} more", n=len(folders) - _MOST_NAMED))
    raise SkillRefused(
        _(
            "it has {count} skills: {names}. Name one after the address",
            count=len(folders),
            names=joined(named),
        )
    )


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
