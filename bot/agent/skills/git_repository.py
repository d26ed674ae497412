"""Fetch a git repository, and read files of its newest commit, without checking them out.

Nothing of the repository is ever a file, a link, a hook or a filter on the disk: git keeps it in a bare
repository, lists its tree, and prints the contents that are asked for.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream

from bot.agent.foreign_text import code
from bot.agent.skills import git_program
from bot.core.errors import SkillRefused
from bot.core.i18n import _
from bot.core.patterns import LazyPattern

FETCH_SECONDS = 60
"""The most seconds to fetch a repository and read a skill of it; the caller bounds them."""

MAX_REPOSITORY_BYTES = 100_000_000
"""The most bytes of a repository's newest commit, compressed."""

_MOST_LISTED = 4_000_000
_MOST_SAID = 4_000
# No host begins with "-": ssh would take it for an option.
_URL = LazyPattern(
    r"(?:https|ssh)://(?:[A-Za-z0-9_.][A-Za-z0-9_.:-]{0,63}@)?[A-Za-z0-9\[][A-Za-z0-9.:\[\]_-]{0,250}"
    r"(?:/[!-~]{0,500})?"
    r"|file:///[!-~]{0,500}"
)
_SCP_ADDRESS = LazyPattern(
    r"(?:[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9.-]{0,200}:(?!//|-)[!-~]{1,300}"
)
_SETTINGS = (
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.file.allow=always",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.bigFileThreshold=1m",
    "credential.helper=",
    "transfer.fsckObjects=true",
    "fetch.unpackLimit=1",
    "pack.threads=1",
    "gc.auto=0",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=20",
    "submodule.recurse=false",
)


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file of a repository.

    Attributes:
        mode: Its mode in git, such as ``100644``; ``120000`` is a symbolic link.
        name: The name of its contents in git.
        size: Bytes; 0 of what has no contents.
        path: Its path.
    """

    mode: str
    name: str
    size: int
    path: str


def is_git_address(address: str) -> bool:
    """Return whether this has the form of an address that git may fetch."""
    # "ext::..." names a helper, which git would run.
    return "::" not in address and any(form.fullmatch(address) for form in (_URL, _SCP_ADDRESS))


class GitRepository:
    """A bare repository in a folder of its own.

    Args:
        folder: An empty folder; the caller removes it.

    Raises:
        SkillRefused: There is no git here.
    """

    def __init__(self, folder: Path) -> None:
        git = shutil.which("git")
        if git is None:
            raise SkillRefused(_("the program git is not installed here; give a folder instead"))
        self._git = git
        self._folder = folder
        self._repository = folder / "repository.git"

    @property
    def _here(self) -> tuple[str, str]:
        return "--git-dir", str(self._repository)

    async def fetch(self, address: str) -> str:
        """Fetch the newest commit of the default branch; return its name.

        Raises:
            SkillRefused: It cannot be had, or is too large.
        """
        if not is_git_address(address):
            raise SkillRefused(_("this is no https, ssh or file address of a git repository"))
        options = ("--bare", "--depth=1", "--single-branch", "--no-tags", "--template=", "--quiet")
        target = str(self._repository)
        await self._run("clone", *options, "--no-recurse-submodules", "--", address, target)
        commit = await self._run(*self._here, "rev-parse", "--verify", "HEAD^{commit}")
        return commit.decode("ascii", "replace").strip()[:64]

    async def list_files(self, path: str = "") -> list[TreeEntry]:
        """Return the files, links and submodules below a folder, with paths relative to it.

        Raises:
            SkillRefused: There is no such folder, or too much in it.
        """
        # As part of a revision a path can be neither an option nor a pattern.
        tree = f"HEAD:{path}"
        listed = await self._run(*self._here, "ls-tree", "-r", "-z", "-l", tree)
        found = []
        for line in filter(None, listed.split(b"\0")):
            head, _sep, name = line.partition(b"\t")
            mode, _kind, blob, size = head.decode("ascii", "replace").split()
            number = int(size) if size.isdecimal() else 0
            found.append(TreeEntry(mode, blob, number, os.fsdecode(name)))
        return found

    async def read_files(self, names: Sequence[str], limit: int) -> list[bytes]:
        """Return the contents with these names in git.

        Raises:
            SkillRefused: They cannot be read.
        """
        asked = "".join(f"{name}\n" for name in names).encode()
        room = limit + 100 * len(names)
        listed = await self._run(*self._here, "cat-file", "--batch", given=asked, limit=room)
        found, start = [], 0
        for name in names:
            end = listed.find(b"\n", start)
            head = listed[start:end].decode("ascii", "replace").split()
            if len(head) != 3 or head[:2] != [name, "blob"]:
                raise SkillRefused(_("the repository is damaged"))
            size = int(head[2])
            found.append(listed[end + 1 : end + 1 + size])
            start = end + 1 + size + 1
        return found

    async def _run(self, *arguments: str, given: bytes = b"", limit: int = _MOST_LISTED) -> bytes:
        """Run git; return what it prints.

        Raises:
            SkillRefused: It failed or printed too much.
        """
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        limits = (str(FETCH_SECONDS + 10), str(MAX_REPOSITORY_BYTES))
        command = [sys.executable, "-I", git_program.__file__, *limits, self._git, *settings]
        said: dict[str, bytes] = {}
        code = await self._talk([*command, *arguments], given, limit, said)
        if len(said["out"]) > limit:
            raise SkillRefused(_("the repository has too many files"))
        if code:
            raise SkillRefused(_("git could not read it: {said}", said=_reason(said["err"])))
        return said["out"]

    async def _talk(
        self, command: Sequence[str], given: bytes, limit: int, said: dict[str, bytes]
    ) -> int | None:
        """Run a command to its end, with all that it started; return its exit code."""
        try:
            # A session of its own has no terminal to ask on, and can be ended as a whole.
            process = await anyio.open_process(
                command, env=self._environment(), cwd=self._folder, start_new_session=True
            )
        except OSError as error:
            raise SkillRefused(
                _("git cannot be started: {strerror}", strerror=error.strerror)
            ) from error
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_collect, process.stdout, limit, said, "out")
                tasks.start_soon(_collect, process.stderr, _MOST_SAID, said, "err")
                with suppress(anyio.BrokenResourceError):
                    await process.stdin.send(given)
                await process.stdin.aclose()
            return await process.wait()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await process.aclose()

    def _environment(self) -> dict[str, str]:
        # Nothing of tapebot's own environment, which has keys; nothing of a person's configuration.
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "https:ssh:file",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=15 -oServerAliveInterval=10",
            "GIT_OPTIONAL_LOCKS": "0",
        }


async def _collect(stream: ByteReceiveStream, limit: int, said: dict[str, bytes], key: str) -> None:
    """Read a stream to its end; keep no more than is needed to know that it is too long."""
    parts: list[bytes] = []
    size = 0
    async for part in stream:
        if size <= limit:
            parts.append(part)
            size += len(part)
    said[key] = b"".join(parts)


def _reason(said: bytes) -> str:
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    # A server may have written it.
    return code((fatal or lines or [_("it does not say why")])[0])
