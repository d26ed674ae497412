"""Read a skill's files from a folder, without leaving it: no symbolic link is followed.

All functions block.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.agent.skills.skill_package import (
    MAX_FILE_BYTES,
    MAX_FILES,
    check_path,
    check_size,
    shown_path,
)
from bot.core.errors import SkillRefused
from bot.core.foreign_files import IS_LINK, why_not_read
from bot.core.i18n import _, format_number

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK opening a pipe would wait for its other end.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LEFT_OUT = frozenset({".git"})
_LINK = errno.ELOOP


def read_folder(root: Path) -> dict[str, bytes]:
    """Return the contents of all files below a folder by path, without ``.git``.

    Raises:
        SkillRefused: It holds a symbolic link or a device, or too many or too large files.
        OSError: It cannot be read.
    """
    sizes: dict[str, int] = {}
    files: dict[str, bytes] = {}
    with _opened(str(root), _FOLDER) as folder:
        for path, status in _walk(folder):
            if (why := why_not_read(status)) is not None:
                raise SkillRefused(_(why, path=shown_path(path)))
            sizes[path] = status.st_size
            check_size(sizes)
        for path in sizes:
            files[path] = _read(folder, path)
    return files


def list_folder(root: Path) -> dict[str, int]:
    """Return the sizes of the files below a folder by path; at most ``MAX_FILES``.

    Raises:
        OSError: It cannot be read.
    """
    found: dict[str, int] = {}
    with _opened(str(root), _FOLDER) as folder:
        for path, status in _walk(folder):
            if why_not_read(status) is None and path.isprintable():
                found[path] = status.st_size
            if len(found) >= MAX_FILES:
                break
    return dict(sorted(found.items()))


def read_file(root: Path, path: str) -> bytes:
    """Return the contents of one file below a folder.

    Raises:
        SkillRefused: The path leads outside, or there is no such file, or it is too large.
        OSError: It cannot be read.
    """
    check_path(path)
    with _opened(str(root), _FOLDER) as folder:
        return _read(folder, path)


@contextmanager
def _opened(name: str, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _walk(folder: int, above: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of all below a folder that are not folders."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in _LEFT_OUT:
                continue
            path = f"{above}{entry.name}"
            status = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                yield path, status
                continue
            # A path too deep is refused before it is entered.
            check_path(path)
            with _opened(entry.name, _FOLDER | os.O_NOFOLLOW, folder) as below:
                yield from _walk(below, f"{path}/")


def _read(folder: int, path: str) -> bytes:
    first, _sep, rest = path.partition("/")
    try:
        if rest:
            with _opened(first, _FOLDER | os.O_NOFOLLOW, folder) as below:
                return _read(below, rest)
        with _opened(first, _FILE, folder) as descriptor:
            if (why := why_not_read(os.fstat(descriptor))) is not None:
                raise SkillRefused(_(why, path=shown_path(path)))
            with os.fdopen(os.dup(descriptor), "rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SkillRefused(_("there is no file {path}", path=shown_path(path))) from error
    except OSError as error:
        if error.errno == _LINK:
            raise SkillRefused(_(IS_LINK, path=shown_path(path))) from error
        raise
    if len(data) > MAX_FILE_BYTES:
        raise SkillRefused(
            _(
                "{path} has more than {most} bytes",
                path=shown_path(path),
                most=format_number(MAX_FILE_BYTES),
            )
        )
    return data
