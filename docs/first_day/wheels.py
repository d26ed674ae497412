"""Build wheels: of this tree, and of a tree that says another version."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BUILT_FROM = (
    "bot",
    "channels",
    "deploy",
    ".env.example",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "pyproject.toml",
)


def build(to: Path, *, tree: Path = ROOT, target: str = "wheel") -> Path:
    """Build a tree's wheel, or its ``sdist``, into a folder; return its path."""
    to.mkdir(parents=True, exist_ok=True)
    before = set(to.iterdir())
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(to)],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    (made,) = set(to.iterdir()) - before
    return made


def tree_of_version(folder: Path, version: str, changes: str) -> Path:
    """Copy what a wheel is built from, as if it were another version; return the copy.

    Args:
        folder: A folder that does not exist yet.
        version: The version.
        changes: What its section of the changelog says.
    """
    folder.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in _BUILT_FROM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copyfile(source, folder / name)
    project = folder / "pyproject.toml"
    text, count = re.subn(
        r'^version = ".*"$', f'version = "{version}"', project.read_text(), flags=re.MULTILINE
    )
    if count != 1:
        raise RuntimeError("pyproject.toml states no version")
    project.write_text(text)
    changelog = folder / "CHANGELOG.md"
    head, heading, rest = changelog.read_text().partition("\n## ")
    changelog.write_text(f"{head}\n## {version}\n\n{changes}\n{heading}{rest}")
    return folder
