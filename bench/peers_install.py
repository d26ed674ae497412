"""Other assistants, each in a virtual environment of its own."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from bench.processes import ROOT

CACHE = ROOT / ".cache" / "peers"
"""Where the virtual environments are made."""

VERSIONS = {"nanobot": "0.3.5", "bub": "0.5.1"}
"""As locks/peer-NAME.in says."""

_NEEDS = {"nanobot": (3, 11), "bub": (3, 12)}
_NEWEST = 14
_LONGEST = 600


class NotInstalled(Exception):
    """It could not be installed; the message says why."""


def install(name: str) -> Path:
    """Return the Python of an environment with an assistant, made if it is not there, or raise NotInstalled."""
    lock = ROOT / "locks" / f"peer-{name}.txt"
    base = _python(_NEEDS[name])
    if base is None:
        raise NotInstalled(f"{name} needs Python {'.'.join(map(str, _NEEDS[name]))}")
    CACHE.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(lock.read_bytes() + str(base).encode()).hexdigest()[:12]
    folder, done = CACHE / f"{name}-{key}", CACHE / f"{name}-{key}.done"
    with FileLock(CACHE / "lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"installing {name} into {folder} (once) ...", file=sys.stderr)
            _make(base, folder, lock)
            done.touch()
    return folder / "bin" / "python"


def _make(base: Path, folder: Path, lock: Path) -> None:
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    for command in (
        [str(base), "-m", "venv", str(folder)],
        [*pip, "install", "--require-hashes", "-r", str(lock)],
        [str(folder / "bin" / "python"), "-m", "compileall", "-qq", str(folder / "lib")],
    ):
        try:
            # Compiling fails where a package holds templates that are no Python.
            check = "compileall" not in command
            subprocess.run(
                command, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=_LONGEST,
            )  # fmt: skip
        except subprocess.CalledProcessError as error:
            lines = error.stdout.strip().splitlines() or [str(error)]
            raise NotInstalled(lines[-1]) from error
        except subprocess.TimeoutExpired as error:
            raise NotInstalled(str(error)) from error


def _python(needed: tuple[int, int]) -> Path | None:
    """Return this Python if it is new enough, else the oldest that is."""
    if sys.version_info[:2] >= needed:
        return Path(sys.executable)
    for minor in range(needed[1], _NEWEST + 1):
        found = shutil.which(f"python3.{minor}")
        if found is None:
            continue
        # pyenv's command runs the versions that are chosen for a folder, which need not be these.
        versions = Path(found).parent.parent / "versions"
        inside = sorted(versions.glob(f"3.{minor}.*/bin/python3.{minor}"))
        for one in (Path(found), *inside):
            if subprocess.run([one, "-c", ""], check=False, capture_output=True).returncode == 0:
                return one
    return None
