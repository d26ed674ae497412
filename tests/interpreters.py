"""The Pythons that the wheel names, and where they are on this machine.

Run as a program, it prints each version but its own, with the interpreter's path or nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMED: list[str] = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
OTHERS = [one for one in NAMED if one != "{}.{}".format(*sys.version_info)]
_KEPT = (".pyenv/versions/{}.*/bin/python", ".local/share/uv/python/cpython-{}.*/bin/python3")


@cache
def interpreter(version: str) -> str | None:
    """Return the path of a Python of this version, of the system, pyenv or uv; None if there is none."""
    found = shutil.which(f"python{version}")
    kept = [path for one in _KEPT for path in sorted(Path.home().glob(one.format(version)))]
    for path in (*([found] if found else ()), *map(str, kept)):
        asked = "import ensurepip, sqlite3, ssl, sys; print('{}.{}'.format(*sys.version_info))"
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    return None


if __name__ == "__main__":
    for other in OTHERS:
        sys.stdout.write(f"{other} {interpreter(other) or ''}\n")
