"""How this tapebot was installed, and the command that adds an extra to it."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Literal

from bot.core.patterns import LazyPattern

PACKAGE = "tapebot"

InstallerKind = Literal["checkout", "container", "pip", "pipx", "uv", "uv tool", "uvx"]
"""``uv`` is a virtual environment of uv, which has no pip; ``uvx`` one that uv keeps in its cache."""

_PIP_COMMAND = LazyPattern(r"pip install 'tapebot\[([a-z,-]{1,100})\]'")
_EXTRAS = LazyPattern(r"tapebot\[([a-z, -]{1,200})\]")
_FIRST_PROCESS = Path("/proc/1/cmdline")


@dataclass(frozen=True, slots=True)
class Installation:
    """How tapebot was installed.

    Attributes:
        kind: What installed it.
        extras: The extras that it was installed with, where the installer keeps them.
    """

    kind: InstallerKind
    extras: frozenset[str] = frozenset()

    def add_command(self, extra: str) -> str:
        """Return the command that adds an extra, and keeps those that there are.

        Args:
            extra: An extra of the package, or several with commas.
        """
        named = ",".join(sorted(self.extras | set(extra.split(","))))
        what = f"'{PACKAGE}[{named}]'"
        if self.kind == "pipx":
            return f"pipx install --force {what}"
        if self.kind == "uv tool":
            return f"uv tool install {what}"
        if self.kind == "uvx":
            return f"uvx --from {what} {PACKAGE}"
        return f"{'uv ' if self.kind == 'uv' else ''}pip install '{PACKAGE}[{extra}]'"

    def adapt(self, text: str) -> str:
        """Return a text for people in which pip's commands are those of what installed tapebot."""
        return _PIP_COMMAND.sub(lambda found: self.add_command(found[1]), text)


@cache
def this_installation() -> Installation:
    """Return how the running tapebot was installed."""
    return find_installation(Path(sys.prefix))


def find_installation(prefix: Path, first_process: Path = _FIRST_PROCESS) -> Installation:
    """Return how the tapebot of an environment was installed.

    Args:
        prefix: The environment's folder.
        first_process: The command line of process 1; in a container of tapebot it is tapebot.
    """
    if (receipt := prefix / "uv-receipt.toml").is_file():
        return Installation("uv tool", _uv_extras(receipt))
    if (metadata := prefix / "pipx_metadata.json").is_file():
        return Installation("pipx", _pipx_extras(metadata))
    if _is_checkout():
        return Installation("checkout")
    if PACKAGE in _read(first_process):
        return Installation("container")
    if "uv = " in _read(prefix / "pyvenv.cfg"):
        # uvx keeps environments in its cache, whose folders bear a version.
        cached = any(re.match(r"(archive|environments)-v\d", part) for part in prefix.parts)
        return Installation("uvx" if cached else "uv")
    return Installation("pip")


def _is_checkout() -> bool:
    try:
        origin = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    url = _json(origin or "")
    return bool(url.get("dir_info", {}).get("editable"))


def _pipx_extras(metadata: Path) -> frozenset[str]:
    main = _json(_read(metadata)).get("main_package", {})
    return _named_extras(str(main.get("package_or_url", "")))


def _uv_extras(receipt: Path) -> frozenset[str]:
    try:
        required = tomllib.loads(_read(receipt)).get("tool", {}).get("requirements", [])
    except tomllib.TOMLDecodeError:
        return frozenset()
    return frozenset(
        str(extra)
        for one in required
        if isinstance(one, dict) and one.get("name") == PACKAGE
        for extra in one.get("extras", [])
    )


def _named_extras(requirement: str) -> frozenset[str]:
    found = _EXTRAS.match(requirement)
    return frozenset(one.strip() for one in found[1].split(",")) if found else frozenset()


def _json(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
