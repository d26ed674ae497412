"""Wheels: of this tree, of a tree that says another version, and of packages that are installed here."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILT_FROM = (
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
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(to)],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
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
    for name in BUILT_FROM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copyfile(source, folder / name)
    project = folder / "pyproject.toml"
    text, count = re.subn(
        r'^version = ".*"$', f'version = "{version}"', project.read_text(), flags=re.MULTILINE
    )
    assert count == 1
    project.write_text(text)
    changelog = folder / "CHANGELOG.md"
    head, heading, rest = changelog.read_text().partition("\n## ")
    changelog.write_text(f"{head}\n## {version}\n\n{changes}\n{heading}{rest}")
    return folder


def requirements(names: Iterable[str]) -> set[str]:
    """Return what packages need, all the way down, without extras; they are installed here."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        one = waiting.pop()
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        if name in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += [Requirement(text) for text in distribution(one.name).requires or ()]
    return found


def write_index(folder: Path, wheels: Iterable[Path], *, extra: Iterable[str] = ()) -> None:
    """Fill a folder with wheels of this tree, and with those of all that they need without extras.

    Args:
        folder: The folder.
        wheels: The wheels of this tree.
        extra: Other packages that are installed here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        shutil.copy(wheel, folder)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in sorted(requirements([*project["dependencies"], *extra])):
        repack(name, folder)


def repack(name: str, to: Path) -> Path:
    """Write the wheel of a package that is installed here; return its path."""
    package = distribution(name)
    tags = re.findall(r"^Tag: (.+)-(.+)-(.+)$", package.read_text("WHEEL") or "", re.MULTILINE)
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))
    spelled = re.sub(r"[-_.]+", "_", package.name)
    path = to / f"{spelled}-{package.version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        record = []
        for file, data in _files(package):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{file},sha256={digest},{len(data)}")
            wheel.writestr(file, data)
        (info,) = {line.split("/")[0] for line in record if ".dist-info/METADATA," in line}
        wheel.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return path


def _files(package: Distribution) -> Iterator[tuple[str, bytes]]:
    """Yield a package's files, without those that an installer adds."""
    added = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
    for file in package.files or ():
        if file.parts[0] == ".." or file.suffix == ".pyc" or file.name in added:
            continue
        yield str(file), Path(str(package.locate_file(file))).read_bytes()
