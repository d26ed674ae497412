"""Wheels of packages that are installed here, for a package index that needs no network."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from docs.first_day.wheels import ROOT


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
    """Fill a folder with wheels of this tree, and with those of all that they need without extras."""
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
