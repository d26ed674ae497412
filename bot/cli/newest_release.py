"""Fetch the newest release of tapebot, without installing it or running any code of it.

pip, or uv where there is no pip, downloads its wheel: so the package index, proxies and certificates
are those that the user configured for it. Blocking.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PathDistribution
from pathlib import Path

from bot.core.errors import TapebotError
from bot.core.i18n import _
from bot.core.installation import PACKAGE
from bot.core.patterns import LazyPattern

_SECONDS = 120
"""The longest that a download may take."""

_SECTION = LazyPattern(r"^## ", re.MULTILINE)
_VERSION = LazyPattern(r"\[?v?(\d[\w.]{0,40})")
_NO_NETWORK = LazyPattern(
    r"Retrying|onnection|resolve|imed out|unreachable|error sending request|Failed to fetch",
)
_MIGRATIONS = Path("bot") / "core" / "database" / "migrations"


@dataclass(frozen=True, slots=True)
class Release:
    """A release that can be installed.

    Attributes:
        version: Its version.
        homes_since: The oldest version whose homes it opens; None if it does not tell.
        migrations: The database's migrations that it knows, by name.
        changelog: Its changelog, Markdown; empty if it has none.
    """

    version: str
    homes_since: str | None
    migrations: dict[str, bytes]
    changelog: str

    def changes_since(self, version: str) -> str:
        """Return the changelog's sections of versions after one, newest first."""
        sections = _SECTION.split(self.changelog)[1:]
        return "\n\n".join(
            f"## {section.strip()}"
            for section in sections
            if (found := _VERSION.match(section)) and is_newer(found[1], version)
        )


def is_newer(version: str, other: str) -> bool:
    """Say whether a version comes after another; pre-releases come before their release."""
    return _order(version) > _order(other)


def _order(version: str) -> tuple[tuple[int, ...], bool, str]:
    numbers = re.match(r"\d{1,9}(?:\.\d{1,9}){0,5}", version)
    release = numbers[0] if numbers else "0"
    rest = version.removeprefix(release)
    parts = [int(part) for part in release.split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    final = not rest or rest.startswith((".post", "+"))
    return tuple(parts), final, rest


@contextmanager
def fetch_newest() -> Iterator[Release]:
    """Download the newest release that fits this Python; it is removed at the end.

    Raises:
        TapebotError: There is neither pip nor uv, or the index has no release, or does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="tapebot-upgrade-") as folder:
        _download(Path(folder))
        yield _read_release(Path(folder))


def _download(folder: Path) -> None:
    command = _download_command(folder)
    try:
        # Not in the current folder: a checkout of tapebot there would be found instead.
        done = subprocess.run(  # noqa: S603
            [*command, PACKAGE],
            cwd=folder,
            env={**os.environ, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TapebotError(_("The package index did not answer within two minutes.")) from error
    # What it says is not shown: the index's address may hold a password.
    if done.returncode and _NO_NETWORK.search(done.stderr):
        raise TapebotError(_("The package index cannot be reached. Is this machine online?"))
    if done.returncode:
        raise TapebotError(_("The package index has no release of tapebot that fits this Python."))
    for wheel in list(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def _download_command(folder: Path) -> list[str]:
    """Return the command that downloads a package into a folder: of pip here, of uv, or of a pip elsewhere."""
    options = ["--no-deps", "--only-binary", ":all:"]
    download = ["--disable-pip-version-check", "--no-input", "--quiet", "--retries", "1"]
    download += ["--timeout", "15", "download", *options, "--dest", str(folder)]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", *download]
    if (uv := shutil.which("uv")) is not None:
        install = ["pip", "install", "--quiet", "--refresh", *options]
        return [uv, *install, "--python", sys.executable, "--target", str(folder)]
    if (pip := shutil.which("pip3") or shutil.which("pip")) is not None:
        return [pip, "--python", sys.executable, *download]
    raise TapebotError(
        _("Neither pip nor uv is here, and one of them has to ask the package index.")
    )


def _read_release(folder: Path) -> Release:
    found = next(folder.glob(f"{PACKAGE}-*.dist-info"), None)
    if found is None:
        raise TapebotError(_("What the package index sent is no release of tapebot."))
    changelog = next(folder.rglob("share/doc/tapebot/CHANGELOG.md"), None)
    return Release(
        PathDistribution(found).version,
        _homes_since(folder / "bot" / "compatibility.toml"),
        read_migrations(folder / _MIGRATIONS),
        "" if changelog is None else changelog.read_text(encoding="utf-8"),
    )


def read_migrations(folder: Path) -> dict[str, bytes]:
    """Return the migrations in a folder, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.sql"))}


def _homes_since(path: Path) -> str | None:
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8")).get("homes_since")
    except (OSError, ValueError):
        return None
    return told if isinstance(told, str) else None
